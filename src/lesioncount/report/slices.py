"""The maps of a scan or a course → pictures of its candidates, on the image if there is one, else on the map."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.recount import counted_again, existing_map, painted_boxes
from lesioncount.candidates import find_candidates
from lesioncount.changes.resampling import resampled
from lesioncount.cohort.item import ScanFiles
from lesioncount.errors import MapFileError, ShapeError
from lesioncount.files import MapSource, open_map, open_mask
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.masks import mask_on
from lesioncount.protocol import CountingProtocol
from lesioncount.report.backgrounds import Background, Layer, Slices, behind, cut_or_why, image_on
from lesioncount.report.lineages import Pictured
from lesioncount.report.pictures import Plane
from lesioncount.report.planes import Window, window_of
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.record import Entry, Record
from lesioncount.results.recorded import Recorded
from lesioncount.results.scan_count import CourseMaps, ScanCount
from lesioncount.results.settings import ChangeSettings
from lesioncount.runs.file_counts import MOST_SHADES
from lesioncount.runs.session_maps import read_maps


def cut_slices(
    scan: Entry,
    counted_with: Recorded,
    lesions: Sequence[LesionRow],
    image: Path | str | None,
    count: ScanCount | None = None,
) -> Slices:
    """Cut the planes through some candidates of a scan; what is wrong with its files ends up as a note.

    Parameters
    ----------
    scan : Entry
    counted_with : Recorded
        How its map was read and counted.
    lesions : sequence of LesionRow
        The candidates to show.
    image : path, optional
        The image to show; a text says why there is none, though images were asked for.
    count : ScanCount, optional
        What was just counted, with its shades and runs. Default: the map is read for it.
    """
    if not lesions:
        return Slices()
    if counted_with.protocol.has_detections:
        return _on_images(scan, lesions, image)
    is_large = math.prod(scan.grid.shape) > MOST_SHADES
    cut = _cut_windows if is_large else partial(_cut_whole, count)
    why = "the map can no longer be read as it was counted"
    return cut_or_why(partial(cut, scan, counted_with, lesions, image), why)


def _cut_whole(
    count: ScanCount | None,
    scan: Entry,
    counted_with: Recorded,
    lesions: Sequence[LesionRow],
    image: Path | str | None,
) -> Slices:
    """Whole slices, from a map that is held."""
    if count is None or count.shades is None:
        count = counted_again(scan, counted_with, keep_runs=True, keep_shades=True)
    source, candidates, shades = count.source, count.result.candidates, count.shades
    if shades is None:
        raise MapFileError(f"{source.path} is too large.")
    shown, note = behind(image, partial(_on_image, source.grid), Background(shades, is_image=False))
    layer = Layer(shown, candidates.label_map(), source.grid, candidates.bbox)
    planes = [
        layer.planes(window_of(lesion, source.shape, source.spacing_mm), lesion.label, lesion.saddle)
        for lesion in lesions
    ]
    return _slices(planes, shown, source, note)


def _on_images(scan: Entry, lesions: Sequence[LesionRow], image: Path | str | None) -> Slices:
    """Detections on their image; without one there is nothing to show, and nothing that is missing."""
    if not isinstance(image, Path):
        return Slices(notes=() if image is None else (image,))
    return cut_or_why(partial(_cut_boxes, scan, lesions, image), "detections cannot be shown on their image")


def _cut_boxes(scan: Entry, lesions: Sequence[LesionRow], image: Path) -> Slices:
    grid = scan.grid
    labels = painted_boxes(lesions, grid)
    layer = Layer(_on_image(grid, image), labels, grid)
    planes = [layer.planes(window_of(one, grid.shape, grid.spacing_mm), one.label) for one in lesions]
    why = grid.why_unplaced if grid.affine is None else None
    return Slices(tuple((one,) for one in planes), (True,), why)


def _slices(planes: Iterable[tuple[Plane, ...]], shown: Background, source: MapSource, note: str | None) -> Slices:
    why = source.grid.why_unplaced if source.affine is None else None
    return Slices(tuple((one,) for one in planes), (shown.is_image,), why, () if note is None else (note,))


def _cut_windows(scan: Entry, counted_with: Recorded, lesions: Sequence[LesionRow], image: Path | str | None) -> Slices:
    """Close-ups only, from a map that is too large to be held."""
    source = open_map(existing_map(scan), **counted_with.reading)
    windows = [window_of(lesion, source.shape, source.spacing_mm) for lesion in lesions]
    maps = [source.to_probabilities(stored) for stored in read_windows(source, windows)]
    labels = _labels(source, scan.within, counted_with.protocol, windows, maps)
    shown, note = behind(image, partial(_windows_on_image, source, windows), [Background.of_map(one) for one in maps])
    planes = [
        Layer(background, label_map, source.grid).planes(window.alone, bridge=window.inside(lesion.saddle))
        for background, label_map, window, lesion in zip(shown, labels, windows, lesions, strict=True)
    ]
    return _slices(planes, shown[0], source, note)


def _labels(
    source: MapSource,
    within: Path | None,
    protocol: CountingProtocol,
    windows: Sequence[Window],
    maps: Sequence[NDArray[Any]],
) -> list[NDArray[np.int32]]:
    """Of each window: 1 in the voxels of its candidate, 2 and more in those of the candidates that touch it."""
    masks: list[NDArray[np.bool_] | None] = [None] * len(windows)
    if within is not None:
        everywhere = mask_on(source.grid, open_mask(within))
        masks = [everywhere[window.box] for window in windows]
    found = []
    for window, probabilities, inside in zip(windows, maps, masks, strict=True):
        clipped = probabilities.clip(0, 1)  # scaled numbers may end outside by rounding
        labels = _labelled(clipped, inside, protocol, window.peak_inside, source.spacing_mm)
        own = labels[window.peak_inside]
        if own == 0:
            raise MapFileError(f"{within} has changed: it leaves out the candidate at {window.peak}.")
        regions = _labelled(clipped, inside, protocol.components_above(protocol.threshold), window.peak_inside, None)
        touching = np.where(regions == regions[window.peak_inside], labels + (labels > 0), 0)
        found.append(np.where(labels == own, 1, touching).astype(np.int32))
    return found


def _labelled(
    probabilities: NDArray[Any],
    inside: NDArray[np.bool_] | None,
    protocol: CountingProtocol,
    peak: tuple[int, ...],
    spacing_mm: tuple[float, ...] | None,
) -> NDArray[np.int32]:
    """Labels in a window. The window may cut a candidate so small that only without a smallest size it has one."""
    any_size = replace(protocol, min_voxels=1, min_volume_mm3=0, min_diameter_mm=0, min_length_mm=0)
    if protocol.has_peaks:  # those too small have joined their neighbours
        labels = find_candidates(
            probabilities, protocol=protocol, mask=inside, spacing_mm=spacing_mm, warn=False
        ).label_map()
        if labels[peak] > 0:
            return labels
    return find_candidates(probabilities, protocol=any_size, mask=inside, warn=False).label_map()


def _windows_on_image(source: MapSource, windows: Sequence[Window], path: Path) -> list[Background]:
    image = image_on(source.grid, path)
    return Background.of_windows([image.to_values(stored) for stored in read_windows(image, windows)])


def _on_image(grid: VoxelGrid, path: Path) -> Background:
    return Background.of_image(image_on(grid, path).values())


def read_windows(source: MapSource, windows: Sequence[Window]) -> list[NDArray[Any]]:
    """What is stored in each window; no more of the map is held than these and one piece."""
    axis = source.axis
    parts: list[list[NDArray[Any]]] = [[] for _ in windows]
    begin = 0
    for piece in source.pieces():
        end = begin + piece.shape[axis]
        for window, part in zip(windows, parts, strict=True):
            first, last = max(window.box[axis].start, begin), min(window.box[axis].stop, end)
            if first < last:
                along = (*window.box[:axis], slice(first - begin, last - begin), *window.box[axis + 1 :])
                part.append(piece[along].copy())
        begin = end
    return [np.concatenate(part, axis=axis) for part in parts]


def cut_changes(
    record: Record,
    lesions: Sequence[Pictured],
    images: Sequence[Path | str | None],
    maps: CourseMaps | None = None,
) -> Slices:
    """Cut the planes through lesions of a course at both times; what is wrong with its files ends up as a note.

    Parameters
    ----------
    record : Record
    lesions : sequence of Pictured
    images : sequence of path, text or None
        What to show of each session; a text says why there is none, though images were asked for.
    maps : CourseMaps, optional
        What was just compared. Default: the maps are read again, and must be the same.
    """
    if not lesions:
        return Slices()
    if record.settings is not None and record.settings.protocol.has_detections:
        no_pictures = "Changes between tables of detections are listed without pictures."
        return Slices(notes=(no_pictures,) if any(images) else ())
    if math.prod(record.sessions[-1].map.shape) > MOST_SHADES:
        return Slices(notes=(f"No pictures, because the maps have more than {MOST_SHADES:,} voxels.",))
    cut = partial(_cut_course, record, lesions, images, maps)
    return cut_or_why(cut, "the maps can no longer be read as they were compared")


def _cut_course(
    record: Record, lesions: Sequence[Pictured], images: Sequence[Path | str | None], maps: CourseMaps | None
) -> Slices:
    maps = _read_again(record) if maps is None else maps
    grid = maps.grid
    windows = [window_of(one.lesion, grid.shape, grid.spacing_mm) for one in lesions]
    cut: list[list[tuple[Plane, ...]]] = [[] for _ in lesions]
    on_image, notes = [], []
    # Session by session: only the shades and labels of one are held.
    for place, session in enumerate(maps.sessions):
        shown, note = behind(
            images[place], partial(_image_of, record, place, maps), Background.of_map(session.counted.voxels)
        )
        on_image.append(shown.is_image)
        notes += [] if note is None else [f"Session {record.sessions[place].session}: {note}"]
        layer = Layer(shown, _painted(record, place, maps), grid, session.count.result.candidates.bbox)
        for lesion, window, planes in zip(lesions, windows, cut, strict=True):
            if place in (lesion.before, lesion.before + 1):
                planes.append(layer.planes(window, lesion.change.lineage))
    why = grid.why_unplaced if grid.affine is None else None
    return Slices(tuple(map(tuple, cut)), tuple(on_image), why, tuple(dict.fromkeys(notes)))


def _painted(record: Record, place: int, maps: CourseMaps) -> NDArray[np.int32]:
    """The candidates of a session, each with the number of its lineage."""
    numbers = np.array([0, *(one.lineage for one in record.sessions[place].lesions)], dtype=np.int32)
    painted: NDArray[np.int32] = numbers[maps.sessions[place].count.result.candidates.label_map()]
    return painted


def _image_of(record: Record, place: int, maps: CourseMaps, path: Path) -> Background:
    """An image, which lies on the grid of all sessions or on that of its map, if that was resampled."""
    try:
        return _on_image(maps.grid, path)
    except ShapeError:
        if not maps.sessions[place].is_resampled:
            raise
    own = open_map(record.sessions[place].files.path, **_settings(record).reading).grid
    # Only maps whose place is known are resampled.
    affines = cast("tuple[NDArray[np.float64], NDArray[np.float64]]", (own.affine, maps.grid.affine))
    return Background.of_image(resampled(image_on(own, path).values(), affines[0], maps.grid.shape, affines[1])[0])


def _read_again(record: Record) -> CourseMaps:
    """The maps of a course, which must not have changed."""
    scans = []
    for session in record.sessions:
        files = session.files
        scan = ScanFiles(record.name, Path(files.path), None if files.mask is None else Path(files.mask))
        files.check_unchanged()
        scans.append(scan)
    return read_maps(scans, _settings(record), [session.session for session in record.sessions])


def _settings(record: Record) -> ChangeSettings:
    """As far as the reading of maps depends on them."""
    how = record.settings or Recorded()
    return ChangeSettings(how.protocol, how.channel, how.scale, how.logits)

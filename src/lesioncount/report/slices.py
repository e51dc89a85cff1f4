"""One scan → the pictures of its candidates, on the image if there is one, else on the map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.candidates import find_candidates
from lesioncount.errors import MapFileError
from lesioncount.files import MapSource, open_map, open_mask
from lesioncount.files.geometry import check_same_grid
from lesioncount.files.masks import mask_on
from lesioncount.protocol import CountingProtocol
from lesioncount.report.backgrounds import UNREADABLE, behind, colours, contrast, image_on, reason, shaded, unusable
from lesioncount.report.planes import Plane, View, planes_through
from lesioncount.report.windows import Window, read_windows, window_of
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.record import Entry
from lesioncount.results.recorded import Recorded
from lesioncount.results.scan_count import ScanCount
from lesioncount.runs.file_counts import MOST_SHADES, count_file

# A peak of another probability than the record has is a sign of another map; files round to about this.
_SAME_PROBABILITY = 1e-3


@dataclass(frozen=True)
class Slices:
    """The pictures of a scan.

    Attributes
    ----------
    planes : dict of int to tuple of Plane
        By the label of the candidate.
    on_image : bool
        Whether they show the image, not the map.
    why_unplaced : str or None
        Why it is not known how the patient lies in the map, where it is not.
    note : str or None
        What could not be done, and why.
    """

    planes: dict[int, tuple[Plane, ...]] = field(default_factory=dict)
    on_image: bool = False
    why_unplaced: str | None = None
    note: str | None = None


@dataclass(frozen=True, eq=False)
class _Shown:
    """The windows of the background: what is stored, the two values that are black and white, and the colours."""

    voxels: list[NDArray[Any]]
    black: float
    white: float
    palette: bytes | None

    def shades(self, number: int) -> NDArray[np.uint8]:
        return shaded(self.voxels[number], self.black, self.white)


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
    try:
        if math.prod(scan.grid.shape) > MOST_SHADES:
            return _cut_windows(scan, counted_with, lesions, image)
        return _cut_whole(scan, counted_with, lesions, image, count)
    except UNREADABLE as error:
        return Slices(note=f"No pictures, because the map can no longer be read as it was counted: {reason(error)}")


def _cut_whole(
    scan: Entry,
    counted_with: Recorded,
    lesions: Sequence[LesionRow],
    image: Path | str | None,
    count: ScanCount | None,
) -> Slices:
    """Whole slices, from a map that is held."""
    count = _counted_again(scan, counted_with) if count is None else count
    source, candidates, shades = count.source, count.result.candidates, count.shades
    if source.shape != scan.grid.shape or len(candidates) != len(scan.tables[0]) or shades is None:
        raise MapFileError(f"{source.path} has changed: it has shape {source.shape}, {len(candidates)} candidates.")
    for lesion in lesions:
        row = lesion.label - 1
        if tuple(candidates.peak_index[row]) != lesion.peak or not _is_height(candidates.peak_probability[row], lesion):
            raise MapFileError(f"{source.path} has changed: another probability at {lesion.peak}.")
    shown, note = behind(shades, image, partial(image_on, source.grid))
    labels, view = candidates.label_map(), View.of(source.affine)
    windows = [window_of(lesion, source.shape, source.spacing_mm) for lesion in lesions]
    planes = {
        lesion.label: planes_through(
            shown.whole, labels, lesion.peak, view=view, spacing_mm=source.spacing_mm, palette=shown.palette,
            bridge=lesion.saddle, label=lesion.label, near=None if window.is_all_of(source.shape) else window.box,
            boxes=candidates.bbox,
        )
        for lesion, window in zip(lesions, windows, strict=True)
    }  # fmt: skip
    return Slices(planes, shown.is_image, source.grid.why_unplaced if source.affine is None else None, note)


def _counted_again(scan: Entry, counted_with: Recorded) -> ScanCount:
    how = counted_with.reading
    return count_file(
        scan.grid.path, protocol=counted_with.protocol, mask=scan.within, keep_runs=True, keep_shades=True, **how
    )


def _is_height(probability: float, lesion: LesionRow) -> bool:
    return bool(abs(probability - lesion.height) <= _SAME_PROBABILITY)


def _cut_windows(scan: Entry, counted_with: Recorded, lesions: Sequence[LesionRow], image: Path | str | None) -> Slices:
    """Close-ups only, from a map that is too large to be held."""
    source = open_map(scan.grid.path, **counted_with.reading)
    if source.shape != scan.grid.shape:
        raise MapFileError(f"{source.path} now has shape {source.shape}.")
    windows = [window_of(lesion, source.shape, source.spacing_mm) for lesion in lesions]
    maps = [source.to_probabilities(stored) for stored in read_windows(source, windows)]
    for lesion, window, probabilities in zip(lesions, windows, maps, strict=True):
        if not _is_height(probabilities[window.peak_inside], lesion):
            raise MapFileError(f"{source.path} has changed: another probability at {window.peak}.")
    labels = _labels(source, scan.within, counted_with.protocol, windows, maps)
    shown, note = _background(source, windows, maps, image)
    view = View.of(source.affine)
    planes = {
        lesion.label: planes_through(
            shown.shades(number), labels[number], windows[number].peak_inside,
            view=view, spacing_mm=source.spacing_mm, palette=shown.palette,
            bridge=windows[number].inside(lesion.saddle),
        )
        for number, lesion in enumerate(lesions)
    }  # fmt: skip
    return Slices(planes, shown.palette is None, source.grid.why_unplaced if source.affine is None else None, note)


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


def _background(
    source: MapSource, windows: Sequence[Window], maps: list[NDArray[Any]], image: Path | str | None
) -> tuple[_Shown, str | None]:
    note = image if isinstance(image, str) else None
    if isinstance(image, Path):
        try:
            return _image(source, windows, image), None
        except UNREADABLE as error:
            note = unusable(error)
    return _Shown(maps, 0.0, 1.0, colours()), note


def _image(source: MapSource, windows: Sequence[Window], path: Path) -> _Shown:
    image = open_map(path)
    check_same_grid(source.grid, image.grid, "the image")
    voxels = [image.to_values(stored) for stored in read_windows(image, windows)]
    values = np.concatenate([window.ravel() for window in voxels]).astype(np.float32)
    return _Shown(voxels, *contrast(values), None)

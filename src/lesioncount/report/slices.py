"""One scan → the pictures of its candidates, on the image if there is one, else on the map."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.recount import counted_again, existing_map
from lesioncount.candidates import find_candidates
from lesioncount.errors import MapFileError
from lesioncount.files import MapSource, open_map, open_mask
from lesioncount.files.masks import mask_on
from lesioncount.protocol import CountingProtocol
from lesioncount.report.backgrounds import (
    Background,
    Layer,
    Slices,
    behind,
    contrast,
    cut_or_why,
    image_on,
    in_colours,
    in_grey,
    shaded,
)
from lesioncount.report.pictures import Plane
from lesioncount.report.planes import Window, window_of
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.record import Entry
from lesioncount.results.recorded import Recorded
from lesioncount.results.scan_count import ScanCount
from lesioncount.runs.file_counts import MOST_SHADES


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
    shown, note = behind(image, partial(in_grey, source.grid), Background(shades, is_image=False))
    layer = Layer(shown, candidates.label_map(), source.grid, candidates.bbox)
    planes = [
        layer.planes(window_of(lesion, source.shape, source.spacing_mm), lesion.label, lesion.saddle)
        for lesion in lesions
    ]
    return _slices(planes, shown, source, note)


def _slices(planes: Iterable[tuple[Plane, ...]], shown: Background, source: MapSource, note: str | None) -> Slices:
    why = source.grid.why_unplaced if source.affine is None else None
    return Slices(tuple((one,) for one in planes), (shown.is_image,), why, () if note is None else (note,))


def _cut_windows(scan: Entry, counted_with: Recorded, lesions: Sequence[LesionRow], image: Path | str | None) -> Slices:
    """Close-ups only, from a map that is too large to be held."""
    source = open_map(existing_map(scan), **counted_with.reading)
    windows = [window_of(lesion, source.shape, source.spacing_mm) for lesion in lesions]
    maps = [source.to_probabilities(stored) for stored in read_windows(source, windows)]
    labels = _labels(source, scan.within, counted_with.protocol, windows, maps)
    shown, note = behind(image, partial(_windows_in_grey, source, windows), [in_colours(one) for one in maps])
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


def _windows_in_grey(source: MapSource, windows: Sequence[Window], path: Path) -> list[Background]:
    """Windows of an image, with one contrast."""
    image = image_on(source.grid, path)
    voxels = [image.to_values(stored) for stored in read_windows(image, windows)]
    ends = contrast(np.concatenate([window.ravel() for window in voxels]).astype(np.float32))
    return [Background(shaded(window, *ends), is_image=True) for window in voxels]


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

"""A scan of a run → its count once more, from its map: with what is needed to paint candidates, or other thresholds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.detections import NEEDS_A_MAP
from lesioncount.errors import MapFileError
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.remote_path import why_gone
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.record import Entry
from lesioncount.results.recorded import Recorded
from lesioncount.results.scan_count import ScanCount
from lesioncount.runs.file_counts import count_file


def counted_again(
    scan: Entry, counted_with: Recorded, /, *, purpose: str = "to show its candidates", **options: Any
) -> ScanCount:
    """The count of a map, which must not have changed since.

    Parameters
    ----------
    scan : Entry
        Of an ensemble, its first member is counted.
    counted_with : Recorded
    purpose : str
        What the map is needed for, in case that it is gone.
    **options
        Of `count_file`, such as ``keep_runs``.
    """
    path = existing_map(scan, purpose)
    how = counted_with.reading | options
    again = count_file(path, protocol=counted_with.protocol, mask=scan.within, **how)
    if not np.array_equal(again.result.existence, scan.tables[0].existence()):
        raise MapFileError(f"The map {path} of {scan.name} has changed since it was counted. Count again.")
    return again


def painted_boxes(lesions: Iterable[LesionRow], grid: VoxelGrid) -> NDArray[np.int32]:
    """Detections in their image: in the ellipsoid that fills the box of each, its label; others have 0.

    Those with the highest probability are on top. Raise if there is no image.
    """
    if not grid.shape:
        raise MapFileError(f"{grid.path} was counted without an image. Count with --images to show its detections.")
    labels = np.zeros(grid.shape, np.int32)
    n = len(grid.shape)
    shown = [lesion for lesion in lesions if lesion.is_of_first_member and lesion.bbox]
    for lesion in sorted(shown, key=lambda one: one.existence):
        box = [int(text) for text in lesion.bbox.split()]
        sides = [end - begin for begin, end in zip(box[:n], box[n:], strict=True)]
        steps = np.ix_(*(((np.arange(side) + 0.5) * 2 / side - 1) ** 2 for side in sides))
        part = labels[tuple(map(slice, box[:n], box[n:]))]
        part[sum(steps[1:], start=steps[0]) <= 1] = lesion.label
    return labels


def existing_map(scan: Entry, purpose: str = "to show its candidates") -> Path:
    """The file of the map, which must hold what was counted; of an ensemble, that of its first member."""
    path = scan.grid.path
    if scan.files is not None and scan.files.is_table:
        raise MapFileError(f"A map of {scan.name} is needed {purpose}, {NEEDS_A_MAP}")
    if not path.exists():
        raise MapFileError(f"The map {path} of {scan.name} {why_gone(path)}, but is needed {purpose}.")
    if scan.files is not None:
        scan.files.check_unchanged()
    return path

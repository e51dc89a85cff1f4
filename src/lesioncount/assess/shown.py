"""A map, or the results of a run → what a viewer shows of each scan: the map, its candidates, their peaks and table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.recount import counted_again
from lesioncount.errors import MapFileError
from lesioncount.files import png, tiff
from lesioncount.files.formats import map_ending, scan_name
from lesioncount.files.geometry import VoxelGrid
from lesioncount.folder.plain import cells
from lesioncount.results.lesion_rows import LesionRow, lesion_rows
from lesioncount.results.record import Record, trusted_record
from lesioncount.results.record_files import folder_of
from lesioncount.results.results import read_counted
from lesioncount.results.run_file import RUN_FILE, find_run
from lesioncount.results.scan_count import ScanCount
from lesioncount.runs.file_counts import count_file


@dataclass(frozen=True, eq=False)
class ShownScan:
    """A scan with the slowest axis of its file first, so that a viewer steps through the slices of a scanner.

    Attributes
    ----------
    name : str
    probabilities, labels : ndarray
    lesions : tuple of LesionRow
        All candidates, in the order of their labels.
    peaks : ndarray, shape (n, ndim)
        Index of the peak of each.
    step_mm : tuple of float
        From voxel to voxel along each axis; negative where it runs towards right, front or head, so that patients lie
        on the screen as radiologists expect them.
    """

    name: str
    probabilities: NDArray[Any]
    labels: NDArray[np.int32]
    lesions: tuple[LesionRow, ...]
    peaks: NDArray[np.int64]
    step_mm: tuple[float, ...]

    @classmethod
    def of(cls, name: str, count: ScanCount, lesions: Sequence[LesionRow]) -> ShownScan:
        """Of a count that has kept its runs."""
        ndim, labels = len(count.source.shape), count.result.candidates.label_map()
        backwards = count.source.axis == ndim - 1  # stored with the first axis fastest
        order = tuple(range(ndim))[:: -1 if backwards else 1]
        return cls(
            name,
            count.source.probabilities().transpose(order),
            labels.transpose(order),
            tuple(lesions),
            count.result.candidates.peak_index[:, order],
            tuple(_steps(count.source.grid)[axis] for axis in order),
        )

    def features(self) -> dict[str, list[Any]]:
        """The table of the candidates, by the names of ``lesions.tsv``."""
        rows = [cells(lesion) for lesion in self.lesions]
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [math.nan if row.get(name) is None else row[name] for row in rows] for name in names}


def can_be_shown(path: Path) -> bool:
    """Whether a path is a map, a folder of results, or the record of a scan in one.

    Pictures are not: most of them are no maps, viewers open them by themselves, and nobody could give their scale.
    """
    ending = map_ending(path)
    if path.is_dir() and ending is None:
        return find_run(path) is not None
    return _is_record(path) if ending is None else ending not in (*png.ENDINGS, *tiff.ENDINGS)


def shown_scans(path: Path, *, most: int | None = None) -> Iterator[ShownScan]:
    """The scans of a folder of results, the scan of a record, or that of a map, which is counted as the paper does.

    Parameters
    ----------
    path : Path
    most : int, optional
        How many scans of a folder.
    """
    if path.is_dir() and map_ending(path) is None:
        results = read_counted(path)
        for scan in results.counted[:most]:
            yield _of_record(results.record(scan.name))
    elif _is_record(path):
        record = trusted_record(folder_of(path), path.stem, of_changes=False)
        if record is None or not record.is_ok:
            raise MapFileError(f"{path} is not the record of a scan that was counted.")
        yield _of_record(record)
    else:
        count = count_file(path, keep_runs=True)
        yield ShownScan.of(scan_name(path), count, lesion_rows([count], None))


def _of_record(record: Record) -> ShownScan:
    if record.settings is None:
        raise MapFileError(f"The record of {record.name} does not say how it was counted. Count again.")
    count = counted_again(record.summary, record.settings, purpose="to show it", keep_runs=True)
    return ShownScan.of(record.name, count, [lesion for lesion in record.lesions if lesion.is_of_first_member])


def _is_record(path: Path) -> bool:
    return (
        path.suffix == ".json"
        and path.name != RUN_FILE
        and path.is_file()
        and (run := find_run(folder_of(path))) is not None
        and not run.is_of_changes
    )


def _steps(grid: VoxelGrid) -> tuple[float, ...]:
    ndim = len(grid.shape)
    sizes = grid.spacing_mm or (1.0,) * ndim
    if grid.affine is None:
        return tuple(sizes[:ndim])
    columns = grid.affine[:3, :ndim]
    signs = np.sign(columns[np.abs(columns).argmax(axis=0), np.arange(ndim)])
    return tuple(float(-sign * size) for sign, size in zip(signs, sizes, strict=True))

"""The voxels of all candidates as runs along the columns of a sweep: to paint them, or to list them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount._kernels.slab import paint
from lesioncount.slabs import SweepPlan


@dataclass(frozen=True, eq=False, repr=False)
class VoxelRuns:
    """The runs of all regions, and which regions are rows of the table of candidates.

    Attributes
    ----------
    table : array of RUN
    n_regions : int
    kept : array of int, or slice
        The region of each row.
    """

    table: NDArray[Any]
    n_regions: int
    kept: NDArray[np.intp] | slice

    def paint(self, plan: SweepPlan, shape: tuple[int, ...], values: NDArray[np.int32]) -> NDArray[np.int32]:
        """A new array of the map's shape with one value in the voxels of each row, and 0 outside."""
        ordered = np.zeros([shape[axis] for axis in plan.axes], dtype=np.int32)
        paint(self.table.view(np.uint8), self._of_regions(values, outside=0), ordered.reshape(-1))
        return ordered.transpose(np.argsort(plan.axes))

    def voxels(
        self, plan: SweepPlan, shape: tuple[int, ...], n_rows: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The row of each voxel, (n,), and its index in the map, (n, ndim); row after row."""
        row_of_run = self._of_regions(np.arange(n_rows, dtype=np.int32), outside=-1)[self.table["region"]]
        runs, rows = self.table[row_of_run >= 0], row_of_run[row_of_run >= 0]
        order = np.argsort(rows, kind="stable")
        runs, rows = runs[order], rows[order]
        lengths = runs["length"].astype(np.int64)
        begins = np.repeat(runs["start"] - (np.cumsum(lengths) - lengths), lengths)
        swept = np.unravel_index(begins + np.arange(int(lengths.sum())), [shape[axis] for axis in plan.axes])
        return np.repeat(rows, lengths), np.stack(swept, axis=1)[:, np.argsort(plan.axes)]

    def _of_regions(self, values: NDArray[np.int32], *, outside: int) -> NDArray[np.int32]:
        """What each region has, given what rows have; something else for those that were dropped."""
        found = np.full(self.n_regions, outside, dtype=np.int32)
        found[self.kept] = values
        return found

"""The voxels of all candidates as runs along the columns of a sweep: to paint them, or to list them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount._kernels.slab import paint
from lesioncount.sweep.slabs import SweepPlan


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

    def blocks(
        self, plan: SweepPlan, shape: tuple[int, ...], values: NDArray[np.int32], chunks: tuple[int, ...]
    ) -> Iterator[tuple[tuple[slice, ...], NDArray[np.int32]]]:
        """The same array in chunks: the places and values of those that hold something else than 0."""
        axes, back = list(plan.axes), np.argsort(plan.axes)
        sides, sizes = np.array(shape)[axes], np.array(chunks)[axes]
        of_regions = self._of_regions(values, outside=0)
        runs = _cut(self.table[of_regions[self.table["region"]] != 0], int(sides[-1]), int(sizes[-1]))
        index = np.stack(np.unravel_index(runs["start"], sides), axis=1)
        chunk = index // sizes
        order = np.lexsort(chunk.T[::-1])
        runs, index, chunk = runs[order], index[order], chunk[order]
        edges = np.flatnonzero(np.diff(chunk, axis=0, prepend=-1).any(axis=1)).tolist()
        for begin, end in itertools.pairwise([*edges, len(runs)]):
            low = chunk[begin] * sizes
            high = np.minimum(low + sizes, sides)
            inner = runs[begin:end]
            inner["start"] = np.ravel_multi_index(tuple((index[begin:end] - low).T), tuple(high - low))
            block = np.zeros(high - low, np.int32)
            paint(inner.view(np.uint8), of_regions, block.reshape(-1))
            places = [slice(*ends) for ends in zip(low.tolist(), high.tolist(), strict=True)]
            yield tuple(places[axis] for axis in back), block.transpose(back)

    def at_coarser(self, plan: SweepPlan, shape: tuple[int, ...], coarser: tuple[int, ...]) -> VoxelRuns:
        """The runs of the same map in fewer voxels: those in the middle of the coarser ones, as labels have no mean."""
        sides, fewer = ([of[axis] for axis in plan.axes] for of in (shape, coarser))
        middles = [middle_voxels(n, m) for n, m in zip(sides, fewer, strict=True)]
        index = np.unravel_index(self.table["start"], sides)
        ends = index[-1] + self.table["length"].astype(np.int64)
        begins, lines = np.searchsorted(middles[-1], index[-1]), []
        lengths = np.searchsorted(middles[-1], ends) - begins
        is_met = lengths > 0
        for place, middle in zip(index[:-1], middles[:-1], strict=True):
            line = np.searchsorted(middle, place)
            is_met &= middle[np.minimum(line, len(middle) - 1)] == place
            lines.append(line)
        table = self.table[is_met]
        table["start"] = np.ravel_multi_index([one[is_met] for one in (*lines, begins)], fewer)
        table["length"] = lengths[is_met]
        return replace(self, table=table)

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


def middle_voxels(n: int, n_coarser: int) -> NDArray[np.int64]:
    """Of so many voxels in a line, the ones in the middle of fewer, longer voxels.

    Examples
    --------
    >>> middle_voxels(8, 4)
    array([1, 3, 5, 7])
    """
    return ((np.arange(n_coarser) + 0.5) * (n / n_coarser)).astype(np.int64)


def _cut(runs: NDArray[Any], width: int, chunk: int) -> NDArray[Any]:
    """Runs of rows of so many columns, cut where chunks end."""
    first = runs["start"] % width
    n_parts = (first + runs["length"] - 1) // chunk - first // chunk + 1
    part = np.arange(int(n_parts.sum())) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
    first, cut = np.repeat(first, n_parts), np.repeat(runs, n_parts)
    begin = np.where(part == 0, first, (first // chunk + part) * chunk)
    end = np.minimum(first + cut["length"], (first // chunk + part + 1) * chunk)
    cut["start"] += begin - first
    cut["length"] = end - begin
    return cut

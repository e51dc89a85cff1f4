"""Boxes of a map → bricks that add along any axis → the regions of the map, or the regions of their peaks.

A *brick* is a box of voxels with the regions found in it, and its faces: the voxels above the threshold in the
outermost layers, as far as there is more of the map beyond them. Two bricks add where their boxes share a whole face,
so that the sum is a box again: regions that touch across the seam become one, and of the faces those of the larger
box are left. A region without a voxel in a face is complete: nothing can touch it any more.

However a box is cut in two, and its halves again, no contact is missed. Let p and q be neighbours by any
connectivity, in two different bricks, and A + B the smallest sum that holds both, p in A and q in B. A and B adjoin
along one axis, so that p and q differ in it by exactly 1: p is in the last layer of A and q in the first of B. Both
layers are faces, since each has more of the map beyond it, and so they are still kept. Here all pairs of voxels are
compared that differ by 1 along this axis and, as far as the connectivity says, along the two others: also those
across edges and corners of bricks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount._kernels.seam import join_regions
from lesioncount._kernels.slab import Slab, slab_of
from lesioncount.sweep.boxes import Box
from lesioncount.sweep.diagnosis import explain_bad_voxels
from lesioncount.sweep.faces import FACE, faces_of, is_in_face, touching
from lesioncount.sweep.peaks import Found, joined, split_into_peaks
from lesioncount.sweep.slabs import REGION, RUN, BadVoxels, SweepPlan


@dataclass(frozen=True, eq=False)
class Brick:
    """A box of a map, and what was found in it. All positions are those in the whole map.

    Attributes
    ----------
    box : Box
    table : array of REGION
        A row for each region that is open: it has voxels in a face.
    faces : array of FACE
    runs : array of RUN, or None
        All voxels of open regions, where they are needed later: to find peaks, or to paint label maps.
    keys : array of unsigned integers, or None
        The keys of these voxels, run after run, in as few bytes as they need; to find peaks.
    complete : Found
        All other regions, or the regions of their peaks.
    """

    box: Box
    table: NDArray[Any]
    faces: NDArray[Any]
    runs: NDArray[Any] | None
    keys: NDArray[Any] | None
    complete: Found


@dataclass(frozen=True)
class BrickSum:
    """How the bricks of a map are found, and added up.

    Parameters
    ----------
    plan : SweepPlan
        With the axes of the map in their own order.
    keep_runs : bool
        Whether to keep what is needed to paint a label map.
    """

    plan: SweepPlan
    keep_runs: bool = False

    @property
    def whole(self) -> Box:
        """The box of the whole map."""
        return Box.whole(self.plan.shape)

    def sweep(self, voxels: NDArray[Any], mask: NDArray[np.bool_] | None, box: Box) -> Brick:
        """The brick of a box, whose voxels have the axes of the map."""
        try:
            slab = self.plan.sweep(voxels, mask, box.low[0])
        except BadVoxels:
            explain_bad_voxels(voxels, mask, self.plan.encoding, box.first(voxels.ndim))
        return self._brick_of(slab, box)

    def nothing(self, box: Box, *, has_soft: bool = False, has_gray: bool = False) -> Brick:
        """The brick of a box without regions."""
        table, runs = np.zeros(0, REGION), np.zeros(0, RUN)
        found = Found(table, None, runs if self.keep_runs else None, has_soft, has_gray)
        keys = np.zeros(0, self._key_dtype) if self.plan.protocol.has_peaks else None
        return Brick(box, table, np.zeros(0, FACE), self._if_needed(runs), keys, found)

    def add(self, one: Brick, other: Brick) -> Brick:
        """The brick of two boxes, the second of which follows the first along one axis."""
        axis, box = one.box.joined_with(other.box)
        before, after = touching(one.faces, other.faces, axis, other.box.low[axis], self.whole, self._neighbours)
        shift = np.int32(len(one.table))
        table = np.concatenate([one.table, other.table])
        number = np.zeros(len(table), np.int32)
        if len(table):
            table = table[: join_regions(table.view(np.uint8), before, after + shift, number)]
        faces = _numbered(one.faces, other.faces, shift, number)
        faces = faces[is_in_face(faces["at"], box, self.whole)]
        runs = None if one.runs is None or other.runs is None else _numbered(one.runs, other.runs, shift, number)
        keys = None if one.keys is None or other.keys is None else np.concatenate([one.keys, other.keys])
        return self._settled(Brick(box, table, faces, runs, keys, joined([one.complete, other.complete])))

    def finish(self, brick: Brick) -> Found:
        """What was found in the whole map, given its brick."""
        if brick.box != self.whole:
            raise ValueError(f"a brick of {brick.box} is not that of the whole map, {self.whole}")
        return replace(brick.complete, is_in_order=False)

    def _brick_of(self, slab: Slab, box: Box) -> Brick:
        nothing = self.nothing(box, has_soft=slab.has_soft, has_gray=slab.has_gray)
        keys = nothing.keys
        if keys is not None:
            keys = np.frombuffer(slab.kept_keys(), np.uint64).astype(keys.dtype)
        table, runs = (np.frombuffer(*part).copy() for part in zip(slab.finish(), (REGION, RUN), strict=True))
        self._place(table, box)
        index = _first_voxels(runs, box)
        faces = faces_of(runs, index, box, self.whole)
        runs["start"] = np.ravel_multi_index(tuple(index.T), self.whole.sides)
        return self._settled(replace(nothing, table=table, faces=faces, runs=self._if_needed(runs), keys=keys))

    def _place(self, table: NDArray[Any], box: Box) -> None:
        """Count rows and columns from those of the map, no longer from those of the box."""
        _, row, column = box.low
        _, per_row, per_column = self.plan.weights
        for name in ("peak_at", "first_at"):
            table[name] += row * per_row + column * per_column
        for axis, first in ((1, row), (2, column)):
            table["total"][:, axis] += table["n_voxels"] * first
            table["low"][:, axis] += first
            table["high"][:, axis] += first

    def _settled(self, brick: Brick) -> Brick:
        """The same brick, in which regions without a voxel in a face are complete."""
        is_open = np.zeros(len(brick.table), bool)
        is_open[brick.faces["region"]] = True
        if is_open.all():
            return brick
        done = self._found(*_chosen(brick, ~is_open))
        table, runs, keys = _chosen(brick, is_open)
        faces = brick.faces.copy()
        faces["region"] = _numbers(is_open)[faces["region"]]
        return Brick(brick.box, table, faces, runs, keys, joined([brick.complete, done]))

    def _found(self, table: NDArray[Any], runs: NDArray[Any] | None, keys: NDArray[Any] | None) -> Found:
        """Complete regions, or the regions of their peaks."""
        if runs is None:
            return Found(table, None, None)
        runs, keys = _in_order(runs, keys)
        if keys is None:
            return Found(table, None, runs)
        planes, rows, columns = self.whole.sides
        slab = slab_of(
            table.view(np.uint8),
            runs.view(np.uint8),
            keys.astype(np.uint64),
            n_planes=planes,
            n_rows=rows,
            n_columns=columns,
            neighbours=self._neighbours,
        )
        found = split_into_peaks(slab, self.plan)
        return found if self.keep_runs else replace(found, runs=None)

    @property
    def _neighbours(self) -> int:
        return self.plan.protocol.neighbours(len(self.plan.shape))

    @property
    def _key_dtype(self) -> np.dtype[Any]:
        return np.dtype(f"u{self.plan.encoding.converted().dtype.itemsize}")

    def _if_needed(self, runs: NDArray[Any]) -> NDArray[Any] | None:
        return runs if self.keep_runs or self.plan.protocol.has_peaks else None


def _first_voxels(runs: NDArray[Any], box: Box) -> NDArray[np.int64]:
    """Plane, row and column in the map, (n, 3), of runs that were swept with the rows and columns of a box alone."""
    rows, columns = np.divmod(runs["start"], box.sides[2])
    planes, rows = np.divmod(rows, box.sides[1])
    return np.stack([planes, rows + box.low[1], columns + box.low[2]], axis=1)


def _numbered(one: NDArray[Any], other: NDArray[Any], shift: np.int32, number: NDArray[np.int32]) -> NDArray[Any]:
    """Faces or runs of two bricks, with the rows of their common table."""
    both = np.concatenate([one, other])
    both["region"][len(one) :] += shift
    both["region"] = number[both["region"]]
    return both


def _numbers(chosen: NDArray[np.bool_]) -> NDArray[np.int32]:
    """The numbers that chosen rows have, if the others are left out."""
    numbers: NDArray[np.int32] = np.cumsum(chosen, dtype=np.int32) - np.int32(1)
    return numbers


def _chosen(
    brick: Brick, is_chosen: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[Any] | None, NDArray[Any] | None]:
    """The table of some open regions, and their runs and keys."""
    table, runs, keys = brick.table[is_chosen], brick.runs, brick.keys
    if runs is None:
        return table, None, None
    is_theirs = is_chosen[runs["region"]]
    keys = None if keys is None else keys[np.repeat(is_theirs, runs["length"])]
    runs = runs[is_theirs]
    runs["region"] = _numbers(is_chosen)[runs["region"]]
    return table, runs, keys


def _in_order(runs: NDArray[Any], keys: NDArray[Any] | None) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Runs in the order of the sweep of the whole map, and the keys of their voxels with them."""
    order = np.argsort(runs["start"], kind="stable")
    lengths = runs["length"].astype(np.int64)
    begins = np.cumsum(lengths) - lengths
    runs, lengths, begins = runs[order], lengths[order], begins[order]
    if keys is None:
        return runs, None
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return runs, keys[np.repeat(begins, lengths) + within]

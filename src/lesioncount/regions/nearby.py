"""What lies near candidates, within so many millimetres."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.candidates import Candidates
from lesioncount.errors import MapError
from lesioncount.sweep.sizes import VoxelSize

# As many look-ups at once as memory has room for beside maps: some 30 MB.
_AT_ONCE = 1 << 20

# A distance that is a whole number of voxels must not be lost to rounding of voxel sizes, which are single precision.
_ROUNDING = 1e-4

# Voxels of the largest ball: 40 mm around a voxel of half a millimetre. Of more, the list alone fills the memory.
_LARGEST = 1 << 22


@dataclass(frozen=True, eq=False)
class Ball:
    """The steps from a voxel to all that are at most so far away, the nearest first.

    Attributes
    ----------
    steps : ndarray of int, shape (m, ndim)
        The first is no step at all.
    distance_mm : ndarray of float, shape (m,)
    """

    steps: NDArray[np.int64]
    distance_mm: NDArray[np.float64]

    @classmethod
    def of(cls, radius_mm: float, voxel: VoxelSize) -> Ball:
        """Of a radius, on a grid of this voxel size."""
        if not 0 <= radius_mm < math.inf:
            raise MapError(f"Expected a distance of at least 0 mm, but got {radius_mm!r}.")
        within = radius_mm * (1 + _ROUNDING)
        reach = voxel.reach(within)
        if math.prod(2 * n + 1 for n in reach) > _LARGEST:
            raise MapError(
                f"A distance of {radius_mm:g} mm is {max(reach)} voxels of {min(voxel.spacing_mm):g} mm, too many to "
                "look at around each candidate. Is the voxel size right? If so, search less far (--tolerance-mm)."
            )
        steps = np.stack(np.meshgrid(*(np.arange(-n, n + 1) for n in reach), indexing="ij"), axis=-1)
        steps = steps.reshape(-1, len(reach))
        distance = voxel.lengths_mm(steps)
        order = np.argsort(distance, kind="stable")
        order = order[distance[order] <= within]
        return cls(steps[order], distance[order])

    def along(self, axes: NDArray[np.intp]) -> Ball:
        """The same steps on a grid whose axes are in another order."""
        return Ball(self.steps[:, axes], self.distance_mm)

    def around(self, index: NDArray[np.int64], shape: tuple[int, ...]) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """For some voxels at a time: which, and the positions in C order of all around them, (m, n).

        Steps that lead out of the map stay at its edge, which is no farther away.
        """
        at_once = max(1, _AT_ONCE // len(self.steps))
        reach, sizes = self.steps.max(axis=0), np.array(shape)
        per_step = np.cumprod([1, *shape[:0:-1]])[::-1]
        for begin in range(0, len(index), at_once):
            some = slice(begin, min(begin + at_once, len(index)))
            here = index[some]
            if ((here >= reach) & (here < sizes - reach)).all():  # mostly: one addition instead of nine operations
                yield some, (self.steps @ per_step)[:, None] + here @ per_step
            else:
                yield some, self._clipped(here, shape)

    def _clipped(self, index: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
        position = np.zeros((len(self.steps), len(index)), dtype=np.int64)
        for axis, n in enumerate(shape):
            position *= n
            position += np.clip(index[:, axis] + self.steps[:, axis, None], 0, n - 1)
        return position


def highest_near(values: NDArray[Any], index: NDArray[np.int64], ball: Ball) -> NDArray[Any]:
    """The highest value of a map around each of some voxels, (n, ndim)."""
    highest, axes = np.empty(len(index), dtype=values.dtype), axes_in_memory(values)
    ordered = values.transpose(axes)
    flat = ordered.reshape(-1)
    for some, position in ball.along(axes).around(index[:, axes], ordered.shape):
        highest[some] = flat[position].max(axis=0)
    return highest


def axes_in_memory(values: NDArray[Any]) -> NDArray[np.intp]:
    """The axes of an array, the slowest first: so ordered, one of NIfTI is flattened without a copy, too."""
    return np.argsort([-step for step in values.strides], kind="stable")


def voxel_size_of(candidates: Candidates) -> VoxelSize:
    """The voxel size of the map of candidates; 1 along each axis where it is unknown."""
    n = len(candidates.shape)
    return VoxelSize(np.ones(n), n) if candidates.voxel_size is None else candidates.voxel_size

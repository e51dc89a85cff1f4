"""Boxes of voxels: parts of a map that is cut along any of its axes."""

from __future__ import annotations

import math
from dataclasses import dataclass

Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Box:
    """Planes, rows and columns of a map from ``low`` on, before ``high``. A 2-D map has planes of a single row."""

    low: Triple
    high: Triple

    @classmethod
    def whole(cls, shape: tuple[int, ...]) -> Box:
        """The box of a map of two or three axes."""
        return cls((0, 0, 0), (shape[0], 1 if len(shape) == 2 else shape[1], shape[-1]))

    @property
    def sides(self) -> Triple:
        """How many planes, rows and columns."""
        low, high = self.low, self.high
        return high[0] - low[0], high[1] - low[1], high[2] - low[2]

    @property
    def n_voxels(self) -> int:
        """How many voxels it holds."""
        return math.prod(self.sides)

    def index(self, ndim: int) -> tuple[slice, ...]:
        """The same as slices of a map of two or three axes."""
        slices = tuple(slice(low, high) for low, high in zip(self.low, self.high, strict=True))
        return slices if ndim == 3 else (slices[0], slices[2])

    def first(self, ndim: int) -> tuple[int, ...]:
        """The index of its first voxel in a map of two or three axes."""
        return self.low if ndim == 3 else (self.low[0], self.low[2])

    def cut(self, axis: int, at: int) -> tuple[Box, Box]:
        """The two parts before and after a plane, row or column."""
        return Box(self.low, _changed(self.high, axis, at)), Box(_changed(self.low, axis, at), self.high)

    def joined_with(self, other: Box) -> tuple[int, Box]:
        """The axis along which another box follows this one, and the box of both."""
        both = Box(self.low, other.high)
        for axis in range(3):
            if both.cut(axis, self.high[axis]) == (self, other):
                return axis, both
        raise ValueError(f"{other} does not follow {self}: bricks add where they share a whole face")


def _changed(corner: Triple, axis: int, value: int) -> Triple:
    changed = list(corner)
    changed[axis] = value
    return changed[0], changed[1], changed[2]

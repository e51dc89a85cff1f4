"""Voxels of one lattice in another order: axes swapped or reversed, slices left out. DICOM and NIfTI differ so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ShapeError
from lesioncount.files.geometry import VoxelGrid

# How far voxels may lie from where they should, as a share of their size: what rounding of headers makes of positions.
_OFF = 0.01

# Two volumes of a patient lie in a box that is not much larger than they are together.
_ROOM = 8


@dataclass(frozen=True)
class Placement:
    """Where the voxels of one grid lie in another whose voxels are the same.

    Attributes
    ----------
    shape : tuple of int
        Of the other grid.
    axes : tuple of int
        Which axis of the first each axis of the other is.
    is_reversed : tuple of bool
        Whether that axis runs the other way.
    begin, end : tuple of int
        Where the first voxel lies in the other grid, and where they end; outside of it where they are more.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    is_reversed: tuple[bool, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]

    @property
    def is_inside(self) -> bool:
        """Whether the other grid holds all voxels."""
        return min(self.begin) >= 0 and all(end <= n for end, n in zip(self.end, self.shape, strict=True))

    def turned(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the first grid, along the axes of the other."""
        steps = tuple(slice(None, None, -1 if backwards else 1) for backwards in self.is_reversed)
        turned: NDArray[Any] = values.transpose(self.axes)[steps]
        return turned

    def covering(self, values: NDArray[Any]) -> tuple[NDArray[Any], tuple[slice, ...]]:
        """Values of the first grid in a box that holds both, 0 elsewhere; and where the other grid lies in it."""
        low = np.minimum(0, self.begin)
        size = np.maximum(self.shape, self.end) - low
        if math.prod(size.tolist()) > _ROOM * (math.prod(self.shape) + values.size):
            raise ShapeError(f"Two volumes do not lie in one patient: a box around them has {tuple(size)} voxels.")
        box = np.zeros(size, values.dtype)
        box[_between(self.begin - low, self.end - low)] = self.turned(values)
        return box, _between(-low, np.array(self.shape) - low)

    def on_grid(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the first grid on the other: 0 where there are none, without those that lie outside."""
        box, where = self.covering(values)
        return box[where]


def _between(begin: Any, end: Any) -> tuple[slice, ...]:
    return tuple(slice(int(first), int(last)) for first, last in zip(begin, end, strict=True))


def place(grid: VoxelGrid, other: VoxelGrid, what: str) -> Placement:
    """Where a grid lies in another; raise unless they are parts of one lattice of voxels in space.

    Parameters
    ----------
    grid, other : VoxelGrid
    what : str
        The first, in the words of a message: "the mask".
    """
    if grid.affine is None or other.affine is None:
        unplaced = grid if grid.affine is None else other
        raise ShapeError(f"{unplaced.path} does not say where its voxels lie: {unplaced.why_unplaced}.")
    if len(grid.shape) != 3 or len(other.shape) != 3:
        raise ShapeError(f"Expected volumes, but {grid.path} has {grid.shape} and {other.path} {other.shape} voxels.")
    step = np.linalg.solve(other.affine, grid.affine)  # from an index of the grid to one of the other
    turn = np.round(step[:3, :3])
    is_turn = bool((np.abs(turn).sum(axis=0) == 1).all() and (np.abs(turn).sum(axis=1) == 1).all())
    corners = np.array(np.meshgrid(*[(0, n - 1) for n in grid.shape], indexing="ij")).reshape(3, -1)
    exact = step[:3, :3] @ corners + step[:3, 3:]
    rounded = np.round(turn @ corners + np.round(step[:3, 3:]))
    if not is_turn or np.abs(exact - rounded).max() > _OFF:
        raise ShapeError(
            f"Expected {what} on the voxels of {other.path}, but those of {grid.path} lie elsewhere.\n"
            f"Shape {grid.shape}, affine:\n{grid.affine}\nShape {other.shape}, affine:\n{other.affine}"
        )
    axes = np.abs(turn).argmax(axis=1)
    begin, end = rounded.min(axis=1).astype(int), rounded.max(axis=1).astype(int) + 1
    backwards = turn[np.arange(3), axes] < 0
    return Placement(other.shape, *(tuple(part.tolist()) for part in (axes, backwards, begin, end)))

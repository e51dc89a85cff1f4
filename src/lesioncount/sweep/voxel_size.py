"""How large a voxel is: the lengths of its edges, its volume, and how far it is from voxel to voxel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

# Affines in headers have about seven digits: edges whose angle has a smaller cosine are perpendicular.
_PERPENDICULAR = 1e-4


@dataclass(frozen=True, eq=False)
class VoxelSize:
    """The size of all voxels of a grid, which may be sheared, as of a CT with a tilted gantry.

    Parameters
    ----------
    given : ndarray of float64, shape (n,) or (n, n)
        The lengths of edges that are perpendicular, or edges as the columns of a matrix. A picture may have a third
        length, the thickness of its slice.
    ndim : int
        Number of axes.

    Examples
    --------
    >>> tilted = VoxelSize(np.array([[1, 0, 0], [0, 1, 0.75], [0, 0, 1]]), 3)
    >>> tilted.spacing_mm, tilted.volume_mm3
    ((1.0, 1.0, 1.25), 1.0)
    """

    given: NDArray[np.float64]
    ndim: int

    @cached_property
    def spacing_mm(self) -> tuple[float, ...]:
        """The length of each edge."""
        is_matrix = self.given.ndim == 2
        return tuple((np.sqrt((self.given**2).sum(axis=0)) if is_matrix else self.given).tolist())

    @cached_property
    def volume_mm3(self) -> float:
        """The volume of a voxel; a picture without a thickness is 1 mm thick."""
        return abs(float(np.linalg.det(self.given))) if self.given.ndim == 2 else math.prod(self.spacing_mm)

    @cached_property
    def edges_mm(self) -> NDArray[np.float64]:
        """The edges as columns: a step of so many voxels along each axis is ``edges_mm @ step`` in millimetres."""
        perpendicular = np.diag(self.spacing_mm[: self.ndim])
        if self.given.ndim == 1:
            return perpendicular
        directions = self.given / self.spacing_mm
        is_sheared = np.abs(directions.T @ directions - np.eye(self.ndim)).max() > _PERPENDICULAR
        return self.given if is_sheared else perpendicular

    def lengths_mm(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """How long steps between voxels are, (m, n)."""
        lengths: NDArray[np.float64] = np.sqrt(((steps @ self.edges_mm.T) ** 2).sum(axis=1))
        return lengths

    def reach(self, radius_mm: float) -> list[int]:
        """How many voxels a ball reaches along each axis, from its centre."""
        # The planes of voxels along an axis are as far apart as its row of the inverse is short.
        per_mm = np.sqrt((np.linalg.inv(self.edges_mm) ** 2).sum(axis=1))
        return [int(radius_mm * n) for n in per_mm.tolist()]

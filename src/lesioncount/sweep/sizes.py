"""The smallest size of a protocol → which regions reach it."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.protocol import CountingProtocol

# Voxel sizes come from files as single precision: a candidate of exactly the smallest size must not be dropped for it.
_SIZE_ROUNDING = 1e-6


@dataclass(frozen=True)
class SmallestSize:
    """What a region must reach to be a candidate, where there is a smallest size.

    Parameters
    ----------
    protocol : CountingProtocol
    axes : tuple of int
        The axes of the map in the order of the sweep, whose tables it is asked about.
    voxel : VoxelSize, or None
        Must be known if the protocol has a size in millimetres.
    """

    protocol: CountingProtocol
    axes: tuple[int, ...]
    voxel: VoxelSize | None

    def __bool__(self) -> bool:
        return self.protocol.min_voxels > 1 or self.protocol.needs_spacing

    def is_reached_by(self, table: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Which regions of a table reach it; None when there is none to reach."""
        if not self:
            return None
        columns = (0, 1, 2) if len(self.axes) == 3 else (0, 2)  # planes, rows and columns; 2-D maps have no rows
        sides = (table["high"] - table["low"] + 1)[:, columns][:, np.argsort(self.axes)]
        return self._is_reached(table["n_voxels"], sides)

    def n_voxels(self, most: int) -> int:
        """How many voxels reach it, however long they are; more than ``most`` if so many do not."""

        def is_reached(n: int) -> bool:
            return bool(self._is_reached(np.array([n]), np.full((1, len(self.axes)), 2**31))[0])

        return bisect_left(range(most + 1), True, key=is_reached)

    @property
    def length_mm(self) -> float:
        """Of the longest side."""
        return 0.0 if self.voxel is None else self.protocol.min_length_mm * (1 - _SIZE_ROUNDING)

    @property
    def swept_spacing_mm(self) -> tuple[float, float, float]:
        """Voxel sizes along planes, rows and columns of the sweep; 0 where there are none."""
        sizes = [0.0 if self.voxel is None else self.voxel.spacing_mm[axis] for axis in self.axes]
        return (sizes[0], sizes[1], sizes[2]) if len(sizes) == 3 else (sizes[0], 0.0, sizes[1])

    def _is_reached(self, n_voxels: NDArray[np.int64], sides: NDArray[np.integer]) -> NDArray[np.bool_]:
        return large_enough(n_voxels, sides, self.protocol, self.voxel)


def large_enough(
    n_voxels: NDArray[np.int64],
    sides: NDArray[np.integer],
    protocol: CountingProtocol,
    voxel: VoxelSize | None,
    /,
) -> NDArray[np.bool_]:
    """Which regions reach the smallest size of a protocol.

    Parameters
    ----------
    n_voxels : array of int, shape (n,)
    sides : array of int, shape (n, ndim)
        Of their bounding boxes along the axes of the map, in voxels.
    protocol : CountingProtocol
    voxel : VoxelSize, or None
        Looked at if the protocol has a size in millimetres.
    """
    kept: NDArray[np.bool_] = n_voxels >= protocol.min_voxels
    if protocol.needs_spacing and voxel is not None:
        slack, volume, ndim = 1 - _SIZE_ROUNDING, n_voxels * np.float64(voxel.volume_mm3), sides.shape[1]
        kept &= volume >= protocol.min_volume_mm3 * slack
        kept &= equivalent_diameter(volume, voxel.spacing_mm, ndim) >= protocol.min_diameter_mm * slack
        kept &= (sides * voxel.spacing_mm[:ndim]).max(axis=1) >= protocol.min_length_mm * slack
    return kept


def equivalent_diameter(
    volume_mm3: NDArray[np.float64], spacing_mm: tuple[float, ...] | None, ndim: int
) -> NDArray[np.float64]:
    """Of the ball, in 2-D of the disc, of the same volume."""
    if ndim == 3:
        return np.cbrt(6 * volume_mm3 / math.pi)
    thickness = spacing_mm[2] if spacing_mm is not None and len(spacing_mm) == 3 else 1.0
    return np.sqrt(4 * volume_mm3 / thickness / math.pi)


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

"""Places in the head, in millimetres: all voxels of a scan, or a few points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import CohortError

# What a scan shows, whatever its number of voxels: all of a brain from front to back and from side to side, and the
# part of its height in which most white matter is. At 24 × 48 × 40, voxels are cubes of 3.5 mm.
FIELD_OF_VIEW_MM = (84.0, 168.0, 140.0)

# The volume of such a cube. Sizes of lesions were chosen in these voxels.
REFERENCE_VOXEL_MM3 = 3.5**3

# Fewer voxels along an axis show no brain.
_SMALLEST_SHAPE = 8

Coordinates = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]
Bases = Sequence[NDArray[np.float64]]
Window = tuple[slice, slice, slice]


class Places(Protocol):
    """Somewhere in the head, where anatomy can be asked for."""

    @property
    def coordinates(self) -> Coordinates:
        """Millimetres from the centre along z, y and x (up, forward, right); three arrays that broadcast."""

    @property
    def axes(self) -> Bases:
        """The same as three vectors."""

    def contracted(self, coefficients: NDArray[np.float64], bases: Bases) -> NDArray[np.float32]:
        """The sum of products of one function per axis, given by their values along each axis."""


@dataclass(frozen=True)
class Points:
    """Some points.

    Parameters
    ----------
    places_mm : ndarray, shape (n, 3)
        Along z, y, x.
    """

    places_mm: NDArray[np.float64]

    @property
    def coordinates(self) -> Coordinates:
        """Three vectors of n numbers."""
        z, y, x = self.places_mm.T.astype(np.float32)
        return z, y, x

    @property
    def axes(self) -> Bases:
        """The same in double precision."""
        return tuple(self.places_mm.T)

    def contracted(self, coefficients: NDArray[np.float64], bases: Bases) -> NDArray[np.float32]:
        """One value per point."""
        along_x = np.tensordot(bases[0], coefficients, axes=(1, 0))
        for basis in bases[1:]:
            along_x = np.einsum("nk,nk...->n...", basis, along_x)
        return np.asarray(along_x, dtype=np.float32)


@dataclass(frozen=True)
class Lattice:
    """The voxels of a scan, which fill the field of view.

    Parameters
    ----------
    shape : tuple of int
        Number of voxels along z, y, x.

    Examples
    --------
    >>> Lattice((24, 48, 40)).spacing_mm
    (3.5, 3.5, 3.5)
    """

    shape: tuple[int, int, int]

    def __post_init__(self) -> None:
        """Refuse what shows no brain."""
        if len(self.shape) != 3 or min(self.shape) < _SMALLEST_SHAPE:
            raise CohortError(
                f"Expected a shape of three numbers (z, y, x) of at least {_SMALLEST_SHAPE}, but got {self.shape}."
            )

    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        """Voxel size along z, y, x."""
        z, y, x = (extent / n for extent, n in zip(FIELD_OF_VIEW_MM, self.shape, strict=True))
        return z, y, x

    @property
    def affine(self) -> NDArray[np.float64]:
        """From voxel index in the order of NIfTI (x, y, z) to millimetres in RAS orientation, shape (4, 4)."""
        affine = np.diag([*self.spacing_mm[::-1], 1.0])
        affine[:3, 3] = [axis[0] for axis in self.axes[::-1]]
        return affine

    @cached_property
    def axes(self) -> Bases:
        """Where the centres of voxels lie along each axis."""
        return tuple(
            ((np.arange(n) + 0.5) / n - 0.5) * extent for extent, n in zip(FIELD_OF_VIEW_MM, self.shape, strict=True)
        )

    @cached_property
    def coordinates(self) -> Coordinates:
        """Three arrays of shapes (z, 1, 1), (1, y, 1) and (1, 1, x)."""
        z, y, x = (axis.astype(np.float32) for axis in self.axes)
        return z[:, None, None], y[None, :, None], x[None, None, :]

    def contracted(self, coefficients: NDArray[np.float64], bases: Bases) -> NDArray[np.float32]:
        """One value per voxel. The last axis comes last: it has most values to make."""
        z, y, x = bases
        planes = np.tensordot(z, np.tensordot(coefficients, y, axes=(1, 1)), axes=(1, 0))  # (z, kx, y)
        return np.asarray(planes.transpose(0, 2, 1) @ x.T, dtype=np.float32)

    def window(self, centre_mm: NDArray[np.float64], reach_mm: float) -> Window:
        """The voxels within a box around a place; at least the nearest one."""
        bounds = []
        for place, spacing, extent, n in zip(centre_mm, self.spacing_mm, FIELD_OF_VIEW_MM, self.shape, strict=True):
            index = (place + extent / 2) / spacing - 0.5
            nearest = min(max(round(float(index)), 0), n - 1)
            first = min(max(int(np.ceil(index - reach_mm / spacing)), 0), nearest)
            last = max(min(int(np.floor(index + reach_mm / spacing)), n - 1), nearest)
            bounds.append(slice(first, last + 1))
        z, y, x = bounds
        return z, y, x

    def offsets(self, window: Window, centre_mm: NDArray[np.float64]) -> Coordinates:
        """Millimetres from a place to the voxels of a window, as three arrays that broadcast."""
        z, y, x = (
            (axis[part] - place).astype(np.float32)
            for axis, part, place in zip(self.axes, window, centre_mm, strict=True)
        )
        return z[:, None, None], y[None, :, None], x[None, None, :]

"""Places of voxels in the patient: millimetres in RAS orientation (right, anterior, superior)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ShapeError

# Affines of the same grid, written by different programs, agree to about single precision.
_SAME_PLACE_MM = 1e-3


def to_ras_mm(affine: NDArray[np.float64] | None, index: NDArray[Any]) -> NDArray[np.float64]:
    """Voxel indices (n, 2 or 3) → millimetres (n, 3); NaN when the place is unknown."""
    index = np.asarray(index, dtype=np.float64)
    if affine is None:
        return np.full((len(index), 3), np.nan)
    n_axes = index.shape[1]
    place: NDArray[np.float64] = index @ affine[:3, :n_axes].T + affine[:3, 3]
    return place


class Grid(Protocol):
    """Where voxels lie: what a map in a file, and the record of one, both know."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of voxels along each axis."""

    @property
    def affine(self) -> NDArray[np.float64] | None:
        """From voxel index to millimetres."""

    @property
    def spacing_mm(self) -> tuple[float, ...] | None:
        """Voxel size along each axis."""


def check_same_grid(source: Grid, other: Grid, what: str) -> None:
    """Raise unless another map (a mask, an image) lies voxel on voxel with this one."""
    if source.shape != other.shape:
        raise ShapeError(
            f"Expected {what} on the grid of the map, but {other.path} has shape {other.shape} and {source.path} has "
            f"{source.shape}. Resample it to the map first."
        )
    if source.affine is None or other.affine is None:
        return
    corners = np.array(np.meshgrid(*[(0, n - 1) for n in source.shape], indexing="ij")).reshape(len(source.shape), -1).T
    apart = np.abs(to_ras_mm(source.affine, corners) - to_ras_mm(other.affine, corners)).max()
    if apart > max(_SAME_PLACE_MM, 0.01 * min(source.spacing_mm or (1.0,))):
        raise ShapeError(
            f"Expected {what} on the grid of the map, but its voxels lie up to {apart:.3g} mm away.\n"
            f"Affine of {source.path}:\n{source.affine}\nAffine of {other.path}:\n{other.affine}"
        )

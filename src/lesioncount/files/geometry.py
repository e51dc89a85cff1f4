"""Where voxels lie: their grid, and their places in the patient in RAS millimetres (right, anterior, superior)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.errors import MapFileError, ShapeError

# Affines of the same grid, written by different programs, agree to about single precision.
_SAME_PLACE_MM = 1e-3

# Axes that lie in one plane, up to rounding: the volume of a voxel as a share of that of a box of its sizes.
_FLAT = 1e-6


@dataclass(frozen=True, eq=False)
class VoxelGrid:
    """The voxels of a file: how many there are, how large they are, and where they lie.

    Attributes
    ----------
    path : Path
        The file.
    shape : tuple of int
        Number of voxels along each axis: two or three.
    affine : ndarray, shape (4, 4), or None
        From voxel index to RAS millimetres; None when the file does not say where its voxels lie.
    spacing_mm : tuple of float, or None
        Voxel size along each axis. May be known without a place.
    why_unplaced : str or None
        Why there is no affine.
    """

    path: Path
    shape: tuple[int, ...]
    affine: NDArray[np.float64] | None = None
    spacing_mm: tuple[float, ...] | None = None
    why_unplaced: str | None = None

    @classmethod
    def placed(cls, path: Path, shape: Sequence[int], affine: ArrayLike) -> VoxelGrid:
        """The grid of an affine, in which voxels must have a place and a size."""
        matrix = np.asarray(affine, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            sizes = np.sqrt((matrix[:3, :3] ** 2).sum(axis=0))
            flatness = abs(float(np.linalg.det(matrix[:3, :3]))) / max(float(sizes.prod()), 1e-300)
        if not np.isfinite(matrix).all() or not sizes.all() or flatness < _FLAT:
            raise MapFileError(
                f"{path}: the affine does not place the voxels in space (not finite, or voxels of size 0):\n{matrix}"
            )
        return cls(path, tuple(shape), matrix, tuple(float(size) for size in sizes[: len(shape)]))

    @property
    def voxel_edges_mm(self) -> tuple[float, ...] | NDArray[np.float64] | None:
        """Voxel size as counting takes it: the edges of a voxel as columns, or their lengths; None when unknown."""
        return self.spacing_mm if self.affine is None or len(self.shape) != 3 else self.affine[:3, :3]

    def to_ras_mm(self, index: NDArray[Any]) -> NDArray[np.float64]:
        """Voxel indices (n, 2 or 3) → millimetres (n, 3); NaN when the place is unknown."""
        index = np.asarray(index, dtype=np.float64)
        if self.affine is None:
            return np.full((len(index), 3), np.nan)
        place: NDArray[np.float64] = index @ self.affine[:3, : index.shape[1]].T + self.affine[:3, 3]
        return place


def check_same_grid(grid: VoxelGrid, other: VoxelGrid, what: str) -> None:
    """Raise unless another map (a mask, an image) lies voxel on voxel with this one."""
    if grid.shape != other.shape:
        raise ShapeError(
            f"Expected {what} on the grid of the map, but {other.path} has shape {other.shape} and {grid.path} has "
            f"{grid.shape}. Resample it to the map first."
        )
    if grid.affine is None or other.affine is None:
        return
    corners = np.array(np.meshgrid(*[(0, n - 1) for n in grid.shape], indexing="ij")).reshape(len(grid.shape), -1).T
    apart = np.abs(grid.to_ras_mm(corners) - other.to_ras_mm(corners)).max()
    if apart > max(_SAME_PLACE_MM, 0.01 * min(grid.spacing_mm or (1.0,))):
        raise ShapeError(
            f"Expected {what} on the grid of the map, but its voxels lie up to {apart:.3g} mm away.\n"
            f"Affine of {grid.path}:\n{grid.affine}\nAffine of {other.path}:\n{other.affine}"
        )

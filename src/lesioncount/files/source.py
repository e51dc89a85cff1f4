"""What every reader gives: a map that has not been read yet, with its geometry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ChannelError, MapFileError

# Pieces of this size keep the second-level cache warm between decompressing and counting.
PIECE_BYTES = 1 << 21


# Axes that lie in one plane, up to rounding: the volume of a voxel as a share of that of a box of its sizes.
_FLAT = 1e-6


@dataclass(frozen=True, eq=False)
class MapSource:
    """A map in a file: what it is, where it lies in space, and how to get it piece by piece.

    Attributes
    ----------
    path : Path
    format : str
        Name of the format, for people.
    shape : tuple of int
        Of the map: two or three numbers.
    dtype : dtype
        Of what is stored.
    axis : int
        The axis along which the pieces follow each other.
    pieces : callable
        Gives the pieces in order; each is an array with all axes of the map. May be called more than once.
    affine : ndarray, shape (4, 4), or None
        From voxel index to millimetres in RAS orientation.
    scale, offset : float
        probability = stored · scale + offset. A scale of None: nothing is said about it.
    n_channels : int
        How many maps the file holds.
    """

    path: Path
    format: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    axis: int
    pieces: Callable[[], Iterator[NDArray[Any]]]
    affine: NDArray[np.float64] | None = None
    scale: float | None = None
    offset: float = 0.0
    n_channels: int = 1

    @property
    def spacing_mm(self) -> tuple[float, ...] | None:
        """Voxel size along each axis, None when unknown."""
        if self.affine is None:
            return None
        columns = self.affine[:3, : len(self.shape)]
        return tuple(float(size) for size in np.sqrt((columns**2).sum(axis=0)))

    @property
    def voxel_volume_mm3(self) -> float | None:
        """Volume of a voxel, which in a sheared grid is less than the product of its sizes; None when unknown."""
        if self.affine is None or len(self.shape) != 3:
            return None
        return abs(float(np.linalg.det(self.affine[:3, :3])))

    def array(self) -> NDArray[Any]:
        """The whole map as it is stored."""
        return np.concatenate([piece.copy() for piece in self.pieces()], axis=self.axis)


def planes_per_piece(shape: tuple[int, ...], axis: int, itemsize: int) -> int:
    """How many planes make a piece of a good size."""
    plane = max(1, int(np.prod(np.delete(shape, axis), dtype=np.int64))) * itemsize
    return max(1, PIECE_BYTES // plane)


def chosen_channel(path: Path, n_channels: int, channel: int | None, what: str = "channels") -> int:
    """The channel to count; an error when there are several and none was chosen."""
    if channel is None:
        if n_channels > 1:
            raise ChannelError(
                f"{path} holds {n_channels} {what}, 0 to {n_channels - 1}. Choose that of the lesions: --channel N "
                "(from Python: channel=N)."
            )
        return 0
    if not 0 <= channel < n_channels:
        held = f"{n_channels}, 0 to {n_channels - 1}" if n_channels > 1 else "a single map: leave --channel out"
        raise ChannelError(f"{path} has no channel {channel}: it holds {held}.")
    return channel


def checked_affine(path: Path, affine: NDArray[Any]) -> NDArray[np.float64]:
    """The affine, if voxels have a place and a size in it."""
    matrix = np.asarray(affine, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        sizes = np.sqrt((matrix[:3, :3] ** 2).sum(axis=0))
        flatness = abs(float(np.linalg.det(matrix[:3, :3]))) / max(float(sizes.prod()), 1e-300)
    if not np.isfinite(matrix).all() or not sizes.all() or flatness < _FLAT:
        raise MapFileError(
            f"{path}: the affine does not place the voxels in space (not finite, or voxels of size 0):\n{matrix}"
        )
    return matrix

"""What every reader gives: a map that has not been read yet, with its grid and what its numbers mean."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ChannelError, MapError
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.ome_zarr import OmeImage
from lesioncount.files.volumes import ChunkedVolume
from lesioncount.sweep.voxels import is_inside, sigmoid

# Pieces of this size keep the second-level cache warm between decompressing and counting.
PIECE_BYTES = 1 << 21


@dataclass(frozen=True, eq=False)
class MapSource:
    """A map in a file: what it is, where it lies in space, and how to get it piece by piece.

    Attributes
    ----------
    grid : VoxelGrid
    format : str
        Name of the format, for people.
    dtype : dtype
        Of what is stored.
    axis : int
        The axis along which the pieces follow each other.
    pieces : callable
        Gives what is stored piece by piece, in order; each is an array with all axes of the map. May be called more
        than once.
    scale, offset : float
        value = stored · scale + offset. A scale of None: the file says nothing about it.
    logits : bool
        Whether the values are logits, not probabilities.
    n_channels : int
        How many maps the file holds.
    full_scale : int or None
        Of formats for pictures, whose numbers are whole: the largest that fits, if nothing says what stands for 1.
    read_from : tuple of Path
        What is read, where that is not just the file: voxels beside a header, the segmentation beside probabilities.
    has_instances : bool
        Of a mask: whether the file itself says that each value is a thing of its own.
    ome : OmeImage or None
        The image that it is a channel and a level of.
    volume : ChunkedVolume or None
        The same map as boxes that can be read one by one, where the format has chunks.
    """

    grid: VoxelGrid
    format: str
    dtype: np.dtype[Any]
    axis: int
    pieces: Callable[[], Iterator[NDArray[Any]]]
    scale: float | None = None
    offset: float = 0.0
    logits: bool = False
    n_channels: int = 1
    full_scale: int | None = None
    read_from: tuple[Path, ...] = ()
    has_instances: bool = False
    ome: OmeImage | None = None
    volume: ChunkedVolume | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that make the map what it is."""
        return self.read_from or (self.path,)

    @property
    def path(self) -> Path:
        """The file."""
        return self.grid.path

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of voxels along each axis."""
        return self.grid.shape

    @property
    def affine(self) -> NDArray[np.float64] | None:
        """From voxel index to RAS millimetres, None when unknown."""
        return self.grid.affine

    @property
    def spacing_mm(self) -> tuple[float, ...] | None:
        """Voxel size along each axis, None when unknown."""
        return self.grid.spacing_mm

    def read_as(self, *, scale: float | None = None, logits: bool = False) -> MapSource:
        """The same map, with what a user knows of its values: a scale on top of the file's, or that they are logits."""
        if scale is None:
            return replace(self, logits=logits)
        both = scale * (1.0 if self.scale is None else self.scale)
        return replace(self, scale=both, offset=scale * self.offset, logits=logits)

    def check_scale(self) -> None:
        """Raise if nobody has said what the whole numbers of a picture stand for: 1 of 255 would pass for certain."""
        if self.full_scale is not None and self.scale is None:
            raise MapError(
                f"{self.path} holds whole numbers up to {self.full_scale}, and does not say which stands for a "
                f"probability of 1. If {self.full_scale} does, pass --scale 1/{self.full_scale} (from Python: "
                f"scale=1/{self.full_scale}); if it is a mask of 0 and 1, --scale 1."
            )

    def with_instances(self) -> MapSource:
        """The same mask, each value of which is a thing of its own."""
        return replace(self, has_instances=True)

    def array(self) -> NDArray[Any]:
        """The whole map as it is stored."""
        return self._whole(lambda piece: piece.copy())

    def values(self) -> NDArray[Any]:
        """The whole map, scaled as the file says."""
        return self._whole(self.to_values)

    def probabilities(self) -> NDArray[Any]:
        """The whole map as probabilities."""
        return self._whole(self.to_probabilities)

    def mask(self) -> NDArray[np.bool_]:
        """The whole map as a mask: what is neither 0 nor NaN is inside."""
        return self._whole(self.to_mask)

    def to_values(self, stored: NDArray[Any]) -> NDArray[Any]:
        """What stored numbers stand for."""
        return stored.copy() if self.scale is None else stored * np.float64(self.scale) + self.offset

    def to_probabilities(self, stored: NDArray[Any]) -> NDArray[Any]:
        """Stored numbers as probabilities."""
        values = self.to_values(stored)
        if self.logits:
            return sigmoid(values.astype(np.float64))
        return values if values.dtype.kind == "f" else values.astype(np.float32)

    def largest(self, stored: NDArray[Any]) -> float:
        """The largest probability that stored numbers stand for; 0 if none is a number."""
        highest = np.fmax if self.scale is None or self.scale >= 0 else np.fmin
        found = self.to_probabilities(np.atleast_1d(highest.reduce(stored, axis=None)))
        return float(np.fmax(found[0], 0))

    def to_mask(self, stored: NDArray[Any]) -> NDArray[np.bool_]:
        """Which stored numbers are inside of a mask. A scaled 0 may be nearly 0 only: half a step counts as outside."""
        return is_inside(self.to_values(stored), within=0.0 if self.scale is None else abs(self.scale) / 2)

    def _whole(self, convert: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[Any]:
        pieces = (convert(piece) for piece in self.pieces())
        first = next(pieces)
        # Planes as they come, one after the other: nothing is held twice.
        whole = np.empty(self.shape, first.dtype, order="F" if self.axis == len(self.shape) - 1 else "C")
        planes, begin = np.moveaxis(whole, self.axis, 0), 0
        for piece in itertools.chain([first], pieces):
            planes[begin : (begin := begin + piece.shape[self.axis])] = np.moveaxis(piece, self.axis, 0)
        return whole


def planes_of(array: NDArray[Any], axis: int = 0, *, itemsize: int | None = None) -> Iterator[NDArray[Any]]:
    """The pieces of an array that is in memory; ``itemsize``: what becomes of a voxel, if that is not what it is."""
    n = planes_per_piece(array.shape, axis, itemsize or array.dtype.itemsize)
    return (array[(slice(None),) * axis + (slice(at, at + n),)] for at in range(0, array.shape[axis], n))


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

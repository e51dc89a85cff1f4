"""Voxels that lie one after the other in a file, raw or compressed → pieces, without the map ever being in memory."""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapFileError
from lesioncount.files.ahead import ahead, is_worth_a_thread
from lesioncount.files.byte_streams import check_promise, fill, opened, read_to_end, skip
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.remote_path import RemotePath
from lesioncount.files.source import MapSource, chosen_channel, planes_per_piece

# Columns are counted in 32 bits.
_LONGEST_AXIS = 2**31 - 1


@dataclass(frozen=True)
class StoredVoxels:
    """Where the voxels of a file are, and how they are stored.

    Attributes
    ----------
    path : Path
        The file with the voxels.
    dtype : dtype
    axes : tuple of int
        Number of voxels along each axis, the one that changes fastest first, channels included.
    channel_axis : int or None
        Which of them is that of the channels.
    start : int
        Where the voxels, or their compressed form, begin in the file.
    skip : int
        How many decompressed bytes come before them.
    encoding : str
        raw, gzip, bzip2 or zlib.
    """

    path: Path
    dtype: np.dtype[Any]
    axes: tuple[int, ...]
    channel_axis: int | None = None
    start: int = 0
    skip: int = 0
    encoding: str = "raw"

    @property
    def shape(self) -> tuple[int, ...]:
        """The axes of space."""
        return tuple(n for axis, n in enumerate(self.axes) if axis != self.channel_axis)

    @property
    def n_channels(self) -> int:
        """How many maps there are."""
        return 1 if self.channel_axis is None else self.axes[self.channel_axis]

    @property
    def n_bytes(self) -> int:
        """Of the voxels of all channels."""
        return math.prod(self.axes) * self.dtype.itemsize

    def check(self) -> None:
        """Raise unless this can be a map, and the file can hold it."""
        if len(self.shape) not in (2, 3) or min(self.axes) < 1:
            raise MapFileError(
                f"{self.path}: a map has two or three axes with voxels, but this one's shape is {self.shape}."
            )
        if max(self.axes) > _LONGEST_AXIS:
            raise MapFileError(f"{self.path}: an axis cannot have more than {_LONGEST_AXIS} voxels, as in {self.axes}.")
        if self.dtype.kind not in "biuf":
            raise MapFileError(f"{self.path}: values of type {self.dtype} cannot be probabilities.")
        check_promise(self.path, self.skip + self.n_bytes, encoding=self.encoding, start=self.start)

    def source(
        self, grid: VoxelGrid, format_name: str, channel: int | None, *, in_c_order: bool = False, **meaning: Any
    ) -> MapSource:
        """One of the channels as a map; the header that describes the voxels is the file of the grid.

        Parameters
        ----------
        grid : VoxelGrid
        format_name : str
        channel : int, optional
        in_c_order : bool, default False
            Whether the last axis of the map is the one that changes fastest, not the first.
        **meaning
            Fields of `MapSource` that say what the numbers mean: scale, offset, full_scale.
        """
        chosen = chosen_channel(grid.path, self.n_channels, channel)
        return MapSource(
            grid,
            format_name,
            self.dtype,
            0 if in_c_order else len(self.shape) - 1,
            lambda: (piece.T if in_c_order else piece for piece in self.pieces(chosen)),
            n_channels=self.n_channels,
            read_from=tuple(dict.fromkeys((grid.path, self.path))),
            **meaning,
        )

    def pieces(self, channel: int = 0) -> Iterator[NDArray[Any]]:
        """The voxels of a channel along the last axis, with the axes of space as they are stored."""
        is_last = self.channel_axis == len(self.axes) - 1
        axes = self.axes[:-1] if is_last else self.axes
        pick: tuple[Any, ...] = (
            () if self.channel_axis is None or is_last else (*(slice(None),) * self.channel_axis, channel)
        )
        volume = math.prod(axes) * self.dtype.itemsize
        before = channel * volume if is_last else 0
        with opened(self.path, self.encoding, self.start, whole=True) as file:
            skip(self.path, file, self.skip + before)
            with closing(self._planes(file, axes)) as planes:
                for piece in planes:
                    yield piece[pick]
            if self.encoding != "raw":
                read_to_end(self.path, file, self.n_bytes - before - volume)

    def _planes(self, file: IO[bytes], axes: tuple[int, ...]) -> Generator[NDArray[Any]]:
        """Some planes at a time, which are there until the next are asked for."""
        n = min(planes_per_piece(axes, len(axes) - 1, self.dtype.itemsize), axes[-1])
        begins = range(0, axes[-1], n)
        is_ahead = len(begins) > 1 and not isinstance(self.path, RemotePath) and is_worth_a_thread(self.n_bytes)
        rooms = itertools.cycle([np.empty((*axes[:-1], n), self.dtype, order="F") for _ in range(1 + is_ahead)])
        calls = (partial(self._filled, file, next(rooms)[..., : axes[-1] - begin]) for begin in begins)
        return ahead(calls, n_threads=1, n_ahead=1, wait=True) if is_ahead else (call() for call in calls)

    def _filled(self, file: IO[bytes], room: NDArray[Any]) -> NDArray[Any]:
        fill(self.path, file, room.reshape(-1, order="F").view(np.uint8).data)
        return room

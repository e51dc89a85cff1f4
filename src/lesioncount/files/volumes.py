"""Volumes in chunks: which chunks are stored, how a box of them is cut in two, and how it is read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapFileError
from lesioncount.files.plain_chunks import ChunkChangedError, PlainChunks
from lesioncount.files.remote_path import RemotePath, tell_remote, without_secrets
from lesioncount.files.zarr_listing import FileState
from lesioncount.optional import optional
from lesioncount.sweep.boxes import Box, Triple

# Volumes of more voxels are counted in boxes, and no array of their shape is made: it would take some gigabytes.
LARGE_VOLUME = 1 << 27

_NUMBER = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, eq=False)
class ChunkedVolume:
    """A zarr array of which boxes are read, but for those that hold only chunks that are not stored.

    Attributes
    ----------
    name : Path
        Where it is, for messages.
    array : zarr.Array
    index : tuple of int or None
        For each axis of the array the place that was chosen, such as the channel; None for those of the map.
    chunks : tuple of int
        Planes, rows and columns of a chunk, or of a shard of chunks.
    is_stored : array of bool, shape (planes, rows, columns) of chunks
        Which of them are, from the chunk ``first`` on.
    first : tuple of int
    tags : dict of str to str, optional
        Of a bucket, which versions of stored chunks are meant, by their names. None: whatever there is.
    """

    name: Path
    array: Any
    index: tuple[int | None, ...]
    chunks: Triple
    is_stored: NDArray[np.bool_]
    first: Triple = (0, 0, 0)
    tags: Mapping[str, str] | None = None

    @classmethod
    def of(
        cls, array: Any, *, name: Path, index: Sequence[int | None], names: Mapping[str, FileState | None] | None
    ) -> ChunkedVolume:
        """The volume that is left of a zarr array, of whose files the names may be known."""
        sizes, shape = tuple(map(int, array.shards or array.chunks)), tuple(map(int, array.shape))
        axes = [axis for axis, place in enumerate(index) if place is None]
        chunks = Box.whole(tuple(sizes[axis] for axis in axes)).high
        whole = Box.whole(tuple(shape[axis] for axis in axes))
        n_chunks = [-(-side // chunk) for side, chunk in zip(whole.sides, chunks, strict=True)]
        is_stored = np.ones(n_chunks, bool)
        if names is not None:
            stored = _stored_chunks(array, names)
            chosen = {axis: place // sizes[axis] for axis, place in enumerate(index) if place is not None}
            mine = stored[np.all(stored[:, list(chosen)] == list(chosen.values()), axis=1)][:, axes]
            is_stored[...] = False
            is_stored[mine[:, 0], mine[:, 1] if len(axes) == 3 else 0, mine[:, -1]] = True
        return cls(name, array, tuple(index), chunks, is_stored, tags=_tags(names or {}))

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of voxels along each axis of the map."""
        return tuple(int(n) for n, place in zip(self.array.shape, self.index, strict=True) if place is None)

    @property
    def is_elsewhere(self) -> bool:
        """Whether its chunks come from a bucket or a server."""
        return isinstance(self.name, RemotePath)

    @property
    def is_large(self) -> bool:
        """Whether it is never held as a whole."""
        return math.prod(self.shape) > LARGE_VOLUME

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """How long a chunk is along each axis of the map."""
        return self.chunks if len(self.shape) == 3 else (self.chunks[0], self.chunks[2])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of what is stored."""
        dtype: np.dtype[Any] = np.dtype(self.array.dtype)
        return dtype

    @property
    def fill_value(self) -> Any:
        """What chunks hold that are not stored; None if nobody knows."""
        return self.array.fill_value

    def all_stored(self) -> ChunkedVolume:
        """The same volume, of which everything is read."""
        return replace(self, is_stored=np.ones_like(self.is_stored))

    def within(self, box: Box) -> ChunkedVolume:
        """The same volume, which knows only what is stored in a box: all that is needed to read it."""
        places = self._places(box)
        first = tuple(place.start + begin for place, begin in zip(places, self.first, strict=True))
        tags = None if self._plain is None else self._plain.tags_in(self._where(box))
        return replace(self, is_stored=self.is_stored[places].copy(), first=(first[0], first[1], first[2]), tags=tags)

    def n_chunks(self, box: Box) -> int:
        """How many chunks there are in a box, stored or not."""
        return self.is_stored[self._places(box)].size

    def n_stored(self, box: Box) -> int:
        """How many of them are stored."""
        return int(np.count_nonzero(self.is_stored[self._places(box)]))

    def halves(self, box: Box) -> tuple[Box, Box] | None:
        """A box cut in two between chunks, across its longest axis; None if it is a single chunk."""
        counts = [place.stop - place.start for place in self._places(box)]
        axes = [axis for axis in range(3) if counts[axis] > 1]
        if not axes:
            return None
        axis = max(axes, key=lambda one: box.sides[one])
        return box.cut(axis, (box.low[axis] // self.chunks[axis] + counts[axis] // 2) * self.chunks[axis])

    def n_bytes(self, n_chunks: int) -> int:
        """What so many chunks take in memory."""
        return n_chunks * math.prod(self.chunks) * self.dtype.itemsize

    def read(self, box: Box) -> NDArray[Any]:
        """What is stored in a box, with the axes of the map."""
        try:
            return self._read(self._where(box))
        except MemoryError:
            raise MapFileError(f"{self.name}: its chunks do not fit into memory. Store it in smaller ones.") from None
        except ChunkChangedError:
            raise MapFileError(f"{self.name} was changed while it was counted. Count it again.") from None
        except Exception as error:  # noqa: BLE001 - codecs raise many kinds for a damaged chunk
            tell_remote(self.name, error)
            why = without_secrets(str(error))[:300].rstrip(".")
            raise MapFileError(f"{self.name}: a chunk is damaged: {why}.") from None

    def _where(self, box: Box) -> tuple[slice | int, ...]:
        """Where a box is in the array."""
        slices = iter(box.index(len(self.shape)))
        return tuple(next(slices) if place is None else place for place in self.index)

    def _read(self, where: tuple[slice | int, ...]) -> NDArray[Any]:
        if self._plain is not None:
            try:
                return self._plain.read(where)
            except Exception as error:  # of what is wrong with a chunk, zarr knows better how to say it
                # A server was asked often enough.
                if type(error).__module__.startswith("obstore") or isinstance(error, ChunkChangedError):
                    raise
        return np.asarray(self.array[where])

    @cached_property
    def _plain(self) -> PlainChunks | None:
        return PlainChunks.of(self.array, self.tags)

    @property
    def is_checked(self) -> bool:
        """Whether chunks are read only as they were listed."""
        return self.tags is not None and self._plain is not None and self.fill_value is not None

    def _places(self, box: Box) -> tuple[slice, ...]:
        """Where the chunks of a box are in ``is_stored``."""
        ends = zip(box.low, box.high, self.chunks, self.first, strict=True)
        return tuple(slice(low // chunk - first, -(-high // chunk) - first) for low, high, chunk, first in ends)


def names_in(array: Any) -> dict[str, None] | None:
    """The names of all files of an array; None if its store cannot list them."""
    if not array.store.supports_listing:
        return None
    prefix = f"{array.path}/" if array.path else ""
    names: Iterable[str] = optional("zarr.core.sync", "cluster", "Reading zarr").collect_aiterator(
        array.store.list_prefix(prefix)
    )
    return {name.removeprefix(prefix): None for name in names}


def _tags(names: Mapping[str, FileState | None]) -> dict[str, str] | None:
    """The versions of all files, if a bucket can be asked for each."""
    tags = {name: state.tag for name, state in names.items() if state is not None and state.tag is not None}
    return tags if tags and len(tags) == len(names) else None


def _stored_chunks(array: Any, names: Iterable[str]) -> NDArray[np.int64]:
    """The places of all chunks that are stored, (n, ndim).

    One list of names, instead of a question for each chunk: of a sparse volume, nearly all answers would be no.
    """
    places = [_place_of(name, array) for name in names]
    return np.array([place for place in places if place is not None], np.int64).reshape(-1, array.ndim)


def _place_of(name: str, array: Any) -> tuple[int, ...] | None:
    """The place of the chunk of this name, in versions 2 and 3 of the format; None for other files."""
    place = tuple(int(number) for number in _NUMBER.findall(name))
    if len(place) != array.ndim or array.metadata.encode_chunk_key(place) != name:
        return None
    sizes = zip(place, array.shape, array.shards or array.chunks, strict=True)
    return place if all(i * chunk < n for i, n, chunk in sizes) else None  # of an array that was once larger


@dataclass(frozen=True, eq=False)
class MaskInMemory:
    """A mask that is at hand as a whole, or the part of it in a box."""

    inside: NDArray[np.bool_]
    first: Triple = (0, 0, 0)

    def n_stored(self, box: Box) -> int:
        """Whether something of a box is inside: 1 or 0."""
        return int(self.read(box).any())

    def within(self, box: Box) -> MaskInMemory:
        """The part in a box."""
        return MaskInMemory(self.read(box).copy(), box.low)

    def read(self, box: Box) -> NDArray[np.bool_]:
        """What is inside in a box."""
        low, high = (tuple(np.subtract(corner, self.first).tolist()) for corner in (box.low, box.high))
        return self.inside[Box((low[0], low[1], low[2]), (high[0], high[1], high[2])).index(self.inside.ndim)]

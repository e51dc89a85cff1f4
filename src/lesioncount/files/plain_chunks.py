"""Chunks of zarr arrays that are stored in a plain way: each is read and decoded in one step.

zarr reads whatever there is, on whatever store, and hands every chunk from task to task and thread to thread for it.
Most large volumes are files of bytes with a usual compression, in a folder or a bucket. For these, that takes two
thirds of the time of decoding, which is all that there is to do; and decoding on other cores takes them from other
processes, of which there are as many as were asked for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.files.ahead import ahead
from lesioncount.optional import optional

# Compressions, of whose settings none is needed to decode.
_CODECS = ("zstd", "blosc", "gzip", "zlib", "lz4")

# Chunks of one box that are fetched from elsewhere at once.
_FETCHED_AT_ONCE = 8

Place = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PlainChunks:
    """The chunks of an array that are stored in a plain way.

    Attributes
    ----------
    array : zarr.Array
    is_elsewhere : bool
        Whether they come from a bucket or a server.
    shape : tuple of int
        Of a chunk.
    stored : dtype
        Of its values, with the order of their bytes.
    codec : numcodecs codec or None
        What decodes it; None if it is not compressed.
    tags : dict of str to str, optional
        In a bucket, the versions that are meant of all that are stored, by their names. None: whatever there is.
    """

    array: Any
    is_elsewhere: bool
    shape: tuple[int, ...]
    stored: np.dtype[Any]
    codec: Any
    tags: Mapping[str, str] | None = None

    @classmethod
    def of(cls, array: Any, tags: Mapping[str, str] | None = None) -> PlainChunks | None:
        """How the chunks of an array are stored; None if zarr must read them."""
        storage = optional("zarr", "cluster", "Reading zarr").storage
        is_elsewhere = isinstance(array.store, getattr(storage, "ObjectStore", ()))  # since zarr 3.1
        how = _stored_as(array) if is_elsewhere or isinstance(array.store, storage.LocalStore) else None
        if how is None or how[1] not in (None, *_CODECS):
            return None
        codec = None if how[1] is None else optional("numcodecs", "cluster", "Reading zarr").get_codec({"id": how[1]})
        return cls(array, is_elsewhere, tuple(map(int, array.chunks)), how[0], codec, tags)

    def read(self, where: Sequence[slice | int]) -> NDArray[Any]:
        """What is stored in a box; any error if something is not as expected, which zarr will explain."""
        ends, places = _ends(where), self._places(where)
        out = np.empty([stop - start for start, stop in ends], self.array.dtype)
        for place, encoded in zip(places, self._encoded(places), strict=True):
            source, target = [], []
            for (start, stop), size, i in zip(ends, self.shape, place, strict=True):
                low, high = max(start, i * size), min(stop, (i + 1) * size)
                source.append(slice(low - i * size, high - i * size))
                target.append(slice(low - start, high - start))
            out[tuple(target)] = self._background() if encoded is None else self._decoded(encoded)[tuple(source)]
        return out[tuple(0 if isinstance(one, int) else slice(None) for one in where)]

    def tags_in(self, where: Sequence[slice | int]) -> dict[str, str] | None:
        """The versions of chunks in a box, where some are meant."""
        if self.tags is None:
            return None
        return {key: self.tags[key] for key in map(self._key, self._places(where)) if key in self.tags}

    def _places(self, where: Sequence[slice | int]) -> list[Place]:
        """The places of the chunks of a box among all chunks."""
        ranges = zip(_ends(where), self.shape, strict=True)
        return [*itertools.product(*(range(start // size, -(-stop // size)) for (start, stop), size in ranges))]

    def _key(self, place: Place) -> str:
        key: str = self.array.metadata.encode_chunk_key(place)
        return key

    def _encoded(self, places: Sequence[Place]) -> Iterator[Any]:
        """The bytes of chunks, one after the other; None for those that are not stored."""
        keys = map(self._key, places)
        if not self.is_elsewhere:
            folder = Path(self.array.store.root) / self.array.path
            return (_bytes_of(folder / key) for key in keys)
        n = min(_FETCHED_AT_ONCE, len(places))
        return ahead((partial(self._fetched, key) for key in keys), n_threads=n, n_ahead=n)

    def _fetched(self, key: str) -> Any:
        """A chunk from elsewhere, in the version that is meant; None if it is not stored."""
        from lesioncount.files.remote_objects import obstore

        if self.tags is not None and key not in self.tags:
            return None
        get, name = obstore().get, f"{self.array.path}/{key}" if self.array.path else key
        from obstore.exceptions import PreconditionError

        options = None if self.tags is None else {"if_match": self.tags[key]}
        try:
            return get(self.array.store.store, name, options=options).bytes()
        except (FileNotFoundError, PreconditionError):
            if self.tags is None:
                return None
            raise ChunkChangedError from None

    def _decoded(self, encoded: Any) -> NDArray[Any]:
        values = np.frombuffer(encoded if self.codec is None else self.codec.decode(encoded), self.stored)
        if values.size != math.prod(self.shape):
            raise ValueError("expected as many voxels as a chunk has")
        return values.reshape(self.shape)

    def _background(self) -> Any:
        if self.array.fill_value is None:
            raise ValueError("nobody knows what chunks hold that are not stored")
        return self.array.fill_value


def _ends(where: Sequence[slice | int]) -> list[tuple[int, int]]:
    """Begin and end along each axis of an array."""
    return [(one, one + 1) if isinstance(one, int) else (one.start, one.stop) for one in where]


class ChunkChangedError(Exception):
    """A chunk is no longer the one that was listed."""


def _bytes_of(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _stored_as(array: Any) -> tuple[np.dtype[Any], str | None] | None:
    """The type of stored values and the name of their compression; None if there is more to it."""
    metadata, dtype = array.metadata, np.dtype(array.dtype)
    if metadata.zarr_format == 2:
        name = None if metadata.compressor is None else metadata.compressor.codec_id
        return None if metadata.filters or metadata.order != "C" else (dtype, name)
    first, *others = (codec.to_dict() for codec in metadata.codecs)
    if first["name"] != "bytes" or len(others) > 1:
        return None
    endian = first.get("configuration", {}).get("endian", "little")
    return dtype.newbyteorder("<" if endian == "little" else ">"), others[0]["name"] if others else None

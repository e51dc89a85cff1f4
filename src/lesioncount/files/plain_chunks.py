"""Chunks of zarr arrays in a folder that are stored in a plain way: each is read and decoded in one step.

zarr reads whatever there is, on whatever store, and hands every chunk from task to task and thread to thread for it.
Most large volumes are files of bytes with a usual compression. For these, that takes two thirds of the time of
decoding, which is all that there is to do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.optional import optional

# Compressions, of whose settings none is needed to decode.
_CODECS = ("zstd", "blosc", "gzip", "zlib", "lz4")


@dataclass(frozen=True, eq=False)
class PlainChunks:
    """The chunks of an array that are stored in a plain way.

    Attributes
    ----------
    folder : Path
        Of the array.
    array : zarr.Array
    shape : tuple of int
        Of a chunk.
    stored : dtype
        Of its values, with the order of their bytes.
    codec : numcodecs codec or None
        What decodes it; None if it is not compressed.
    """

    folder: Path
    array: Any
    shape: tuple[int, ...]
    stored: np.dtype[Any]
    codec: Any

    @classmethod
    def of(cls, array: Any) -> PlainChunks | None:
        """How the chunks of an array are stored; None if zarr must read them."""
        if not isinstance(array.store, optional("zarr", "cluster", "Reading zarr").storage.LocalStore):
            return None
        how = _stored_as(array)
        if how is None or how[1] not in (None, *_CODECS):
            return None
        codec = None if how[1] is None else optional("numcodecs", "cluster", "Reading zarr").get_codec({"id": how[1]})
        return cls(Path(array.store.root) / array.path, array, tuple(map(int, array.chunks)), how[0], codec)

    def read(self, where: Sequence[slice | int]) -> NDArray[Any]:
        """What is stored in a box; any error if something is not as expected, which zarr will explain."""
        ends = [(one, one + 1) if isinstance(one, int) else (one.start, one.stop) for one in where]
        out = np.empty([stop - start for start, stop in ends], self.array.dtype)
        chunks = zip(ends, self.shape, strict=True)
        for place in itertools.product(*(range(start // size, -(-stop // size)) for (start, stop), size in chunks)):
            source, target = [], []
            for (start, stop), size, i in zip(ends, self.shape, place, strict=True):
                low, high = max(start, i * size), min(stop, (i + 1) * size)
                source.append(slice(low - i * size, high - i * size))
                target.append(slice(low - start, high - start))
            out[tuple(target)] = self._chunk(place)[tuple(source)]
        return out[tuple(0 if isinstance(one, int) else slice(None) for one in where)]

    def _chunk(self, place: tuple[int, ...]) -> NDArray[Any]:
        encoded = (self.folder / self.array.metadata.encode_chunk_key(place)).read_bytes()
        values = np.frombuffer(encoded if self.codec is None else self.codec.decode(encoded), self.stored)
        if values.size != math.prod(self.shape):
            raise ValueError("expected as many voxels as a chunk has")
        return values.reshape(self.shape)


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

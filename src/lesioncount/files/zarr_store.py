"""zarr arrays, chunk by chunk: for volumes larger than memory."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapFileError
from lesioncount.files.byte_streams import HIGHEST_RATIO
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.source import MapSource, chosen_channel, planes_per_piece
from lesioncount.optional import optional

METADATA = (".zarray", "zarr.json")

# Chunks that are not there stand for a value, and cost time all the same. Sparse arrays store one chunk in a thousand;
# what promises more chunks, or more bytes, for what is there is damaged. Below the first numbers it is over in seconds.
_FEW_CHUNKS, _CHUNKS_PER_FILE = 10_000, 1_000
_FEW_BYTES, _BYTES_PER_BYTE = 1 << 30, 1_000_000

# What is read at once: whole chunks, side by side. A piece of a small store may be so large, one of others as far as
# compression goes.
_LARGEST_PIECE = 1 << 29

# Attributes may be many, but a description of an array is text of some hundred characters.
_LONGEST_METADATA = 1 << 24


def open_zarr(path: Path, channel: int | None = None) -> MapSource:
    """A zarr array of two or three axes, or of four with the channel first."""
    zarr = optional("zarr", "cluster", "Reading zarr")
    files = files_in(path)
    _check_metadata(path)
    try:
        array = zarr.open_array(str(path), mode="r")
        shape, chunks = tuple(map(int, array.shape)), tuple(map(int, array.shards or array.chunks))
        dtype = np.dtype(array.dtype)
    except Exception as error:  # noqa: BLE001 - zarr raises many kinds for a store that is none
        why = str(error)[:300].rstrip(".") or type(error).__name__
        raise MapFileError(
            f"{path} is not a zarr array: {why}. If it is a group, give an array in it, as {path}/0."
        ) from None
    if min(chunks, default=1) < 1:
        raise MapFileError(f"{path}: chunks of shape {chunks} hold nothing. Its description is damaged.")
    if len(shape) not in (2, 3, 4) or min(shape) < 1:
        raise MapFileError(f"{path}: a map has two or three axes with voxels, but this array's shape is {shape}.")
    if dtype.kind not in "biuf":
        raise MapFileError(f"{path}: values of type {dtype} cannot be probabilities.")
    _check_promise(path, files, shape, chunks, dtype.itemsize)
    n_channels = shape[0] if len(shape) == 4 else 1
    chosen = chosen_channel(path, n_channels, channel)
    leading = (chosen,) if len(shape) == 4 else ()
    shape, chunk = shape[len(leading) :], chunks[len(leading)]
    # Whole chunks, so that none is decompressed twice; as many as make a piece of a good size.
    n_planes = max(chunk, planes_per_piece(shape, 0, dtype.itemsize) // chunk * chunk)
    piece = math.prod((min(n_planes, shape[0]), *shape[1:]))
    _check_piece(path, files, max(piece, math.prod(chunks)) * dtype.itemsize)

    def pieces() -> Iterator[NDArray[Any]]:
        for begin in range(0, shape[0], n_planes):
            try:
                yield np.asarray(array[(*leading, slice(begin, begin + n_planes))])
            except MemoryError:
                raise MapFileError(f"{path}: its chunks do not fit into memory. Store it in smaller ones.") from None
            except Exception as error:  # noqa: BLE001 - codecs raise many kinds for a damaged chunk
                raise MapFileError(f"{path}: a chunk is damaged: {str(error)[:300].rstrip('.')}.") from None

    grid = VoxelGrid(path, shape, why_unplaced="a zarr array has no place in space")
    return MapSource(grid, "zarr", dtype, 0, pieces, n_channels=n_channels, read_from=tuple(files))


def files_in(path: Path) -> dict[Path, int]:
    """All files of an array in a folder, with their sizes, in the order of their names. All else is refused."""
    found: dict[Path, int] = {}
    for folder, _, names in os.walk(path):
        for name in names:
            file = Path(folder) / name
            try:
                status = file.stat()
            except OSError as error:
                raise MapFileError(f"{file} cannot be looked at: {error.strerror}.") from None
            if not stat.S_ISREG(status.st_mode):
                raise MapFileError(f"{file} is not a regular file: a zarr array consists of files.")
            found[file] = status.st_size
    return dict(sorted(found.items()))


def _check_metadata(path: Path) -> None:
    """Raise for a description that is no JSON, is endless, or names a codec that can run code."""
    for name in METADATA:
        file = path / name
        if not file.is_file():
            continue
        if file.stat().st_size > _LONGEST_METADATA:
            raise MapFileError(f"{file} is too long to be the description of an array.")
        try:
            text = json.dumps(json.loads(file.read_bytes()))
        except (ValueError, RecursionError) as error:
            raise MapFileError(f"{file} is not the description of an array: {str(error)[:200]}.") from None
        if name == ".zarray" and '"id": "pickle"' in text:
            raise MapFileError(f"{path} holds pickled Python objects, which can run code when they are opened.")


def _check_promise(
    path: Path, files: dict[Path, int], shape: tuple[int, ...], chunks: tuple[int, ...], itemsize: int
) -> None:
    """Raise if an array promises far more than its files can hold."""
    n_chunks = math.prod(-(-n // max(1, chunk)) for n, chunk in zip(shape, chunks, strict=True))
    n_bytes, stored = math.prod(shape) * itemsize, sum(files.values())
    if n_chunks > max(_FEW_CHUNKS, _CHUNKS_PER_FILE * len(files)) or n_bytes > max(
        _FEW_BYTES, _BYTES_PER_BYTE * stored
    ):
        raise MapFileError(
            f"{path}: an array of shape {shape} has {n_chunks:,} chunks and {n_bytes:,} bytes, but there are only "
            f"{len(files):,} files with {stored:,} bytes. Its description is damaged, or most of it is missing."
        )


def _check_piece(path: Path, files: dict[Path, int], n_bytes: int) -> None:
    """Raise if what is read at once is far larger than the store."""
    most = max(_LARGEST_PIECE, HIGHEST_RATIO["gzip"] * sum(files.values()))
    if n_bytes > most:
        raise MapFileError(
            f"{path}: its chunks are so large that more than {most >> 20:,} MB must be read at once. Its description "
            "is damaged, or it must be stored in smaller chunks."
        )

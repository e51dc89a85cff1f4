"""zarr arrays, chunk by chunk: for volumes larger than memory."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.boxes import Box
from lesioncount.errors import MapError, MapFileError
from lesioncount.files import volumes
from lesioncount.files.byte_streams import HIGHEST_RATIO
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.source import MapSource, chosen_channel, planes_per_piece
from lesioncount.files.volumes import ChunkedVolume
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
    """A zarr array in a folder: of two or three axes, or of four with the channel first."""
    files = files_in(path)
    array = _open_array(path)
    chunks = _checked_chunks(array, path)
    _check_promise(path, files, array.shape, chunks, array.dtype.itemsize)
    _check_piece(path, files, math.prod(chunks) * array.dtype.itemsize)
    return _source(array, path, files, channel)


def source_of_array(array: Any, channel: int | None = None) -> MapSource:
    """The same for an array that somebody has opened, of whatever store."""
    zarr = optional("zarr", "cluster", "Reading zarr")
    if not isinstance(array, zarr.Array):
        raise MapError(
            f"Expected a zarr array or its path, but got {type(array).__name__}. An array in memory is counted by "
            "lesioncount.count_lesions."
        )
    path = Path(array.name or array.path or "zarr array")
    _checked_chunks(array, path)
    return _source(array, path, {}, channel)


def _source(array: Any, path: Path, files: dict[Path, int], channel: int | None) -> MapSource:
    n_channels = int(array.shape[0]) if array.ndim == 4 else 1
    chosen = chosen_channel(path, n_channels, channel)
    volume = ChunkedVolume.of(array, name=str(path), channel=chosen if array.ndim == 4 else None)
    # Whole chunks, so that none is decompressed twice; as many as make a piece of a good size.
    chunk, whole, itemsize = volume.chunks[0], Box.whole(volume.shape), volume.dtype.itemsize
    n_planes = max(chunk, planes_per_piece(volume.shape, 0, itemsize) // chunk * chunk)

    def pieces() -> Iterator[NDArray[Any]]:
        _check_piece(path, files, min(n_planes, whole.high[0]) * whole.high[1] * whole.high[2] * itemsize)
        for begin in range(0, whole.high[0], n_planes):
            end = min(begin + n_planes, whole.high[0])
            yield volume.read(Box((begin, 0, 0), (end, *whole.high[1:])))

    grid = VoxelGrid(path, volume.shape, why_unplaced="a zarr array has no place in space")
    read_from = tuple(files)
    return MapSource(grid, "zarr", volume.dtype, 0, pieces, n_channels=n_channels, read_from=read_from, volume=volume)


def _open_array(path: Path) -> Any:
    """Open the array in a folder; the one place where this is done."""
    zarr = optional("zarr", "cluster", "Reading zarr")
    _check_metadata(path)
    try:
        array = zarr.open_array(str(path), mode="r")
        np.dtype(array.dtype)
    except Exception as error:  # noqa: BLE001 - zarr raises many kinds for a store that is none
        why = str(error)[:300].rstrip(".") or type(error).__name__
        raise MapFileError(
            f"{path} is not a zarr array: {why}. If it is a group, give an array in it, as {path}/0."
        ) from None
    return array


def _checked_chunks(array: Any, path: Path) -> tuple[int, ...]:
    """The shape of the chunks of an array, whose shape and type a map may have."""
    chunks = tuple(map(int, array.shards or array.chunks))
    if min(chunks, default=1) < 1:
        raise MapFileError(f"{path}: chunks of shape {chunks} hold nothing. Its description is damaged.")
    if array.ndim not in (2, 3, 4) or min(array.shape) < 1:
        raise MapFileError(f"{path}: a map has two or three axes with voxels, but this array's shape is {array.shape}.")
    if np.dtype(array.dtype).kind not in "biuf":
        raise MapFileError(f"{path}: values of type {array.dtype} cannot be probabilities.")
    return chunks


def is_large_volume(path: Path) -> bool:
    """Whether a folder is an array that is never held as a whole. What is wrong with it is for others to say."""
    if not any((path / name).is_file() for name in METADATA):
        return False
    with suppress(MapFileError):
        return math.prod(map(int, _open_array(path).shape[-3:])) > volumes.LARGE_VOLUME
    return False


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

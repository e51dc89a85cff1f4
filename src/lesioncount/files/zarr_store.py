"""zarr arrays and OME-Zarr images, chunk by chunk: for volumes larger than memory, on a disk or elsewhere."""

from __future__ import annotations

import itertools
import json
import math
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.boxes import Box
from lesioncount.errors import ChannelError, LesionCountError, MapError, MapFileError
from lesioncount.files import volumes
from lesioncount.files.ahead import ahead
from lesioncount.files.byte_streams import HIGHEST_RATIO
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.ome_zarr import OmeImage, ome_image
from lesioncount.files.remote_path import RemotePath, tell_remote, without_secrets
from lesioncount.files.source import MapSource, chosen_channel, planes_per_piece
from lesioncount.files.volumes import ChunkedVolume
from lesioncount.optional import optional

ENDINGS = (".ome.zarr", ".zarr")
METADATA = (".zarray", "zarr.json")

# Where a group has its attributes: in version 2 of the format, and in version 3.
_ATTRIBUTES = (".zattrs", "zarr.json")

# Chunks that are not there stand for a value, and cost time all the same. Sparse arrays store one chunk in a thousand;
# what promises more chunks, or more bytes, for what is there is damaged. Below the first numbers it is over in seconds.
_FEW_CHUNKS, _CHUNKS_PER_FILE = 10_000, 1_000
_FEW_BYTES, _BYTES_PER_BYTE = 1 << 30, 1_000_000

# Of a store that cannot be listed nobody knows what is there: it may have as many chunks as one of some size may.
_MOST_UNLISTED = 10_000_000

# What is read at once: whole chunks, side by side. A piece of a small store may be so large, one of others as far as
# compression goes.
_LARGEST_PIECE = 1 << 29

# Attributes may be many, but a description of an array is text of some hundred characters.
_LONGEST_METADATA = 1 << 24

# Chunks from elsewhere that are on their way at once, and the memory that pieces may take which wait to be counted.
_CHUNKS_AHEAD, _BYTES_AHEAD = 16, 1 << 28


@dataclass(frozen=True, eq=False)
class StoredArray:
    """An array that is there, and that what is stored can hold.

    Attributes
    ----------
    path : Path
    array : zarr.Array
    shape, chunks : tuple of int
        Chunks are what is fetched as a whole: of an array with shards, these.
    dtype : dtype
    files : dict of Path to int
        All there are with their sizes; empty if they cannot be listed.
    """

    path: Path
    array: Any
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]
    files: Mapping[Path, int]

    @property
    def names(self) -> Iterable[str] | None:
        """The names of what is stored; None if nobody knows them."""
        if not isinstance(self.path, RemotePath):
            return volumes.names_in(self.array)
        if not self.path.is_listed:
            return None
        return [str(file.below(self.path)) for file in self.files if isinstance(file, RemotePath)]

    def check_piece(self, n_voxels: int) -> None:
        """Raise if so much, read at once, is far larger than the store."""
        most = max(_LARGEST_PIECE, HIGHEST_RATIO["gzip"] * sum(self.files.values()))
        if n_voxels * self.dtype.itemsize > most:
            raise MapFileError(
                f"{self.path}: its chunks are so large that more than {most >> 20:,} MB must be read at once. Its "
                "description is damaged, or it must be stored in smaller chunks."
            )


def open_zarr(path: Path, channel: int | None = None, level: int | None = None) -> MapSource:
    """A zarr array of two or three axes, or of four with the channel first; or a level of an OME-Zarr image."""
    image = ome_image(path, attributes_of(path))
    if image is not None:
        return _open_level(path, replace(image, level=image.check_level(path, level)), channel)
    if level is not None:
        raise ChannelError(f"{path} is a single array, without resolution levels: leave --level out.")
    return _source_of(open_stored(path), channel)


def source_of_array(array: Any, channel: int | None = None) -> MapSource:
    """The same for an array that somebody has opened, of whatever store."""
    zarr = optional("zarr", "cluster", "Reading zarr")
    if not isinstance(array, zarr.Array):
        raise MapError(
            f"Expected a zarr array or its path, but got {type(array).__name__}. An array in memory is counted by "
            "lesioncount.count_lesions."
        )
    return _source_of(_stored(Path(array.name or array.path or "zarr array"), array, {}), channel)


def _source_of(stored: StoredArray, channel: int | None) -> MapSource:
    """A single array as a map."""
    path, shape = stored.path, stored.shape
    if len(shape) == 5:
        raise MapFileError(f"{path}: a map has two or three axes with voxels, but this array's shape is {shape}.")
    n_channels = shape[0] if len(shape) == 4 else 1
    chosen = chosen_channel(path, n_channels, channel)
    index = [*((chosen,) if len(shape) == 4 else ()), *[None] * min(len(shape), 3)]
    grid = VoxelGrid(path, shape[-3:], why_unplaced="a zarr array has no place in space")
    return replace(_source(stored, index, grid), n_channels=n_channels)


def _open_level(path: Path, image: OmeImage, channel: int | None) -> MapSource:
    stored = open_stored(_inside(path, image.levels[image.level].path))
    if len(stored.shape) != len(image.axes):
        raise MapFileError(
            f"{path} has {len(image.axes)} axes by its OME-Zarr metadata, but an array of shape {stored.shape}."
        )
    n_channels = 1 if image.channels is None else stored.shape[image.channels]
    chosen = chosen_channel(path, n_channels, channel)
    grid = VoxelGrid(
        path,
        tuple(stored.shape[place] for place in image.space),
        spacing_mm=image.spacing_mm(image.level),
        why_unplaced="OME-Zarr does not say which side of a patient is which",
    )
    source = _source(stored, image.index(path, stored.shape, chosen), grid)
    return replace(source, format=f"OME-Zarr {image.version}", n_channels=n_channels, ome=image)


def level_shapes(path: Path, image: OmeImage) -> list[tuple[int, ...]]:
    """The voxels along each axis of space, at the level of an image and at those that follow, while none has more."""
    arrays = (open_array(_inside(path, level.path)) for level in image.levels[image.level :])
    shapes = [tuple(int(array.shape[place]) for place in image.space) for array in arrays]
    coarser_ones = itertools.takewhile(
        lambda pair: all(m <= n for n, m in zip(*pair, strict=True)), itertools.pairwise(shapes)
    )
    return [*shapes[:1], *(coarser for _, coarser in coarser_ones)]


def _source(stored: StoredArray, index: Sequence[int | None], grid: VoxelGrid) -> MapSource:
    """What is left of an array where places along some axes are chosen; pieces go along the first that is left."""
    volume = ChunkedVolume.of(stored.array, name=stored.path, index=index, names=stored.names)
    # Whole chunks, so that none is decompressed twice; as many as make a piece of a good size.
    chunk, whole = volume.chunks[0], Box.whole(volume.shape)
    n_planes = max(chunk, planes_per_piece(volume.shape, 0, volume.dtype.itemsize) // chunk * chunk)

    def pieces() -> Iterator[NDArray[Any]]:
        n_voxels = min(n_planes, whole.high[0]) * whole.high[1] * whole.high[2]
        stored.check_piece(n_voxels)
        ends = ((begin, min(begin + n_planes, whole.high[0])) for begin in range(0, whole.high[0], n_planes))
        boxes = (Box((begin, 0, 0), (end, *whole.high[1:])) for begin, end in ends)
        if isinstance(stored.path, RemotePath):
            yield from _fetched((partial(volume.read, box) for box in boxes), stored, n_voxels)
        else:
            yield from map(volume.read, boxes)

    return MapSource(grid, "zarr", volume.dtype, 0, pieces, read_from=tuple(stored.files), volume=volume)


def _fetched(calls: Iterator[Callable[[], NDArray[Any]]], stored: StoredArray, n_voxels: int) -> Iterator[NDArray[Any]]:
    """Pieces from elsewhere: as many at once as keep enough chunks on their way, within memory."""
    chunks = max(1, n_voxels // math.prod(stored.chunks))
    # Two at least: while the last chunks of one are decompressed, those of the next are on their way.
    n = max(1, min(max(2, -(-_CHUNKS_AHEAD // chunks)), _BYTES_AHEAD // (n_voxels * stored.dtype.itemsize)))
    return ahead(calls, n_threads=n, n_ahead=n)


def open_stored(path: Path) -> StoredArray:
    """Open an array on a disk or elsewhere, checked before anything is allocated for it."""
    files = files_in(path)
    stored = _stored(path, open_array(path), files)
    _check_promise(path, files, stored.shape, stored.chunks, stored.dtype.itemsize)
    stored.check_piece(math.prod(stored.chunks))
    return stored


def open_array(path: Path) -> Any:
    """Open the array in a folder, on a disk or elsewhere; the one place where this is done."""
    zarr = optional("zarr", "cluster", "Reading zarr")
    zarr_format = _checked_format(path)
    try:
        array = zarr.open_array(_store(path), mode="r", zarr_format=zarr_format)
        np.dtype(array.dtype)
    except LesionCountError:
        raise
    except Exception as error:  # noqa: BLE001 - zarr raises many kinds for a store that is none
        tell_remote(path, error)
        why = without_secrets(str(error))[:300].rstrip(".") or type(error).__name__
        raise MapFileError(
            f"{path} is not a zarr array: {why}. If it is a group, give an array in it, as {path}/0."
        ) from None
    return array


def _stored(path: Path, array: Any, files: Mapping[Path, int]) -> StoredArray:
    """An array, whose shape and type a map may have."""
    shape, chunks = tuple(map(int, array.shape)), tuple(map(int, array.shards or array.chunks))
    dtype = np.dtype(array.dtype)
    if min(chunks, default=1) < 1:
        raise MapFileError(f"{path}: chunks of shape {chunks} hold nothing. Its description is damaged.")
    if len(shape) not in (2, 3, 4, 5) or min(shape) < 1:
        raise MapFileError(f"{path}: a map has two or three axes with voxels, but this array's shape is {shape}.")
    if dtype.kind not in "biuf":
        raise MapFileError(f"{path}: values of type {dtype} cannot be probabilities.")
    return StoredArray(path, array, shape, chunks, dtype, files)


def is_large(path: Path, level: int | None = None) -> bool:
    """Whether an array, or a level of an image, is never held as a whole; raise if there is none."""
    return _is_large_elsewhere(path, level) if isinstance(path, RemotePath) else _is_large(path, level)


@lru_cache(maxsize=1024)
def _is_large_elsewhere(path: RemotePath, level: int | None) -> bool:
    return _is_large(path, level)


def _is_large(path: Path, level: int | None) -> bool:
    image = ome_image(path, attributes_of(path))
    if image is None:
        return math.prod(map(int, open_array(path).shape[-3:])) > volumes.LARGE_VOLUME
    array = open_array(_inside(path, image.levels[image.check_level(path, level)].path))
    return math.prod(int(array.shape[place]) for place in image.space) > volumes.LARGE_VOLUME


def _store(path: Path) -> Any:
    """What zarr reads from: a folder, or a bucket or server."""
    if not isinstance(path, RemotePath):
        return str(path)
    from lesioncount.files.remote_objects import explained, folder_store

    with explained(path):
        objects = folder_store(path)
    from zarr.storage import ObjectStore

    return ObjectStore(objects, read_only=True)


def _inside(path: Path, name: str) -> Path:
    """A path in a store; of a server, its query is that of the store."""
    return path.inside(name) if isinstance(path, RemotePath) else path / name


def files_in(path: Path) -> dict[Path, int]:
    """All files of an array in a folder, with their sizes, in the order of their names. All else is refused.

    Of a server that cannot be listed there are none.
    """
    if isinstance(path, RemotePath):
        return _objects_in(path)
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


def _objects_in(path: RemotePath) -> dict[Path, int]:
    if not path.is_listed:
        return {}
    from lesioncount.files.remote_listing import objects_below

    found = objects_below(path)
    if not found:
        raise MapFileError(f"{path} does not exist: nothing lies below that name.")
    return {file: state.size for file, state in found.items()}


def attributes_of(path: Path) -> Mapping[str, Any]:
    """The attributes of a group; none of what is not one."""
    for name in _ATTRIBUTES:
        content = _json(path, name)
        if name == "zarr.json" and content.get("node_type") == "group":
            content = content.get("attributes", {})
        elif name == "zarr.json":
            content = {}
        if isinstance(content, dict) and content:
            return content
    return {}


def ome_version(path: Path) -> str | None:
    """The version of OME-Zarr that an image is of; None if it is none."""
    image = ome_image(path, attributes_of(path))
    return None if image is None else image.version


@lru_cache(maxsize=64)
def is_remote_zarr(path: RemotePath) -> bool:
    """Whether there is an array or a group at a path whose name does not say it."""
    return any(_json_bytes(path, name) is not None for name in (*METADATA, ".zgroup"))


def is_ome_group(path: Path) -> bool:
    """Whether a folder is a group of OME-Zarr 0.4, whatever it is called; those of 0.5 have a ``zarr.json``."""
    try:
        return (path / ".zgroup").is_file() and "multiscales" in _json(path, ".zattrs")
    except MapFileError:
        return False


def _json_bytes(path: Path, name: str) -> bytes | None:
    file = _inside(path, name)
    try:
        if isinstance(file, RemotePath):
            with file.open("rb") as stream:
                return bytes(stream.read(_LONGEST_METADATA + 1))
        if not file.is_file():
            return None
        with file.open("rb") as stream:
            return stream.read(_LONGEST_METADATA + 1)
    except FileNotFoundError:
        return None


def _json(path: Path, name: str) -> dict[str, Any]:
    """A file of a store that describes it, empty if there is none; raise if it is no JSON, or endless."""
    content = _json_bytes(path, name)
    if content is None:
        return {}
    if len(content) > _LONGEST_METADATA:
        raise MapFileError(f"{_inside(path, name)} is too long to be the description of an array.")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise MapFileError(f"{_inside(path, name)} is not the description of an array: {str(error)[:200]}.") from None
    return found if isinstance(found, dict) else {}


def _checked_format(path: Path) -> int | None:
    """The version of the format, None if there is no array; raise for a description that is no JSON, or is endless.

    One of version 2 that names a codec which can run code is refused.
    """
    if _json(path, "zarr.json"):
        return 3
    description = _json(path, ".zarray")
    if '"id": "pickle"' in json.dumps(description):
        raise MapFileError(f"{path} holds pickled Python objects, which can run code when they are opened.")
    return 2 if description else None


def _check_promise(
    path: Path, files: Mapping[Path, int], shape: tuple[int, ...], chunks: tuple[int, ...], itemsize: int
) -> None:
    """Raise if an array promises far more than its files can hold."""
    n_chunks = math.prod(-(-n // max(1, chunk)) for n, chunk in zip(shape, chunks, strict=True))
    n_bytes, stored = math.prod(shape) * itemsize, sum(files.values())
    if isinstance(path, RemotePath) and not path.is_listed:
        is_much, there = n_chunks > _MOST_UNLISTED, f"no more than {_MOST_UNLISTED:,} chunks are read from a server"
    else:
        is_much = n_chunks > max(_FEW_CHUNKS, _CHUNKS_PER_FILE * len(files)) or n_bytes > max(
            _FEW_BYTES, _BYTES_PER_BYTE * stored
        )
        there = f"there are only {len(files):,} files with {stored:,} bytes"
    if is_much:
        raise MapFileError(
            f"{path}: an array of shape {shape} has {n_chunks:,} chunks and {n_bytes:,} bytes, but {there}. Its "
            "description is damaged, or most of it is missing."
        )

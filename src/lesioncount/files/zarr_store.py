"""zarr arrays and OME-Zarr images, chunk by chunk: for volumes larger than memory, on a disk or elsewhere."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ChannelError, LesionCountError, MapError, MapFileError
from lesioncount.files import volumes
from lesioncount.files.ahead import ahead
from lesioncount.files.byte_streams import HIGHEST_RATIO
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.ome_zarr import OmeImage, OmeLevel, ome_image
from lesioncount.files.remote_path import RemotePath, tell_remote, without_secrets
from lesioncount.files.source import MapSource, chosen_channel, planes_per_piece
from lesioncount.files.volumes import ChunkedVolume
from lesioncount.files.zarr_description import attributes_of, checked_format, inside
from lesioncount.files.zarr_listing import FileState, Listing, listing_of, named_in
from lesioncount.optional import optional
from lesioncount.sweep.boxes import Box

ENDINGS = (".ome.zarr", ".zarr")

# What is read at once: whole chunks, side by side. A piece of a small store may be so large, one of others as far as
# compression goes.
_LARGEST_PIECE = 1 << 29

# Chunks that are not there stand for a value, and cost time all the same. Sparse arrays store one chunk in a thousand;
# what promises more chunks, or more bytes, for what is there is damaged. Below the first numbers it is over in seconds.
_FEW_CHUNKS, _CHUNKS_PER_FILE = 10_000, 1_000
_FEW_BYTES, _BYTES_PER_BYTE = 1 << 30, 1_000_000

# Of a store that cannot be listed nobody knows what is there: it may have as many chunks as one of some size may.
_MOST_UNLISTED = 10_000_000

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
    listing : Listing or None
        Of the store that it is in; None of an array that somebody else has opened.
    """

    path: Path
    array: Any
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]
    listing: Listing | None = None

    @cached_property
    def files(self) -> Mapping[Path, FileState]:
        """All there are; none if they cannot be listed."""
        return {} if self.listing is None else self.listing.below(self.path)

    @cached_property
    def n_bytes(self) -> int:
        """What is stored."""
        return sum(state.size for state in self.files.values())

    @property
    def names(self) -> Mapping[str, FileState | None] | None:
        """The names of what is stored; None if nobody knows them."""
        if self.listing is None:
            return volumes.names_in(self.array)
        return named_in(self.path, self.files) or None

    def check_promise(self) -> None:
        """Raise if it promises far more than its files can hold."""
        n_chunks = math.prod(-(-n // chunk) for n, chunk in zip(self.shape, self.chunks, strict=True))
        n_bytes, n_files = math.prod(self.shape) * self.dtype.itemsize, len(self.files)
        if isinstance(self.path, RemotePath) and not self.path.is_listed:
            is_much, there = n_chunks > _MOST_UNLISTED, f"no more than {_MOST_UNLISTED:,} chunks are read from a server"
        else:
            is_much = n_chunks > max(_FEW_CHUNKS, _CHUNKS_PER_FILE * n_files)
            is_much = is_much or n_bytes > max(_FEW_BYTES, _BYTES_PER_BYTE * self.n_bytes)
            there = f"there are only {n_files:,} files with {self.n_bytes:,} bytes"
        if is_much:
            raise MapFileError(
                f"{self.path}: an array of shape {self.shape} has {n_chunks:,} chunks and {n_bytes:,} bytes, but "
                f"{there}. Its description is damaged, or most of it is missing."
            )

    def check_piece(self, n_voxels: int) -> None:
        """Raise if so much, read at once, is far larger than the store."""
        most = max(_LARGEST_PIECE, HIGHEST_RATIO["gzip"] * self.n_bytes)
        if n_voxels * self.dtype.itemsize > most:
            raise MapFileError(
                f"{self.path}: its chunks are so large that more than {most >> 20:,} MB must be read at once. Its "
                "description is damaged, or it must be stored in smaller chunks."
            )


def open_zarr(path: Path, channel: int | None = None, level: int | None = None) -> MapSource:
    """A zarr array of two or three axes, or of four with the channel first; or a level of an OME-Zarr image."""
    image = _image(path, level)
    return _source_of(open_stored(path), channel) if image is None else _open_level(path, image, channel)


def _image(path: Path, level: int | None) -> OmeImage | None:
    """The image that a group is, at the level that is meant; None if it is a single array."""
    image = ome_image(path, attributes_of(path))
    if image is None and level is not None:
        raise ChannelError(f"{path} is a single array, without resolution levels: leave --level out.")
    return None if image is None else replace(image, level=image.check_level(path, level))


def source_of_array(array: Any, channel: int | None = None) -> MapSource:
    """The same for an array that somebody has opened, of whatever store."""
    zarr = optional("zarr", "cluster", "Reading zarr")
    if not isinstance(array, zarr.Array):
        raise MapError(
            f"Expected a zarr array or its path, but got {type(array).__name__}. An array in memory is counted by "
            "lesioncount.count_lesions."
        )
    return _source_of(_stored(Path(array.name or array.path or "zarr array"), array), channel)


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
    stored = open_stored(inside(path, image.levels[image.level].path))
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
    shapes = [_shape_at(path, image, level) for level in image.levels[image.level :]]
    coarser_ones = itertools.takewhile(
        lambda pair: all(m <= n for n, m in zip(*pair, strict=True)), itertools.pairwise(shapes)
    )
    return [*shapes[:1], *(coarser for _, coarser in coarser_ones)]


def _shape_at(path: Path, image: OmeImage, level: OmeLevel) -> tuple[int, ...]:
    array = open_array(inside(path, level.path))
    return tuple(int(array.shape[place]) for place in image.space)


def _source(stored: StoredArray, index: Sequence[int | None], grid: VoxelGrid) -> MapSource:
    """What is left of an array where places along some axes are chosen; pieces go along the first that is left."""
    volume = ChunkedVolume.of(stored.array, name=stored.path, index=index, names=stored.names)
    if stored.listing is not None:
        stored.listing.is_checked = volume.is_checked
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
    listing = listing_of(path)
    stored = replace(_stored(path, open_array(path)), listing=listing)
    stored.check_promise()
    stored.check_piece(math.prod(stored.chunks))
    return stored


def open_array(path: Path) -> Any:
    """Open the array in a folder, on a disk or elsewhere; the one place where this is done."""
    zarr = optional("zarr", "cluster", "Reading zarr")
    zarr_format = checked_format(path)
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


def _stored(path: Path, array: Any) -> StoredArray:
    """An array, whose shape and type a map may have."""
    shape, chunks = tuple(map(int, array.shape)), tuple(map(int, array.shards or array.chunks))
    dtype = np.dtype(array.dtype)
    if min(chunks, default=1) < 1:
        raise MapFileError(f"{path}: chunks of shape {chunks} hold nothing. Its description is damaged.")
    if len(shape) not in (2, 3, 4, 5) or min(shape) < 1:
        raise MapFileError(f"{path}: a map has two or three axes with voxels, but this array's shape is {shape}.")
    if dtype.kind not in "biuf":
        raise MapFileError(f"{path}: values of type {dtype} cannot be probabilities.")
    return StoredArray(path, array, shape, chunks, dtype)


def is_large(path: Path, level: int | None = None) -> bool:
    """Whether an array, or a level of an image, is never held as a whole; raise if there is none."""
    return _is_large_elsewhere(path, level) if isinstance(path, RemotePath) else _is_large(path, level)


def _is_large(path: Path, level: int | None) -> bool:
    image = _image(path, level)
    shape = open_array(path).shape[-3:] if image is None else _shape_at(path, image, image.levels[image.level])
    return math.prod(map(int, shape)) > volumes.LARGE_VOLUME


# A server is asked once.
_is_large_elsewhere = lru_cache(maxsize=1024)(_is_large)


def _store(path: Path) -> Any:
    """What zarr reads from: a folder, or a bucket or server."""
    if not isinstance(path, RemotePath):
        return str(path)
    from lesioncount.files.remote_objects import explained, folder_store

    with explained(path):
        objects = folder_store(path)
    from zarr.storage import ObjectStore

    return ObjectStore(objects, read_only=True)

"""numpy files: ``.npy``, and ``.npz`` with one array. Never unpickled."""

from __future__ import annotations

import io
import math
import struct
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from lesioncount.errors import MapFileError
from lesioncount.files.byte_streams import HIGHEST_RATIO, explained, fill
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.source import MapSource, chosen_channel, planes_of
from lesioncount.files.stored import StoredVoxels

_BROKEN = "is damaged, or not a numpy file"

# Archives with more in them are not made by numpy's savez for one map.
_MOST_ARRAYS = 1000

# Arrays up to this size are taken out of an archive however small they were packed.
_SMALL_BYTES = 1 << 26


@dataclass(frozen=True)
class _Described:
    """What the header of an array says."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def open_npy(path: Path, channel: int | None = None) -> MapSource:
    """A ``.npy`` file, read piece by piece; of four axes the first is the channel."""
    with explained(path, _BROKEN), path.open("rb") as file:
        array = _described(path, file)
        start = file.tell()
    has_channels = len(array.shape) == 4
    first = 0 if array.is_fortran else len(array.shape) - 1  # where the first axis is, counted from the fastest
    axes = array.shape if array.is_fortran else array.shape[::-1]
    voxels = StoredVoxels(path, array.dtype, axes, first if has_channels else None, start)
    voxels.check()
    size = path.stat().st_size
    if size != start + array.n_bytes:
        raise MapFileError(
            f"{path}: the header promises {start + array.n_bytes:,} bytes, but the file has {size:,}. It is damaged."
        )
    shape = array.shape[1:] if has_channels else array.shape
    grid = VoxelGrid(path, shape, why_unplaced="an array has no place in space")
    return voxels.source(grid, "npy", channel, in_c_order=not array.is_fortran)


def open_npz(path: Path, channel: int | None = None) -> MapSource:
    """A ``.npz`` file that holds one array."""
    return source_of_array(path, load_array(path), channel, "npz")


def load_array(path: Path, name: str | None = None) -> NDArray[Any]:
    """The array of this name in an ``.npz`` file, or its only one."""
    with explained(path, _BROKEN), zipfile.ZipFile(path) as archive:
        member = _member(path, archive, name)
        with archive.open(member) as file:
            return _array(path, file, member.file_size)


def shape_of_array(path: Path, name: str) -> tuple[int, ...]:
    """The shape of an array in an ``.npz`` file, of which nothing else is read."""
    with explained(path, _BROKEN), zipfile.ZipFile(path) as archive, archive.open(_member(path, archive, name)) as file:
        return _described(path, file).shape


def _member(path: Path, archive: zipfile.ZipFile, name: str | None) -> zipfile.ZipInfo:
    """The array of this name, or the only one; an error if it cannot be as large as it says."""
    members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()[:_MOST_ARRAYS]}
    if name is None and len(members) != 1:
        raise MapFileError(f"{path} holds {len(members)} arrays ({', '.join(members)[:200]}), but a map is one array.")
    member = members[name or next(iter(members))]
    most = max(_SMALL_BYTES, member.compress_size * HIGHEST_RATIO["gzip"])
    if member.file_size > most or member.compress_size > path.stat().st_size:
        raise MapFileError(
            f"{path}: {member.compress_size:,} bytes promise to become {member.file_size:,}, which no map does. "
            "It is damaged, or a bomb."
        )
    if member.compress_type == zipfile.ZIP_LZMA:
        _check_dictionary(path, member)
    return member


def _check_dictionary(path: Path, member: zipfile.ZipInfo) -> None:
    """Raise if LZMA is to keep far more of what came before than there is: room for it is made at once."""
    with path.open("rb") as file:
        file.seek(member.header_offset)
        name, extra = struct.unpack("<26xHH", file.read(30))
        file.seek(name + extra, io.SEEK_CUR)
        n_bytes = struct.unpack("<5xI", file.read(9))[0]  # behind a version and the length of the properties
    if n_bytes > max(_SMALL_BYTES, member.file_size):
        raise MapFileError(
            f"{path}: LZMA asks for {n_bytes:,} bytes to unpack {member.file_size:,}, which no map needs. It is "
            "damaged, or a bomb."
        )


def _array(path: Path, file: IO[bytes], size: int) -> NDArray[Any]:
    """The array in a member of an archive. It must fill all of it: only at the end is the check sum compared."""
    described = _described(path, file)
    if described.n_bytes != size - file.tell():
        raise MapFileError(
            f"{path}: the header promises an array of {described.n_bytes:,} bytes, but there are "
            f"{size - file.tell():,}. It is damaged."
        )
    if described.dtype.kind not in "biuf":
        raise MapFileError(f"{path}: values of type {described.dtype} cannot be probabilities.")
    array = np.empty(math.prod(described.shape), described.dtype)
    fill(path, file, array.view(np.uint8).data)
    file.read(1)
    return array.reshape(described.shape, order="F" if described.is_fortran else "C")


def _described(path: Path, file: IO[bytes]) -> _Described:
    """The header of an array, checked before anything is allocated for it."""
    start = file.read(6)
    if start != b"\x93NUMPY":
        raise MapFileError(f"{path} {_BROKEN}: an array does not begin with {start!r}.")
    version = tuple(file.read(2))
    if version not in ((1, 0), (2, 0)):  # 3 is for names of fields, which a map has not
        raise MapFileError(f"{path} {_BROKEN}: version {version} of the format is not known.")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # headers of Python 2, old names of types
        shape, is_fortran, dtype = read(file)
    if dtype.hasobject:
        raise MapFileError(
            f"{path} holds pickled Python objects, which can run code when they are opened. Save the probabilities "
            "as a plain array."
        )
    if len(shape) > 32 or not all(isinstance(n, int) and 0 <= n < 2**63 for n in shape):
        raise MapFileError(f"{path} is damaged: an array cannot have the shape {str(shape)[:80]}.")
    return _Described(tuple(int(n) for n in shape), bool(is_fortran), dtype)


def source_of_array(
    path: Path, array: NDArray[Any], channel: int | None, format_name: str, grid: VoxelGrid | None = None
) -> MapSource:
    """A source of an array that is in memory; of four axes the first is the channel."""
    if array.ndim not in (2, 3, 4) or array.size == 0:
        raise MapFileError(f"{path}: a map has two or three axes with voxels, but this array's shape is {array.shape}.")
    n_channels = array.shape[0] if array.ndim == 4 else 1
    chosen = chosen_channel(path, n_channels, channel)
    volume = array[chosen] if array.ndim == 4 else array
    axis = volume.ndim - 1 if volume.flags.f_contiguous and not volume.flags.c_contiguous else 0
    grid = VoxelGrid(path, volume.shape, why_unplaced="an array has no place in space") if grid is None else grid
    return MapSource(grid, format_name, volume.dtype, axis, lambda: planes_of(volume, axis), n_channels=n_channels)

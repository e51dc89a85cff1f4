"""NIfTI files, decompressed and counted as they are read: the map is never in memory as a whole."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from isal import igzip
from isal.igzip_lib import IsalError
from numpy.typing import NDArray

from lesioncount.errors import MapFileError
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.source import MapSource, chosen_channel, planes_per_piece

ENDINGS = (".nii.gz", ".nii")

_DAMAGED = (igzip.BadGzipFile, cast("type[Exception]", IsalError), EOFError, zlib.error)

# By the unit code of the header; nibabel leaves them to the reader. Unknown is taken as millimetres, as everyone does.
_MILLIMETRES = {1: 1000.0, 3: 0.001}

# Deflate cannot expand further than this: a header that promises more is lying.
_HIGHEST_RATIO = 1032


def open_nifti(path: Path, channel: int | None = None) -> MapSource:
    """A ``.nii`` or ``.nii.gz`` file."""
    header = _header(path)
    dtype = header.get_data_dtype()
    if dtype.kind not in "biuf":
        raise MapFileError(f"{path}: voxels of type {dtype} cannot be probabilities.")
    shape, n_channels = _spatial_shape(path, tuple(int(n) for n in header.get_data_shape()))
    chosen = chosen_channel(path, n_channels, channel)
    start = int(header.get_data_offset()) or header.single_vox_offset
    n_voxels = int(np.prod(shape, dtype=object))
    _check_size(path, start + n_voxels * n_channels * dtype.itemsize)
    slope, intercept = header.get_slope_inter()
    skip = start + chosen * n_voxels * dtype.itemsize
    return MapSource(
        grid=_grid(path, shape, header),
        format="NIfTI",
        dtype=dtype,
        axis=len(shape) - 1,
        pieces=lambda: _pieces(path, shape, dtype, skip),
        scale=None if slope is None or (slope, intercept) == (1, 0) else float(slope),
        offset=0.0 if slope is None else float(intercept),
        n_channels=n_channels,
    )


def _header(path: Path) -> Any:
    from nibabel import Nifti1Header, Nifti2Header
    from nibabel.spatialimages import HeaderDataError
    from nibabel.wrapstruct import WrapStructError

    with _opened(path) as file:
        head = file.read(540)
    kind: Any = Nifti2Header if head[:4] in (b"\x1c\x02\x00\x00", b"\x00\x00\x02\x1c") else Nifti1Header
    size = kind.template_dtype.itemsize
    try:
        header = kind(head[:size], check=False)  # its own check prints, and mends what it should refuse
        header.get_data_dtype()
        header.get_slope_inter()
        header.get_best_affine()
        header.get_data_shape()
    except KeyError as error:
        raise MapFileError(f"{path} is not a NIfTI file: its header has the unknown code {error}.") from None
    except (WrapStructError, HeaderDataError, ValueError, OverflowError) as error:
        raise MapFileError(f"{path} is not a NIfTI file: {error}.") from None
    if int(header["sizeof_hdr"]) != size or bytes(header["magic"])[:1] != b"n":
        raise MapFileError(f"{path} is not a NIfTI file: it does not begin like one.")
    if bytes(header["magic"])[:2] != b"n+":
        raise MapFileError(f"{path} is half of a NIfTI pair: header and voxels must be in one file.")
    if not (float(header["vox_offset"]) == 0 or size <= float(header["vox_offset"]) < 2**31):
        raise MapFileError(
            f"{path}: the voxels cannot begin at byte {float(header['vox_offset']):g}. The header is damaged."
        )
    return header


def _grid(path: Path, shape: tuple[int, ...], header: Any) -> VoxelGrid:
    """Sizes and places of voxels in millimetres, whatever the unit of the file."""
    affine = np.array(header.get_best_affine(), dtype=np.float64)
    affine[:3] *= _MILLIMETRES.get(int(header["xyzt_units"]) & 7, 1.0)
    grid = VoxelGrid.placed(path, shape, affine)
    if int(header["sform_code"]) > 0 or int(header["qform_code"]) > 0:
        return grid
    # An affine that nibabel made up: sizes are the header's, but which side is which is a guess.
    return replace(grid, affine=None, why_unplaced="its header has sform_code 0 and qform_code 0")


def _spatial_shape(path: Path, shape: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The two or three axes of space, and how many maps follow each other along the others."""
    if len(shape) < 2 or min(shape) < 1:
        raise MapFileError(f"{path}: a map has two or three axes with voxels, but this file's shape is {shape}.")
    return shape[:3], int(np.prod(shape[3:], dtype=object))


def _check_size(path: Path, promised: int) -> None:
    held = path.stat().st_size * (_HIGHEST_RATIO if _is_compressed(path) else 1)
    if promised > held:
        raise MapFileError(
            f"{path}: the header promises {promised:,} bytes, but the file cannot hold more than {held:,}. "
            "It is truncated, or its header is damaged."
        )


def _is_compressed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed where they are compressed, whatever the name says."""
    try:
        with igzip.open(path, "rb") if _is_compressed(path) else path.open("rb") as file:
            yield file
    except _DAMAGED as error:
        raise MapFileError(f"{path} is damaged or truncated: {error}.") from None


def _pieces(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], skip: int) -> Iterator[NDArray[Any]]:
    n = planes_per_piece(shape, len(shape) - 1, dtype.itemsize)
    plane = int(np.prod(shape[:-1]))
    buffer = np.empty(n * plane, dtype)
    with _opened(path) as file:
        file.seek(skip)
        for begin in range(0, shape[-1], n):
            here = min(n, shape[-1] - begin)
            piece = buffer[: here * plane]
            _fill(path, file, piece.view(np.uint8).data)
            yield piece.reshape((*shape[:-1], here), order="F")


def _fill(path: Path, file: IO[bytes], into: memoryview) -> None:
    done = 0
    while done < len(into):
        got = file.readinto(into[done:])  # type: ignore[attr-defined]  # both kinds of file have it
        if not got:
            raise MapFileError(f"{path} is truncated: its voxels end before the header says they do.")
        done += got

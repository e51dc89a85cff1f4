"""NIfTI files: decompressed and counted as they are read, never in memory as a whole; and written from arrays."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapFileError, reason_of
from lesioncount.files.byte_streams import encoding_of_file, opened
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.source import MapSource
from lesioncount.files.stored import StoredVoxels

ENDINGS = (".nii.gz", ".nii")

# By the unit code of the header; nibabel leaves them to the reader. Unknown is taken as millimetres, as everyone does.
_MILLIMETRES = {1: 1000.0, 3: 0.001}


def open_nifti(path: Path, channel: int | None = None) -> MapSource:
    """A ``.nii`` or ``.nii.gz`` file."""
    encoding = encoding_of_file(path)
    header = _header(path, encoding)
    dtype = header.get_data_dtype()
    if dtype.kind not in "biuf":
        raise MapFileError(f"{path}: voxels of type {dtype} cannot be probabilities.")
    shape, n_channels = _spatial_shape(path, tuple(int(n) for n in header.get_data_shape()))
    voxels = StoredVoxels(
        path,
        dtype,
        (*shape, n_channels) if len(shape) == 3 else shape,
        channel_axis=3 if len(shape) == 3 else None,
        skip=int(header.get_data_offset()) or header.single_vox_offset,
        encoding=encoding,
    )
    voxels.check()
    slope, intercept = header.get_slope_inter()
    return voxels.source(
        _grid(path, shape, header),
        "NIfTI",
        channel,
        scale=None if slope is None or (slope, intercept) == (1, 0) else float(slope),
        offset=0.0 if slope is None else float(intercept),
    )


def _header(path: Path, encoding: str) -> Any:
    from nibabel import Nifti1Header, Nifti2Header
    from nibabel.spatialimages import HeaderDataError
    from nibabel.wrapstruct import WrapStructError

    with opened(path, encoding) as file:
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
        raise MapFileError(f"{path} is not a NIfTI file: {reason_of(error)}.") from None
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


# Larger axes do not fit into the 16 bits that the first version of NIfTI has for them.
_LONGEST_AXIS = (1 << 15) - 1

# Maps of candidates are nearly all zeros: runs of one value are all that is looked for. zlib's bytes are a function of
# the voxels; isal, ten times as fast, has packed the same voxels in two ways.
_LEVEL, _MEMORY = 1, 9

# A gzip file without the time of day: the same voxels are the same bytes.
_GZIP = 31


def nifti_bytes(voxels: NDArray[Any], grid: VoxelGrid, *, intent: str = "none", slope: float = 1.0) -> bytes:
    """The content of a ``.nii.gz`` file.

    Parameters
    ----------
    voxels : array
    grid : VoxelGrid
        Where they lie. Without a place, only their sizes are written.
    intent : str
        What the numbers mean, by the names of nibabel, such as ``label``.
    slope : float, default 1
        What the numbers are multiplied with when they are read.
    """
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP, _MEMORY, zlib.Z_RLE)
    head = packer.compress(_header_bytes(voxels, grid, intent, slope))
    content = np.ascontiguousarray(voxels.T)  # the first axis runs fastest; mostly as it is in memory
    packed: bytes = head + packer.compress(content.reshape(-1).view(np.uint8)) + packer.flush()
    return packed


def _header_bytes(voxels: NDArray[Any], grid: VoxelGrid, intent: str, slope: float) -> bytes:
    """The header as it is in a file. An image of nibabel would work out its affine twice, in two ways."""
    from nibabel import Nifti1Header, Nifti2Header

    header: Any = Nifti1Header() if max(voxels.shape) <= _LONGEST_AXIS else Nifti2Header()
    header.set_data_dtype(voxels.dtype)
    header.set_data_shape(voxels.shape)
    if grid.spacing_mm is not None:
        header.set_zooms(grid.spacing_mm[: voxels.ndim])
    if grid.affine is not None:
        header.set_sform(grid.affine, code="aligned")
    header.set_xyzt_units("mm")
    header.set_intent(intent)
    header.set_slope_inter(slope, 0)
    header.set_data_offset(header.single_vox_offset)
    without_extensions = bytes(header.single_vox_offset - header.sizeof_hdr)
    return bytes(header.binaryblock) + without_extensions

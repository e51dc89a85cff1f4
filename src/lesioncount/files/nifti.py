"""NIfTI files: decompressed and counted as they are read, never in memory as a whole; and written from arrays."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapFileError
from lesioncount.files.byte_streams import encoding_of_file, opened
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.nifti_header import LONGEST_HEADER, NiftiHeader, header_bytes, header_of
from lesioncount.files.source import MapSource
from lesioncount.files.stored import StoredVoxels

ENDINGS = (".nii.gz", ".nii")


def open_nifti(path: Path, channel: int | None = None) -> MapSource:
    """A ``.nii`` or ``.nii.gz`` file."""
    encoding = encoding_of_file(path)
    with opened(path, encoding) as file:
        header = header_of(path, file.read(LONGEST_HEADER))
    shape, n_channels = _spatial_shape(path, header.shape)
    voxels = StoredVoxels(
        path,
        header.dtype,
        (*shape, n_channels) if len(shape) == 3 else shape,
        channel_axis=3 if len(shape) == 3 else None,
        skip=header.offset,
        encoding=encoding,
    )
    voxels.check()
    return voxels.source(
        _grid(path, shape, header),
        "NIfTI",
        channel,
        scale=None if (header.scale, header.shift) == (1, 0) else header.scale,
        offset=header.shift,
    )


def _grid(path: Path, shape: tuple[int, ...], header: NiftiHeader) -> VoxelGrid:
    grid = VoxelGrid.placed(path, shape, header.affine)
    if header.is_placed:
        return grid
    # Sizes are the header's, but which side is which is not known.
    return replace(grid, affine=None, why_unplaced="its header has sform_code 0 and qform_code 0")


def _spatial_shape(path: Path, shape: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The two or three axes of space, and how many maps follow each other along the others."""
    if len(shape) < 2 or min(shape) < 1:
        raise MapFileError(f"{path}: a map has two or three axes with voxels, but this file's shape is {shape}.")
    return shape[:3], int(np.prod(shape[3:], dtype=object))


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
        What the numbers mean: ``none``, or ``label``.
    slope : float, default 1
        What the numbers are multiplied with when they are read.
    """
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP, _MEMORY, zlib.Z_RLE)
    head = packer.compress(header_bytes(voxels, grid, intent, slope))
    content = np.ascontiguousarray(voxels.T)  # the first axis runs fastest; mostly as it is in memory
    packed: bytes = head + packer.compress(content.data) + packer.flush()
    return packed

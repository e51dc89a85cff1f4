"""Arrays on the grid of a map → the content of NIfTI files."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.files.geometry import VoxelGrid

# Larger axes do not fit into the 16 bits that the first version of NIfTI has for them.
_LONGEST_AXIS = (1 << 15) - 1

# Of isal, from 0 to 3. Maps of candidates are nearly all zeros, which 1 packs as well as the higher ones.
_LEVEL = 1

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
    from isal import isal_zlib

    packer = isal_zlib.compressobj(_LEVEL, wbits=_GZIP)
    head = packer.compress(_header(voxels, grid, intent, slope))
    content = np.ascontiguousarray(voxels.T)  # the first axis runs fastest; mostly as it is in memory
    packed: bytes = head + packer.compress(content.reshape(-1).view(np.uint8)) + packer.flush()
    return packed


def _header(voxels: NDArray[Any], grid: VoxelGrid, intent: str, slope: float) -> bytes:
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

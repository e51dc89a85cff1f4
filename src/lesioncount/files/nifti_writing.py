"""Arrays → NIfTI files on the grid of a map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from lesioncount.files.geometry import VoxelGrid

# Larger axes do not fit into the 16 bits that the first version of NIfTI has for them.
_LONGEST_AXIS = (1 << 15) - 1

# Of isal, from 0 to 3. Maps of candidates are nearly all zeros, which 1 packs as well as the higher ones.
_LEVEL = 1

# A gzip file without the time of day: the same voxels are the same bytes.
_GZIP = 31


def write_nifti(path: Path, voxels: NDArray[Any], grid: VoxelGrid, *, intent: str = "none") -> None:
    """Write a ``.nii.gz`` file.

    Parameters
    ----------
    path : Path
    voxels : array
    grid : VoxelGrid
        Where they lie. Without a place, only their sizes are written.
    intent : str
        What the numbers mean, by the names of nibabel: ``label``, ``estimate``, ``none``.
    """
    import nibabel
    from isal import isal_zlib

    kind: Any = nibabel.Nifti1Image if max(voxels.shape) <= _LONGEST_AXIS else nibabel.Nifti2Image
    image = kind(voxels, grid.affine)
    image.header.set_xyzt_units("mm")
    image.header.set_intent(intent)
    if grid.affine is None and grid.spacing_mm is not None:
        image.header.set_zooms(grid.spacing_mm)
    path.write_bytes(isal_zlib.compress(image.to_bytes(), _LEVEL, wbits=_GZIP))

"""A mask on the grid of a map. DICOM may order axes and slices otherwise, and leaves empty slices out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lesioncount.files.dicom import ENDINGS
from lesioncount.files.formats import map_ending
from lesioncount.files.geometry import VoxelGrid, check_same_grid
from lesioncount.files.lattice import place
from lesioncount.files.source import MapSource


def is_dicom_pair(grid: VoxelGrid, other: VoxelGrid) -> bool:
    """Whether one of two files is DICOM, so that their voxels may be the same and yet in another order."""
    return any(map_ending(one.path) in ENDINGS for one in (grid, other))


def mask_on(grid: VoxelGrid, mask: MapSource) -> NDArray[np.bool_]:
    """What is inside of a mask, on the grid of a map; raise if it does not lie on the same voxels."""
    if is_dicom_pair(grid, mask.grid):
        return place(mask.grid, grid, "the mask").on_grid(mask.mask())
    check_same_grid(grid, mask.grid, "the mask")
    return mask.mask()

"""Lesions → a label map with a value for each of them, so that those that touch are counted apart."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lesioncount.paper.synthetic.lattice import Lattice
from lesioncount.paper.synthetic.lifetimes import Lesion


def instance_map(lesions: Iterable[Lesion], lattice: Lattice) -> NDArray[np.uint16]:
    """The number of the lesion that each voxel belongs to, and 0 elsewhere.

    Where lesions overlap, a voxel belongs to the one that it lies deepest in; the voxel at the centre of a lesion
    always belongs to that one. So no lesion is without a voxel, and together they are the voxels of the mask.
    """
    lesions = tuple(lesions)
    labels = np.zeros(lattice.shape, np.uint16)
    deepest = np.zeros(lattice.shape, np.float32)
    for lesion in lesions:
        window, inside = lesion.blob.inside_mm(lattice)
        is_its = (inside >= 0) & ((labels[window] == 0) | (inside > deepest[window]))
        labels[window][is_its] = lesion.number
        deepest[window][is_its] = inside[is_its]
    for lesion in lesions:
        labels[lattice.window(lesion.blob.centre_mm, 0.0)] = lesion.number
    return labels

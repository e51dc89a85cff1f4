"""Lesions → a label map with a value for each of them, so that those that touch are counted apart."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lesioncount_reproduction.synthetic.blob import Blob
from lesioncount_reproduction.synthetic.lattice import Lattice


def instance_map(lesions: Mapping[int, Blob], lattice: Lattice) -> NDArray[np.uint16]:
    """The number of the lesion that each voxel belongs to, and 0 elsewhere.

    Where lesions overlap, a voxel belongs to the one that it lies deepest in; the voxel at the centre of a lesion
    always belongs to that one. So no lesion is without a voxel, and together they are the voxels of the mask.

    Parameters
    ----------
    lesions : mapping of int to Blob
        By their numbers, from 1.
    lattice : Lattice
    """
    labels = np.zeros(lattice.shape, np.uint16)
    deepest = np.zeros(lattice.shape, np.float32)
    for number, blob in lesions.items():
        window, inside = blob.inside_mm(lattice)
        is_its = (inside >= 0) & ((labels[window] == 0) | (inside > deepest[window]))
        labels[window][is_its] = number
        deepest[window][is_its] = inside[is_its]
    for number, blob in lesions.items():
        labels[lattice.window(blob.centre_mm, 0.0)] = number
    return labels


def marked(lesions: Mapping[int, Blob]) -> dict[int, Blob]:
    """Those that the rater has marked."""
    return {number: blob for number, blob in lesions.items() if blob.labelled}

"""Tissues → areas of the brain, after those in which lesions are counted for a diagnosis, and lesions per area."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from lesioncount_reproduction.synthetic.anatomy import Tissues, Values
from lesioncount_reproduction.synthetic.blob import Blob
from lesioncount_reproduction.synthetic.lattice import FIELD_OF_VIEW_MM, Lattice

# Values of the label map, and their names. The lowest part stands in for what is infratentorial, which the field of
# view does not reach.
AREAS = {1: "periventricular", 2: "juxtacortical", 3: "lowest_part", 4: "deep", 5: "ventricles"}
_PERIVENTRICULAR, _JUXTACORTICAL, _LOWEST, _DEEP, _VENTRICLES = AREAS

# What is in none of them: outside the brain, and fluid around it.
ELSEWHERE = "elsewhere"

# A lesion belongs to the area of its centre. Of median size it has a radius of 5.4 mm: with its centre within these
# distances, it about touches the ventricles, or the cortex.
_FROM_VENTRICLES_MM, _FROM_CORTEX_MM = 6.0, 5.0

# A sixth of the field of view.
_LOWEST_MM = FIELD_OF_VIEW_MM[0] / 6


def area_map(tissues: Tissues, heights_mm: Values) -> NDArray[np.uint8]:
    """The area of each voxel, 1 to 5 as in `AREAS`, and 0 elsewhere.

    Where areas overlap, the ventricles come first, then the lowest part, then what is periventricular, then what is
    juxtacortical, with the cortex itself. What remains is deep white matter, with the grey nuclei in it.

    Parameters
    ----------
    tissues : Tissues
    heights_mm : ndarray
        Millimetres from the centre of the head upwards, of each voxel or of each plane.
    """
    ventricles = tissues.brain & (tissues.from_ventricles_mm < 0)
    inside = tissues.brain & ((tissues.fluid < 0.5) | ventricles)
    is_low = np.broadcast_to(heights_mm < _LOWEST_MM - FIELD_OF_VIEW_MM[0] / 2, inside.shape)
    near_ventricles = tissues.from_ventricles_mm <= _FROM_VENTRICLES_MM
    # Further from the ventricles than that, whatever is nearer is cortex.
    near_cortex = tissues.clearance_mm <= _FROM_CORTEX_MM
    chosen = np.select(
        [~inside, ventricles, is_low, near_ventricles, near_cortex],
        [0, _VENTRICLES, _LOWEST, _PERIVENTRICULAR, _JUXTACORTICAL],
        _DEEP,
    )
    return chosen.astype(np.uint8)


def area_of(blob: Blob, areas: NDArray[np.uint8], lattice: Lattice) -> str:
    """The name of the area in which a lesion's centre lies, by the voxel nearest to it."""
    return AREAS.get(int(areas[lattice.window(blob.centre_mm, 0.0)].item()), ELSEWHERE)


def area_counts(blobs: Iterable[Blob], areas: NDArray[np.uint8], lattice: Lattice) -> dict[str, int]:
    """The number of lesions in each area, and elsewhere."""
    found = [area_of(blob, areas, lattice) for blob in blobs]
    return {name: found.count(name) for name in (*AREAS.values(), ELSEWHERE)}


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

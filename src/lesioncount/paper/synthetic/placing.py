"""Where lesions are: in white matter, more often near the ventricles, and apart from each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lesioncount.paper.synthetic.anatomy import Anatomy
from lesioncount.paper.synthetic.blob import Blob
from lesioncount.paper.synthetic.lattice import FIELD_OF_VIEW_MM, Points

# Places from which those of lesions are chosen. About a third lies in white matter.
_N_PLACES = 1200

# Lesions lie around the ventricles more often than elsewhere: by this factor beside them, half of it further away.
_NEAR_VENTRICLES, _NEAR_MM = 3.0, 8.0

# Of its radius, how far a lesion's centre must be from fluid and cortex.
_CLEARANCE = 0.5

# Free space between lesions: two voxels of 24 × 48 × 40.
GAP_MM = 7.0


class WhiteMatter:
    """Places for lesions in one brain.

    Parameters
    ----------
    anatomy : Anatomy
    rng : Generator
        Of the places.
    """

    def __init__(self, anatomy: Anatomy, rng: np.random.Generator) -> None:
        # A lesion that the border of the image cuts has another size than it was drawn with.
        box = np.array(FIELD_OF_VIEW_MM) / 2 - GAP_MM
        places = rng.uniform(-box, box, size=(_N_PLACES, 3))
        tissues = anatomy.tissues(Points(places))
        white = (tissues.white > 0.5) & tissues.brain
        near = np.square(tissues.from_ventricles_mm[white].astype(np.float64) / _NEAR_MM)
        self._places = places[white]
        self._clearance_mm = tissues.clearance_mm[white]
        self._weights = 1 + (_NEAR_VENTRICLES - 1) / (1 + near)

    def placed(
        self, blobs: list[Blob], rng: np.random.Generator, *, gap_mm: float, beside: Sequence[Blob] = ()
    ) -> tuple[Blob, ...]:
        """The blobs, moved to places with a gap between them and to others. One that fits nowhere is left out."""
        order = np.argsort(rng.standard_exponential(len(self._weights)) / self._weights)
        places, clearance = self._places[order], self._clearance_mm[order]
        free = np.full(len(places), np.inf)
        for other in beside:
            free = np.minimum(free, np.linalg.norm(places - other.centre_mm, axis=1) - other.reach_mm)
        placed = []
        for blob in blobs:
            fits = np.flatnonzero((clearance > _CLEARANCE * blob.radius_mm) & (free > blob.reach_mm + gap_mm))
            if len(fits):
                centre = places[fits[0]]
                placed.append(replace(blob, centre_mm=centre))
                free = np.minimum(free, np.linalg.norm(places - centre, axis=1) - blob.reach_mm)
        return tuple(placed)

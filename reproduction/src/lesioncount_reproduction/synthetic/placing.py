"""Where lesions are: in white matter, more often near the ventricles, and apart from each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lesioncount_reproduction.synthetic.anatomy import Anatomy
from lesioncount_reproduction.synthetic.blob import Blob
from lesioncount_reproduction.synthetic.lattice import FIELD_OF_VIEW_MM, Points

# Places from which those of lesions are chosen. About a third lies in white matter.
_N_PLACES = 1200

# Lesions lie around the ventricles more often than elsewhere: by this factor beside them, half of it further away.
_NEAR_VENTRICLES, _NEAR_MM = 3.0, 8.0

# Of its radius, how far a lesion's centre must be from fluid and cortex.
_CLEARANCE = 0.5

# Directions that are tried for a lesion beside another one.
_N_DIRECTIONS = 100

# Free space between lesions: two voxels of 24 × 48 × 40.
GAP_MM = 7.0


@dataclass(frozen=True)
class Room:
    """How much room lesions need.

    Attributes
    ----------
    gap_mm : float
        Between lesions that are apart.
    apart_mm : float
        Between the centres of any two: no voxel is nearest to both.
    """

    gap_mm: float
    apart_mm: float


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
        box = self._box = np.array(FIELD_OF_VIEW_MM) / 2 - GAP_MM
        self._anatomy = anatomy
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
        free = _free_mm(places, beside)
        placed = []
        for blob in blobs:
            fits = np.flatnonzero((clearance > _CLEARANCE * blob.radius_mm) & (free > blob.reach_mm + gap_mm))
            if len(fits):
                centre = places[fits[0]]
                placed.append(replace(blob, centre_mm=centre))
                free = np.minimum(free, np.linalg.norm(places - centre, axis=1) - blob.reach_mm)
        return tuple(placed)

    def placed_beside(
        self,
        blob: Blob,
        host: Blob,
        rng: np.random.Generator,
        *,
        between_mm: float,
        room: Room,
        others: Sequence[Blob] = (),
    ) -> Blob | None:
        """The blob, moved to the side of another one; None if it fits nowhere there.

        Parameters
        ----------
        blob, host : Blob
        rng : Generator
            Of the side.
        between_mm : float
            About the free space between the two; below 0, they overlap.
        room : Room
        others : sequence of Blob
            From which it must keep the gap.
        """
        directions = rng.standard_normal((_N_DIRECTIONS, 3))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        distance = max(host.radius_mm + blob.radius_mm + between_mm, room.apart_mm)
        places = host.centre_mm + distance * directions
        tissues = self._anatomy.tissues(Points(places))
        fits = (tissues.white > 0.5) & tissues.brain & (tissues.clearance_mm > _CLEARANCE * blob.radius_mm)
        fits &= (np.abs(places) < self._box).all(axis=1) & (_free_mm(places, others) > blob.reach_mm + room.gap_mm)
        found = np.flatnonzero(fits)
        return replace(blob, centre_mm=places[found[0]]) if len(found) else None


def _free_mm(places: NDArray[np.float64], blobs: Sequence[Blob]) -> NDArray[np.float64]:
    """How far places (n, 3) are from the nearest blob."""
    distances = [np.linalg.norm(places - blob.centre_mm, axis=1) - blob.reach_mm for blob in blobs]
    return np.min(distances, axis=0) if distances else np.full(len(places), np.inf)

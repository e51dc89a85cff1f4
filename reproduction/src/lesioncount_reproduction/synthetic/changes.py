"""Two sessions of a patient → the truth of what has changed: new, gone and persisting lesions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lesioncount_reproduction.synthetic.areas import instance_map, marked
from lesioncount_reproduction.synthetic.blob import Blob
from lesioncount_reproduction.synthetic.lattice import Lattice

# From this factor on, a volume has grown or (one over it) shrunk; less is no change that anybody would call one.
_GROWN = 1.2


@dataclass(frozen=True)
class Fate:
    """What has become of a lesion between two sessions.

    Only what the rater has marked is counted, and whether a lesion is new or gone is a fact about the lesion, not about
    the marks: one that was there and missed before is not new, and one that is there and missed now is not gone. Such a
    lesion, marked at one session of the two at which it exists, is in none of the three counts.

    Attributes
    ----------
    number : int
    before, after : Blob or None
        The lesion at both sessions; None where it does not exist.
    """

    number: int
    before: Blob | None
    after: Blob | None

    @property
    def is_new(self) -> bool:
        """Did not exist before, and is marked now."""
        return self.before is None and self.after is not None and self.after.labelled

    @property
    def is_gone(self) -> bool:
        """Was marked before, and does not exist any more."""
        return self.after is None and self.before is not None and self.before.labelled

    @property
    def is_persisting(self) -> bool:
        """Exists and is marked at both sessions."""
        return self.growth is not None

    @property
    def growth(self) -> float | None:
        """The factor by which the volume of a persisting lesion has changed."""
        if self.before is None or self.after is None or not (self.before.labelled and self.after.labelled):
            return None
        return self.after.volume_mm3 / self.before.volume_mm3


@dataclass(frozen=True, eq=False)
class Changes:
    """What has changed between two sessions.

    Attributes
    ----------
    fates : tuple of Fate
        Of all lesions that exist at one of the sessions, whether marked or not.
    before, after : ndarray of uint16, shape (z, y, x)
        The number of the marked lesion that a voxel belongs to, at each session. A lesion has the same number in both.
    misregistration_mm : float
        How far the head has moved between the sessions, 50 mm from its centre.
    """

    fates: tuple[Fate, ...]
    before: NDArray[np.uint16] = field(repr=False)
    after: NDArray[np.uint16] = field(repr=False)
    misregistration_mm: float = 0.0

    @classmethod
    def between(
        cls, before: Mapping[int, Blob], after: Mapping[int, Blob], lattice: Lattice, *, misregistration_mm: float = 0.0
    ) -> Changes:
        """Compare the lesions of two sessions, by their numbers, as they lie in the scans."""
        numbers = sorted(before.keys() | after.keys())
        fates = tuple(Fate(number, before.get(number), after.get(number)) for number in numbers)
        earlier, later = (instance_map(marked(lesions), lattice) for lesions in (before, after))
        return cls(fates, earlier, later, misregistration_mm)

    @property
    def new(self) -> NDArray[np.uint16]:
        """The voxels of new lesions in the scan after, each with the number of its lesion."""
        return _of(self.after, [fate.number for fate in self.fates if fate.is_new])

    @property
    def gone(self) -> NDArray[np.uint16]:
        """The voxels of lesions that are gone in the scan before, each with the number of its lesion."""
        return _of(self.before, [fate.number for fate in self.fates if fate.is_gone])

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of lesions: marked ones, and with ``_all`` also those that the rater has missed."""
        growths = [fate.growth for fate in self.fates if fate.growth is not None]
        existed, exists = ([getattr(fate, when) is not None for fate in self.fates] for when in ("before", "after"))
        return {
            "n_before": int(np.unique(self.before[self.before > 0]).size),
            "n_after": int(np.unique(self.after[self.after > 0]).size),
            "n_new": sum(fate.is_new for fate in self.fates),
            "n_gone": sum(fate.is_gone for fate in self.fates),
            "n_persisting": len(growths),
            "n_grown": sum(growth >= _GROWN for growth in growths),
            "n_shrunk": sum(growth <= 1 / _GROWN for growth in growths),
            "n_before_all": sum(existed),
            "n_after_all": sum(exists),
            "n_new_all": sum(now and not old for old, now in zip(existed, exists, strict=True)),
            "n_gone_all": sum(old and not now for old, now in zip(existed, exists, strict=True)),
        }


def _of(labels: NDArray[np.uint16], numbers: list[int]) -> NDArray[np.uint16]:
    """A label map with only some of its values."""
    return np.where(np.isin(labels, numbers), labels, np.uint16(0))

"""What becomes of lesions between two sessions: they stay, grow, shrink, vanish, and new ones appear."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lesioncount_reproduction.synthetic.blob import Blob
from lesioncount_reproduction.synthetic.lattice import REFERENCE_VOXEL_MM3
from lesioncount_reproduction.synthetic.lesions import GAD_AMPLITUDE, GAD_VOLUME, gad_lesions, probability_of_label

# Lesions at the first session: mean and size of a negative binomial law, and the most that fit a brain.
_FIRST, _FIRST_SIZE, _MOST_FIRST = 6.5, 1.5, 30

# A patient without change is one of seven. New lesions of the others, per session: chosen so that all patients together
# have 1.5 in the mean, and four in ten none.
_STABLE = 1 / 7
_NEW, _NEW_SIZE, _MOST_NEW = 1.75, 1.75, 10

# Shares of old lesions that vanish, grow and shrink, unless the patient is stable.
_VANISH, _GROW, _SHRINK = 0.15, 0.25, 0.20

# By which factor volumes grow or (one over it) shrink, and how much those and the brightness of all others vary.
_GROWN = (1.3, 2.0)
_VOLUME_VARIES, _AMPLITUDE_VARIES = 0.05, 0.15


@dataclass(frozen=True)
class Plan:
    """How active the disease of a patient is.

    Attributes
    ----------
    n_first : int
        Lesions at the first session.
    is_stable : bool
        Whether no lesion ever appears, vanishes, grows or shrinks.
    """

    n_first: int
    is_stable: bool

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Plan:
        """The plan of a random patient."""
        return cls(_negative_binomial(rng, _FIRST, _FIRST_SIZE, _MOST_FIRST), bool(rng.random() < _STABLE))


@dataclass(frozen=True)
class Lesion:
    """A lesion at one session.

    Attributes
    ----------
    number : int
        From 1, the same at all sessions, and never used again.
    blob : Blob
        What it is like, in a head that has not moved.
    doubt : float
        Drawn once, from 0 to 1: the rater marks the lesion at every session at which it is seen with a larger
        probability than this. So one that has not changed is judged as before.
    """

    number: int
    blob: Blob
    doubt: float

    def seen(self, contrast: float) -> Lesion:
        """As it looks in a scan: gadolinium lets it shine more or less, and the rater marks it or not."""
        amplitude = self.blob.amplitude * contrast
        likely = probability_of_label(amplitude, self.blob.volume_mm3 / REFERENCE_VOXEL_MM3)
        return replace(self, blob=replace(self.blob, amplitude=amplitude, labelled=self.doubt < likely))


def new_lesions(plan: Plan, rng: np.random.Generator) -> list[Blob]:
    """Lesions that appear between two sessions, still without a place."""
    n = 0 if plan.is_stable else _negative_binomial(rng, _NEW, _NEW_SIZE, _MOST_NEW)
    return gad_lesions(rng, n)


def vanishes(plan: Plan, rng: np.random.Generator) -> bool:
    """Whether a lesion does not enhance any more at the next session."""
    return bool(rng.random() < _VANISH) and not plan.is_stable


def changed(blob: Blob, plan: Plan, rng: np.random.Generator) -> Blob:
    """A lesion that is still there at the next session, with another size and brightness."""
    factor = np.exp(_VOLUME_VARIES * rng.standard_normal())
    kind, by = rng.random(), rng.uniform(*_GROWN)
    if not plan.is_stable and kind < _GROW + _SHRINK:
        factor = by if kind < _GROW else 1 / by
    amplitude = blob.amplitude * np.exp(_AMPLITUDE_VARIES * rng.standard_normal())
    smallest, largest = (limit * REFERENCE_VOXEL_MM3 for limit in GAD_VOLUME[2:])
    return replace(
        blob,
        volume_mm3=float(np.clip(blob.volume_mm3 * factor, smallest, largest)),
        amplitude=float(np.clip(amplitude, *GAD_AMPLITUDE[2:])),
    )


def _negative_binomial(rng: np.random.Generator, mean: float, size: float, most: int) -> int:
    return min(int(rng.negative_binomial(size, size / (size + mean))), most)

"""Random numbers: a stream for each purpose, patient and session."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """What random numbers are for.

    Each purpose, patient and session has a stream of its own, so that a scan is the same whatever was made before it,
    and in which process. The two cohorts share no purpose: with the same seed, their patients are different people.
    """

    COHORT = 0
    PATIENT = 1
    LESIONS = 2
    ACQUISITION = 3
    AGEING_COHORT = 10
    AGEING_PLAN = 11
    AGEING_PATIENT = 12
    AGEING_LESIONS = 13
    AGEING_MOTION = 14
    AGEING_ACQUISITION = 15


def stream(seed: int, purpose: Purpose, *whose: int) -> np.random.Generator:
    """The random numbers of a purpose, for a patient and a session where it has them."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(int(purpose), *whose)))

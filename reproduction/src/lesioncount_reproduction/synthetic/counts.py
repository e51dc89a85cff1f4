"""How many lesions scans have, and which patients train, validate and test."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from lesioncount.learning.split import SPLITS


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


# Shares of scans with 0, 1, 2, 3 and 4 or more enhancing lesions: the class balance of the paper's data.
CLASS_BALANCE = (0.66, 0.135, 0.065, 0.04, 0.10)

# Above 4, the number of further lesions is log-normal, rounded down: median, spread, and the most that fit a brain.
_TAIL_MEDIAN, _TAIL_SPREAD, _MOST = 2.5, 0.9, 30

# Correlation of the scans of a patient, in the Gaussian copula.
_CORRELATION = 0.35

# Out of five patients with about as many lesions.
_SPLIT_OF_FIVE = ("train", "train", "train", "val", "test")


def count_quantile(u: float) -> int:
    """The number of lesions that a share ``u`` of scans stays below or at.

    Examples
    --------
    >>> [count_quantile(u) for u in (0.5, 0.7, 0.85, 0.88, 0.95, 0.999)]
    [0, 1, 2, 3, 6, 24]
    """
    below = np.cumsum(CLASS_BALANCE)[:-1]
    if u < below[-1]:
        return int(np.searchsorted(below, u, side="right"))
    within = min(max((u - float(below[-1])) / CLASS_BALANCE[-1], 1e-9), 1 - 1e-9)
    return int(min(4 + np.floor(np.exp(NormalDist(np.log(_TAIL_MEDIAN), _TAIL_SPREAD).inv_cdf(within))), _MOST))


def drawn_counts(rng: np.random.Generator, n_sessions: NDArray[np.int64]) -> list[tuple[int, ...]]:
    """Numbers of lesions of the scans of each patient.

    A Gaussian copula makes scans of one patient alike. Ranks, not values, choose the number: each of n scans gets
    another n-th of the law, so that a small cohort has the law's shares and mean as well.

    Parameters
    ----------
    rng : Generator
    n_sessions : ndarray of int
        Scans of each patient.
    """
    n = int(n_sessions.sum())
    patient = np.repeat(rng.standard_normal(len(n_sessions)), n_sessions)
    latent = np.sqrt(_CORRELATION) * patient + np.sqrt(1 - _CORRELATION) * rng.standard_normal(n)
    rank = np.argsort(np.argsort(latent))
    counts = [count_quantile(float(u)) for u in (rank + rng.random(n)) / n]
    ends = np.cumsum(n_sessions)
    return [tuple(counts[end - k : end]) for end, k in zip(ends, n_sessions, strict=True)]


def drawn_splits(rng: np.random.Generator, counts: Sequence[tuple[int, ...]]) -> list[str]:
    """The part of each patient: of five with about as many lesions, three train, one validates, one tests."""
    means = np.array([np.mean(patient) for patient in counts])
    order = np.lexsort((rng.random(len(counts)), means))
    splits: list[str] = [SPLITS[0]] * len(counts)
    # The patients with most lesions differ most: fives are made from that end.
    for begin in range(0, len(counts), len(_SPLIT_OF_FIVE)):
        five = order[::-1][begin : begin + len(_SPLIT_OF_FIVE)]
        for patient, name in zip(five, rng.permutation(_SPLIT_OF_FIVE), strict=False):
            splits[patient] = str(name)
    return splits

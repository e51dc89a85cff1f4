"""Trials whose true counts are known: patients differ, and every existence probability is honest."""

from dataclasses import dataclass

import numpy as np

from lesioncount import PoissonBinomial


@dataclass(frozen=True)
class Arm:
    """One arm: of each patient, the distribution of the count by one map, and the true count."""

    counts: list
    truth: np.ndarray


def arm(rng, n_patients, *, rate, shape=1.0, beta=(1.5, 1.5)):
    """Candidates are Poisson around a rate that differs between patients; each is a lesion as often as it says.

    The expected number of lesions of a patient is ``rate`` times the mean of the beta distribution.
    """
    existence = [rng.beta(*beta, rng.poisson(rate * factor)) for factor in rng.gamma(shape, 1 / shape, n_patients)]
    truth = np.array([int((rng.random(len(p)) < p).sum()) for p in existence])
    return Arm([(PoissonBinomial(p),) for p in existence], truth)

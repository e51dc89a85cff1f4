"""Cohorts whose truth is known because it was drawn."""

import numpy as np

import lesioncount as lc
from lesioncount.trust.fitting import KnownTruth


def cohort(n, *, slope=1.0, offset=0.0, missed_rate=0.0, seed=0, candidates=3.0, groups=None):
    """Scans whose candidates are real with the probability that this calibration gives their existence."""
    rng = np.random.default_rng(seed)
    truth = lc.Calibration(slope, offset)
    existence = [rng.uniform(0.1, 1, rng.poisson(candidates)) for _ in range(n)]
    owns = [rng.random(len(p)) < truth.existence(p) for p in existence]
    missed = rng.poisson(missed_rate, n) if missed_rate else np.zeros(n, int)
    counts = [int(o.sum() + m) for o, m in zip(owns, missed, strict=True)]
    return KnownTruth.of(existence, counts, owns=owns, groups=groups)


def without_lesions(truth):
    """The same, knowing counts only."""
    return KnownTruth.of(truth.existence, truth.counts, groups=truth.groups)

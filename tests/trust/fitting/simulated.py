"""Cohorts whose truth is known because it was drawn."""

import numpy as np

import lesioncount as lc
from lesioncount.trust.fitting import KnownTruth


def cohort(n, *, slope=1.0, offset=0.0, extra_rate=0.0, spread=0.0, crowding=0.0, seed=0, candidates=3.0, groups=None):
    """Scans whose candidates are real with the probability that this calibration gives their existence."""
    rng = np.random.default_rng(seed)
    expected = candidates * rng.gamma(1.0, 1.0, n) if crowding else np.full(n, candidates)
    existence = [rng.uniform(0.1, 1, rng.poisson(mean)) for mean in expected]
    shifts = offset + (spread * rng.normal(size=n) if spread else np.zeros(n))
    typical = np.expm1(np.mean([np.log1p(p.sum()) for p in existence]))
    truths = [lc.Calibration(slope, shift, crowding=crowding, typical_count=typical) for shift in shifts]
    owns = [rng.random(len(p)) < truth.existence(p) for p, truth in zip(existence, truths, strict=True)]
    missed = rng.poisson(extra_rate, n) if extra_rate else np.zeros(n, int)
    counts = [int(o.sum() + m) for o, m in zip(owns, missed, strict=True)]
    return KnownTruth.of(existence, counts, owns=owns, groups=groups)


def without_lesions(truth):
    """The same, knowing counts only."""
    return KnownTruth.of(truth.candidates, truth.counts, groups=truth.groups)

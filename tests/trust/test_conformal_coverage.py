"""The claim itself: over simulated cohorts, counts are covered as often as promised, also by wrong distributions.

Each cohort is n calibration scans and one new scan: the number of cohorts whose new scan is covered is binomial.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom

from lesioncount import PoissonBinomial
from lesioncount.distributions.with_extra import CountWithExtra
from lesioncount.trust.conformal import ConformalCounts

pytestmark = pytest.mark.slow

N_COHORTS = 1000
N_KINDS_OF_SCAN = 250
CONFIDENCES = (0.95, 0.9, 0.8)
HIGHEST_COUNT = 40

# Of so many comparisons (90 settings, three bounds), a true claim fails each with this probability at most.
DOUBT = 1e-4


def shifted(p, slope, offset):
    """Probabilities after a line on their logit."""
    odds = (p / (1 - p)) ** slope * math.exp(offset)
    return odds / (1 + odds)


# What a network makes of scans whose candidates are lesions with probabilities p.
NETWORKS = {
    "honest": PoissonBinomial,
    "over-confident": lambda p: PoissonBinomial(shifted(p, 6, 0)),
    "biased": lambda p: PoissonBinomial(shifted(p, 1, 2.5)),
    "wrong point mass": lambda p: PoissonBinomial(np.ones(int(3 * p.sum()) % 7)),
    "endless tail": lambda p: CountWithExtra(PoissonBinomial(shifted(p, 3, -2)), 0.05),
}
# Lesions per scan that leave no candidate: with them, other networks than the last hold true counts impossible.
MISSED = {"honest": 0.0, "over-confident": 0.4, "biased": 0.4, "wrong point mass": 0.4, "endless tail": 0.4}


def kinds_of_scan(network, rng):
    """Distributions predicted, and a row of true probabilities of each count for each of them."""
    p = [rng.uniform(0.02, 0.98, rng.integers(1, 9)) for _ in range(N_KINDS_OF_SCAN)]
    rate = MISSED[network]
    true = [CountWithExtra(PoissonBinomial(each), rate) if rate else PoissonBinomial(each) for each in p]
    return [NETWORKS[network](each) for each in p], np.array([d.cdf(np.arange(HIGHEST_COUNT)) for d in true])


def score_table(predicted, kind):
    """The score of each count in each kind of scan: looked up, a thousand cohorts take no longer than one."""
    counts = range(HIGHEST_COUNT + 1)
    return np.array([[ConformalCounts.fit([d], [c], kind=kind).scores[0][0] for c in counts] for d in predicted])


def drawn(cdf, n, rng):
    """Kinds of scan and true counts of all cohorts; the last column is the new scan."""
    scans = rng.integers(N_KINDS_OF_SCAN, size=(N_COHORTS, n + 1))
    counts = [(rng.random((n + 1, 1)) > cdf[cohort]).sum(axis=1) for cohort in scans]
    return scans, np.array(counts)


def covered_by_rank(scores, confidence, rng):
    """Whether the new score is among the k smallest of its cohort, when ties are broken at random."""
    new = scores[:, -1:]
    ranks = (scores[:, :-1] < new).sum(axis=1) + 1 + rng.integers((scores[:, :-1] == new).sum(axis=1) + 1)
    return ranks <= math.ceil(scores.shape[1] * confidence - 1e-9)


def simulated_coverage(network, kind):
    """For each n and confidence, the cohorts whose new scan is covered: by our answer, and by rank."""
    rng = np.random.default_rng(20050101)
    predicted, cdf = kinds_of_scan(network, rng)
    table = score_table(predicted, kind)
    for n in (50, 200, 1000):
        scans, counts = drawn(cdf, n, rng)
        scores = table[scans, counts]
        cohorts = [ConformalCounts(kind, (np.sort(each[:-1]),)) for each in scores]
        new = [predicted[scan] for scan in scans[:, -1]]
        for confidence in CONFIDENCES:
            answers = [cohort.prediction_set(d, confidence) for cohort, d in zip(cohorts, new, strict=True)]
            covered = [count in answer for count, answer in zip(counts[:, -1], answers, strict=True)]
            yield n, confidence, np.array(covered), covered_by_rank(scores, confidence, rng)


@pytest.mark.parametrize("kind", ["interval", "set"])
@pytest.mark.parametrize("network", NETWORKS)
def test_coverage_is_as_promised(network, kind):
    for n, confidence, covered, by_rank in simulated_coverage(network, kind):
        assert covered.sum() >= binom.ppf(DOUBT, N_COHORTS, confidence)
        assert covered[by_rank].all()
        exact = math.ceil((n + 1) * confidence - 1e-9) / (n + 1)
        assert binom.ppf(DOUBT, N_COHORTS, exact) <= by_rank.sum() <= binom.isf(DOUBT, N_COHORTS, exact)


@pytest.mark.parametrize("kind", ["interval", "set"])
@pytest.mark.parametrize("network", NETWORKS)
def test_coverage_of_each_group_is_as_promised(network, kind):
    rng = np.random.default_rng(20050102)
    predicted, cdf = kinds_of_scan(network, rng)
    groups = np.digitize([d.mode() for d in predicted], (2, 4))
    scans, counts = drawn(cdf, 300, rng)
    scores = score_table(predicted, kind)[scans, counts]
    covered = [[], [], []]
    for row, of, count, scan in zip(scores, groups[scans], counts[:, -1], scans[:, -1], strict=True):
        by_group = tuple(np.sort(row[:-1][of[:-1] == group]) for group in range(3))
        conformal = ConformalCounts(kind, by_group, (2, 4))
        covered[of[-1]].append(count in conformal.prediction_set(predicted[scan], 0.8))
    for each in covered:
        assert sum(each) >= binom.ppf(DOUBT, len(each), 0.8)
    assert sum(map(len, covered)) == N_COHORTS


@pytest.mark.parametrize("kind", ["interval", "set"])
def test_cohorts_looked_up_are_those_that_are_fitted(kind):
    rng = np.random.default_rng(20050103)
    predicted, cdf = kinds_of_scan("biased", rng)
    scans, counts = drawn(cdf, 200, rng)
    looked_up = score_table(predicted, kind)[scans[0], counts[0]]
    fitted = ConformalCounts.fit([predicted[scan] for scan in scans[0]], counts[0], kind=kind)
    assert fitted == ConformalCounts(kind, (np.sort(looked_up),))

"""The count after review, beside all outcomes one by one."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesioncount.distributions.tabulated import TabulatedCount
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.reviewed_count import UNDECIDED, ReviewedCount

_NONE = Calibration()
_SHARED = Calibration(slope=0.8, offset=-0.3, spread=1.2)
_EXTRA = Calibration(spread=0.7, extra_rate=0.4, extra_share=0.2, extra_shape=1.5)
_MOST_EXTRA = 60


def _reviewed(calibration, peaks, decided, **more):
    return ReviewedCount(calibration, peaks, np.array(decided, dtype=int), **more)


def _log_extra(mean, shape, j):
    if math.isinf(shape):
        return j * math.log(mean) - mean - math.lgamma(j + 1)
    first = math.lgamma(j + shape) - math.lgamma(j + 1) - math.lgamma(shape)
    return first + shape * math.log(shape / (shape + mean)) + j * math.log(mean / (shape + mean))


def _by_hand(calibration, peaks, decided, n_added=0, is_done=False):
    """P(count | what was decided), summed over nodes, candidates and extra lesions one outcome at a time."""
    nodes, weights, *_ = calibration.at_nodes(peaks)
    found = n_added + sum(max(n - 1, 0) for n in decided)
    joint = np.zeros(len(peaks) * 10 + _MOST_EXTRA + n_added + 1)
    for p, w in zip(nodes, weights, strict=True):
        seen = math.prod((p[k] if n > 0 else 1 - p[k]) for k, n in enumerate(decided) if n != UNDECIDED)
        among = sum(p[k] if n == UNDECIDED else min(n, 1) for k, n in enumerate(decided))
        mean = 0.0 if is_done else calibration.extra_rate + calibration.extra_share * among
        extra = {0: 1.0}
        if mean > 0:
            of_m = {m: math.exp(_log_extra(mean, calibration.extra_shape, m)) for m in range(found, _MOST_EXTRA)}
            extra = {m - found: value / sum(of_m.values()) for m, value in of_m.items()}
        for outcome in product((0, 1), repeat=decided.count(UNDECIDED)):
            unseen = [k for k, n in enumerate(decided) if n == UNDECIDED]
            chance = math.prod(p[k] if x else 1 - p[k] for k, x in zip(unseen, outcome, strict=True))
            known = sum(n for n in decided if n != UNDECIDED) + n_added
            for more, q in extra.items():
                joint[known + sum(outcome) + more] += w * seen * chance * q
    return joint / joint.sum()


_PEAKS = [0.95, 0.7, 0.5, 0.3, 0.12]


@pytest.mark.parametrize("calibration", [_NONE, _SHARED, _EXTRA], ids=["none", "shared", "extra"])
@pytest.mark.parametrize(
    ("decided", "more"),
    [
        ([UNDECIDED] * 5, {}),
        ([1, UNDECIDED, 0, UNDECIDED, UNDECIDED], {}),
        ([3, UNDECIDED, 0, 1, UNDECIDED], {"n_added": 2}),
        ([0, 0, 0, 1, 1], {"n_added": 1, "is_done": True}),
        ([UNDECIDED, 2, UNDECIDED, UNDECIDED, 0], {"is_done": True}),
    ],
)
def test_distribution_is_that_of_all_outcomes(calibration, decided, more):
    ours = _reviewed(calibration, _PEAKS, decided, **more)
    expected = _by_hand(calibration, _PEAKS, decided, **more)
    pmf = ours.distribution.pmf()
    size = max(len(pmf), len(expected))
    np.testing.assert_allclose(
        np.pad(pmf, (0, size - len(pmf))), np.pad(expected, (0, size - len(expected))), atol=1e-9
    )
    counts = np.arange(len(expected))
    assert ours.mean() == pytest.approx(counts @ expected, abs=1e-6)
    assert ours.var() == pytest.approx(counts**2 @ expected - (counts @ expected) ** 2, abs=1e-5)


@given(
    peaks=st.lists(st.floats(0.01, 0.99), min_size=1, max_size=6),
    spread=st.sampled_from([0.0, 0.5, 1.5]),
    data=st.data(),
)
def test_expected_loss_of_variance_is_what_an_answer_takes_on_average(peaks, spread, data):
    decided = data.draw(st.lists(st.sampled_from([UNDECIDED, 0, 1]), min_size=len(peaks), max_size=len(peaks)))
    calibration = Calibration(spread=spread)
    now = _reviewed(calibration, peaks, decided)
    for k, n in enumerate(decided):
        if n != UNDECIDED:
            assert now.loss_of_variance[k] == 0
            continue
        p = now.existence[k]
        answers = [_reviewed(calibration, peaks, [*decided[:k], x, *decided[k + 1 :]]).var() for x in (0, 1)]
        assert now.loss_of_variance[k] == pytest.approx(now.var() - (1 - p) * answers[0] - p * answers[1], abs=1e-9)


def test_without_spread_a_decision_says_nothing_of_the_others():
    before, after = (_reviewed(_NONE, _PEAKS, [first, *[UNDECIDED] * 4]) for first in (UNDECIDED, 0))
    np.testing.assert_array_equal(before.existence[1:], after.existence[1:])


def test_where_scans_differ_as_a_whole_a_rejected_sure_candidate_lowers_the_others():
    rejected, accepted = (_reviewed(_SHARED, _PEAKS, [n, *[UNDECIDED] * 4]) for n in (0, 1))
    assert (rejected.existence[1:] < accepted.existence[1:]).all()


def test_verdict_against_a_certain_candidate_is_taken():
    count = _reviewed(_NONE, [1.0, 0.5], [0, UNDECIDED]).distribution
    np.testing.assert_allclose(count.pmf(), [0.5, 0.5])


def test_decisions_until_certain_are_the_fewest_that_leave_three_counts_with_90_percent():
    peaks = [0.5, 0.5, 0.5, 0.4, 0.02]
    assert _reviewed(_NONE, peaks, [UNDECIDED] * 5).n_until_certain() == 2
    assert _reviewed(_NONE, peaks, [1, *[UNDECIDED] * 4]).n_until_certain() == 1
    assert _reviewed(_NONE, [0.5] * 20, [UNDECIDED] * 20).n_until_certain() == 18  # of three, one in eight


def test_lesions_without_candidates_keep_a_count_uncertain_until_the_scan_is_done():
    missing = Calibration(extra_rate=5.0)
    assert _reviewed(missing, [0.9], [1]).n_until_certain() is None
    assert _reviewed(missing, [0.9], [1], is_done=True).n_until_certain() == 0


def test_scan_without_candidates_counts_what_was_added():
    count = _reviewed(_NONE, [], [], n_added=2)
    assert (count.mean(), count.var(), count.n_until_certain()) == (2, 0, 0)
    assert count.distribution.pmf().tolist() == [0, 0, 1]


def test_tabulated_count_speaks_as_all_distributions_do():
    count = TabulatedCount(np.array([0.25, 0.5, 0.25]), 7)
    assert (count.mean(), count.var(), count.mode(), count.median()) == (8, 0.5, 8, 8)
    assert count.interval(0.9) == (7, 9)
    assert count.logpmf(8) == pytest.approx(math.log(0.5))
    assert count.logpmf(3) == -math.inf
    assert count.sf(8) == 0.25
    assert "7 and more" in repr(count)

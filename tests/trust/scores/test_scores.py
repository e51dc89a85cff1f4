"""Scores say what their formulas say, and what peers say."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lesioncount.errors import ScoreError
from lesioncount.trust.scores import NLL_FLOOR, bootstrap, confusion, count_reliability, nll, reliability, rps


def some_bins(n=200, bins=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(bins, 0.6), n), rng.integers(0, bins + 3, n)


def test_rps_of_certain_counts_is_the_absolute_error():
    assert rps(np.eye(5)[[0, 3, 4]], [2, 3, 0]).tolist() == [2, 0, 4]


@given(arrays(np.float64, 5, elements=st.floats(0.01, 1)), arrays(np.float64, 5, elements=st.floats(0.01, 1)))
def test_scores_are_proper(truth, other):
    """On average over the true distribution, no other distribution scores better than itself."""
    truth, other = truth / truth.sum(), other / other.sum()
    counts = np.arange(5)
    for score in (rps, nll):
        expected = [(score(np.tile(p, (5, 1)), counts) * truth).sum() for p in (truth, other)]
        assert expected[0] <= expected[1] + 1e-12


def test_impossible_counts_cost_the_floor():
    assert nll([[1.0, 0.0]], [1])[0] == pytest.approx(-math.log(NLL_FLOOR))
    assert nll([[1.0, 0.0]], [1], floor=1e-3)[0] == pytest.approx(-math.log(1e-3))


def test_counts_above_the_last_bin_are_in_it():
    p, _ = some_bins(3)
    np.testing.assert_array_equal(rps(p, [4, 9, 400]), rps(p, [4, 4, 4]))


def test_class_averages_are_those_of_scikit_learn():
    sklearn = pytest.importorskip("sklearn.metrics", reason="needs scikit-learn")
    p, counts = some_bins()
    ours = confusion(p.argmax(1), counts)
    truth = np.minimum(counts, 4)
    precision, recall, f1, _ = sklearn.precision_recall_fscore_support(
        truth, p.argmax(1), average="macro", zero_division=0
    )
    assert (ours.precision, ours.recall, ours.f1) == pytest.approx((precision, recall, f1))
    np.testing.assert_array_equal(ours.matrix, sklearn.confusion_matrix(truth, p.argmax(1)))


def test_classes_that_never_occur_are_left_out_of_averages():
    assert confusion([0, 1], [0, 1]).f1 == 1
    assert confusion([0, 0], [0, 1]).recall == 0.5


def test_parts_add_up_to_the_cohort():
    p, counts = some_bins()
    guess = p.argmax(1)
    np.testing.assert_array_equal(
        (confusion(guess[:80], counts[:80]) + confusion(guess[80:], counts[80:])).matrix,
        confusion(guess, counts).matrix,
    )
    parts = count_reliability(p[:80], counts[:80]) + count_reliability(p[80:], counts[80:])
    assert parts.ece == pytest.approx(count_reliability(p, counts).ece)


def test_honest_probabilities_are_calibrated_and_boasting_ones_are_not():
    rng = np.random.default_rng(1)
    p = rng.random(200_000)
    hits = rng.random(200_000) < p
    assert reliability(p, hits).ece < 0.005
    assert reliability(np.sqrt(p), hits).ece > 0.1
    assert reliability(p, hits).mce < 0.02


def test_a_confidence_of_zero_and_of_one_have_a_bin():
    found = reliability([0.0, 1.0], [False, True], bins=4)
    assert found.n.tolist() == [1, 0, 0, 1]
    assert (found.ece, found.mce) == (0, 0)


def test_nothing_to_score_is_not_a_number():
    empty = np.zeros((0, 5))
    assert math.isnan(count_reliability(empty, []).ece)
    assert math.isnan(count_reliability(empty, []).mce)
    assert math.isnan(confusion([], []).accuracy)
    assert math.isnan(confusion([], []).f1)


@pytest.mark.parametrize(
    ("probabilities", "counts", "message"),
    [
        ([0.5, 0.5], [0, 1], "Expected a row of probabilities per scan"),
        ([[0.5, 0.9]], [0], "add up to 1"),
        ([[-0.5, 1.5]], [0], "none below 0"),
        ([[0.5, 0.5]], [0, 1], "one count for each of 1 scans"),
        ([[0.5, 0.5]], [0.5], "whole numbers"),
        ([[0.5, 0.5]], [-1], "whole numbers"),
        ([[0.5, 0.5]], ["many"], "whole numbers"),
        ([[0.5, 0.5]], [float("nan")], "whole numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_what_cannot_be_compared_is_refused(probabilities, counts, message):
    with pytest.raises(ScoreError, match=message):
        rps(probabilities, counts)


def test_bad_options_are_refused():
    with pytest.raises(ScoreError, match="at least 1"):
        confusion([0], [0], max_count=0)
    with pytest.raises(ScoreError, match="as many hits"):
        reliability([0.5], [True, False])
    with pytest.raises(ScoreError, match=r"in \[0, 1\]"):
        reliability([1.5], [True])


def test_resamples_are_the_same_however_many_are_in_memory(monkeypatch):
    groups = [f"patient {scan // 2}" for scan in range(60)]
    expected = np.concatenate(list(bootstrap.resampled_weights(groups, n_resamples=230)))
    monkeypatch.setattr(bootstrap, "_MOST_NUMBERS", 400)
    blocks = list(bootstrap.resampled_weights(groups, n_resamples=230))
    assert len(blocks) == 39
    np.testing.assert_array_equal(np.concatenate(blocks), expected)

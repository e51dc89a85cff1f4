"""Estimates: a mean over seeds, an interval over patients that is the same for everything compared."""

import math

import numpy as np
import pytest
from msgspec import convert, to_builtins

from lesioncount.trust.scores import Predictions
from lesioncount.trust.scores.estimate import Estimate
from lesioncount_reproduction.experiments.estimates import Resampling, Samples, estimate_of, estimates_of
from lesioncount_reproduction.experiments.scored import Counted, Withstood


class Seen:
    """Scores that show how often each patient, and each scan by its place, was drawn."""

    def __init__(self, *patients):
        self.groups, self.shares = patients, {}

    def scores(self, weights):
        found = {name: weights[:, i] for i, patient in enumerate(self.groups) for name in (patient, i)}
        return found | {"total": weights.sum(axis=1)}


def drawn(seen, resampling=None):
    """How often each was drawn, by name."""
    resampling = Resampling.of([seen]) if resampling is None else resampling
    return {name: samples.values for name, samples in resampling.samples([seen]).items()}


def counted(rng, patients):
    truth = rng.integers(0, 6, len(patients))
    predicted = np.maximum(truth - rng.integers(0, 2, len(truth)), 0)
    return Counted(Predictions.of_counts(predicted, truth, bins=4), patients)


def test_an_estimate_is_a_mean_over_seeds_with_the_interval_of_its_resamples():
    samples = np.array([[0.5, *np.arange(41) / 40], [0.7, *np.arange(41) / 40 + 1]])
    found = estimate_of(Samples(samples))
    assert found.value == pytest.approx(0.6)
    assert found.seeds == (0.5, 0.7)
    # Means of resamples are 0.5, 0.525, … 1.5: 95 % of them leave one fortieth on each side.
    assert (found.low, found.high) == pytest.approx((0.525, 1.475))


def test_where_all_agree_the_interval_of_a_share_is_the_exact_one():
    def interval(values, n_patients=math.nan):
        found = estimate_of(Samples(values, n_patients))
        return found.low, found.high

    everyone, nobody, some = np.ones((2, 10)), np.zeros((2, 10)), np.array([[0.5, 0.4, 0.6, 0.5]])
    assert interval(everyone) == (1, 1)  # not a share
    # scipy.stats.binomtest(20, 20).proportion_ci(method="exact") and of 0 in 20
    assert interval(everyone, 20) == pytest.approx((0.83157, 1), abs=1e-5)
    assert interval(nobody, 20) == pytest.approx((0, 0.16843), abs=1e-5)
    assert interval(some, 20) == interval(some)


def test_a_share_stands_on_distinct_patients_however_often_they_were_looked_at():
    """Neither a second scan of a patient nor a second training makes the interval of a share shorter."""
    right = Counted(Predictions.of_counts([0] * 4, [0] * 4), list("abcd"))
    twice = Counted(Predictions.of_counts([0] * 8, [0] * 8), list("abcdabcd"))
    exact = 1 - 0.025 ** (1 / 4)
    for seeds in ([right], [right] * 3, [twice], [twice, right]):
        samples = Resampling.of(seeds).samples(seeds)
        assert samples["accuracy"].n_patients == 4
        found = estimate_of(samples["accuracy"])
        assert (found.low, found.high) == pytest.approx((1 - exact, 1))
        assert estimate_of(samples["zero_mass"]).high == pytest.approx(exact)
        assert math.isnan(samples["mae"].n_patients)
        assert estimate_of(samples["mae"]).high == 0


def test_a_share_of_some_scans_stands_on_that_part_of_the_patients():
    nobody = np.zeros(4, dtype=bool)
    seeds = [
        Withstood(np.array([True, True, True, False]), nobody, nobody, list("abcd")),
        Withstood(np.array([True, False, False, False]), nobody, nobody, list("cdef")),
    ]
    samples = Resampling.of(seeds).samples(seeds)
    assert samples["accuracy_drop"].n_patients == 6
    assert samples["success_rate"].n_patients == samples["blind"].n_patients == 3  # half were counted right before
    counted = [Counted(Predictions.of_bins(np.full((8, 5), 0.2), [0] * 8), list("abcdefgh"))]
    found = Resampling.of(counted).samples(counted)
    assert found["certain_accuracy"].n_patients == found["uncertain_accuracy"].n_patients == 2


def test_differences_of_shares_are_no_shares():
    alike = Samples(np.zeros((2, 10)), 20)
    found = estimate_of(alike - alike)
    assert (found.low, found.high) == (0, 0)


def test_scores_that_resampling_makes_larger_are_moved_back():
    samples = np.array([[0.1, 0.15, 0.2, 0.25]])
    plain, moved = estimate_of(Samples(samples)), estimate_of(Samples(samples, is_biased=True))
    assert moved.value == plain.value == 0.1
    assert (moved.low, moved.high) == pytest.approx((plain.low - 0.1, plain.high - 0.1))
    assert estimate_of(Samples(samples - 0.06, is_biased=True)).low == 0
    both = {"ece": Samples(samples, is_biased=True), "rps": Samples(samples)}
    assert estimates_of(both, ("rps", "ece")) == [plain, moved]


def test_calibration_errors_are_known_to_be_biased(rng):
    seeds = [counted(rng, [f"p{i}" for i in range(10)])]
    biased = {name for name, samples in Resampling.of(seeds).samples(seeds).items() if samples.is_biased}
    assert biased == {"ece", "mce"}


def test_resamples_without_a_score_are_left_out():
    found = estimate_of(Samples(np.array([[0.5, math.nan, 0.4, 0.4, math.nan]])))
    assert (found.low, found.high) == (0.4, 0.4)
    nothing = estimate_of(Samples(np.full((2, 5), math.nan)))
    assert all(map(math.isnan, (nothing.value, nothing.low, nothing.high, *nothing.seeds)))


def test_estimates_survive_plain_values():
    found = Estimate(0.5, 0.25, 0.75, (0.25, 0.75))
    assert convert(to_builtins(found), Estimate) == found
    without = convert({"estimate": None, "low": 0.5, "high": None, "seeds": [None, 1.0]}, Estimate)
    assert math.isnan(without.value)
    assert math.isnan(without.high)
    assert math.isnan(without.seeds[0])
    assert (without.low, without.seeds[1]) == (0.5, 1.0)


def test_the_first_sample_is_the_cohort_as_it_is(rng):
    patients = [f"p{i // 2}" for i in range(40)]
    seeds = [counted(rng, patients) for _ in range(2)]
    samples = Resampling.of(seeds).samples(seeds)
    assert samples["accuracy"].values.shape == (2, 1001)
    for row, one in zip(samples["accuracy"].values, seeds, strict=True):
        assert row[0] == one.predictions.hits.mean()


def test_identical_methods_differ_by_exactly_nothing(rng):
    patients = [f"p{i // 2}" for i in range(40)]
    seeds = [counted(rng, patients) for _ in range(3)]
    resampling = Resampling.of(seeds)
    ours, theirs = (resampling.samples(seeds) for _ in range(2))
    for name in ("accuracy", "f1", "rps", "ece", "mae"):
        found = estimate_of(ours[name] - theirs[name])
        assert (found.value, found.low, found.high, *found.seeds) == (0,) * 6
    again = Resampling.of(seeds).samples(seeds)
    np.testing.assert_array_equal(again["accuracy"].values, ours["accuracy"].values)


def test_scans_of_a_patient_are_drawn_together():
    samples = drawn(Seen("b", "a", "b"))
    np.testing.assert_array_equal(samples[0], samples[2])
    assert (samples[0] != samples[1]).any()
    assert set((samples[0] + samples[1])[0, 1:]) == {2}  # two patients are drawn each time


def test_seeds_may_have_different_scans_and_draw_the_same_patients():
    first, second = Seen("c", "b", "a"), Seen("b", "d")
    resampling = Resampling.of([first, second])
    assert resampling.patients == ("a", "b", "c", "d")
    alone, other = (drawn(one, resampling) for one in (first, second))
    np.testing.assert_array_equal(alone["b"], other["b"])
    assert (alone["a"] != other["b"]).any()
    everybody = alone["total"] + other["d"]
    assert set(everybody[0, 1:]) == {4}  # four patients are drawn each time
    counted = [Counted(Predictions.of_counts([0] * n, [0] * n), one.groups) for n, one in ((3, first), (2, second))]
    assert resampling.samples(counted)["mae"].values.shape == (2, 1001)

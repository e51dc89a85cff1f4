"""Estimates: a mean over seeds, an interval over patients that is the same for everything compared."""

import math

import numpy as np
import pytest

from lesioncount.paper.experiments.estimates import Estimate, Resampling, estimates_of
from lesioncount.paper.experiments.scored import Counted
from lesioncount.trust.scores import Predictions


class Seen:
    """Scores that show how often each patient, and each scan by its place, was drawn."""

    def __init__(self, *patients):
        self.groups = patients

    def scores(self, weights):
        found = {name: weights[:, i] for i, patient in enumerate(self.groups) for name in (patient, i)}
        return found | {"total": weights.sum(axis=1)}


def counted(rng, patients):
    truth = rng.integers(0, 6, len(patients))
    return Counted(Predictions.of_counts(np.maximum(truth - rng.integers(0, 2, len(truth)), 0), truth), patients)


def test_an_estimate_is_a_mean_over_seeds_with_the_interval_of_its_resamples():
    samples = np.array([[0.5, *np.arange(41) / 40], [0.7, *np.arange(41) / 40 + 1]])
    found = Estimate.of(samples)
    assert found.value == pytest.approx(0.6)
    assert found.seeds == (0.5, 0.7)
    # Means of resamples are 0.5, 0.525, … 1.5: 95 % of them leave one fortieth on each side.
    assert (found.low, found.high) == pytest.approx((0.525, 1.475))


def test_where_all_agree_the_interval_of_a_share_is_the_exact_one():
    everyone, nobody = np.ones((2, 10)), np.zeros((2, 10))
    assert (Estimate.of(everyone).low, Estimate.of(everyone).high) == (1, 1)
    # scipy.stats.binomtest(20, 20).proportion_ci(method="exact") and of 0 in 20
    assert Estimate.of(everyone, n=20).low == pytest.approx(0.83157, abs=1e-5)
    assert Estimate.of(everyone, n=20).high == 1
    assert (Estimate.of(nobody, n=20).low, Estimate.of(nobody, n=20).high) == pytest.approx((0, 0.16843), abs=1e-5)
    some = np.array([[0.5, 0.4, 0.6, 0.5]])
    assert Estimate.of(some, n=20) == Estimate.of(some)


def test_scores_that_resampling_makes_larger_are_moved_back():
    samples = np.array([[0.1, 0.15, 0.2, 0.25]])
    plain, moved = Estimate.of(samples), Estimate.of(samples, biased=True)
    assert moved.value == plain.value == 0.1
    assert (moved.low, moved.high) == pytest.approx((plain.low - 0.1, plain.high - 0.1))
    assert Estimate.of(samples - 0.06, biased=True).low == 0
    found = estimates_of({"ece": samples, "rps": samples}, ("rps", "ece"))
    assert found == [plain, moved]


def test_resamples_without_a_score_are_left_out():
    found = Estimate.of(np.array([[0.5, math.nan, 0.4, 0.4, math.nan]]))
    assert (found.low, found.high) == (0.4, 0.4)
    nothing = Estimate.of(np.full((2, 5), math.nan))
    assert all(map(math.isnan, (nothing.value, nothing.low, nothing.high, *nothing.seeds)))


def test_estimates_survive_plain_values():
    found = Estimate(0.5, 0.25, 0.75, (0.25, 0.75))
    assert Estimate.from_dict(found.to_dict()) == found
    without = Estimate.from_dict({"value": None, "low": 0.5, "high": None, "seeds": [None, 1.0]})
    assert math.isnan(without.value)
    assert math.isnan(without.high)
    assert math.isnan(without.seeds[0])
    assert (without.low, without.seeds[1]) == (0.5, 1.0)


def test_the_first_sample_is_the_cohort_as_it_is(rng):
    patients = [f"p{i // 2}" for i in range(40)]
    seeds = [counted(rng, patients) for _ in range(2)]
    samples = Resampling.of([one.groups for one in seeds]).samples(seeds)
    assert samples["accuracy"].shape == (2, 1001)
    for row, one in zip(samples["accuracy"], seeds, strict=True):
        assert row[0] == one.predictions.hits.mean()


def test_identical_methods_differ_by_exactly_nothing(rng):
    patients = [f"p{i // 2}" for i in range(40)]
    seeds = [counted(rng, patients) for _ in range(3)]
    resampling = Resampling.of([patients] * 3)
    ours, theirs = (resampling.samples(seeds) for _ in range(2))
    for name in ("accuracy", "f1", "rps", "ece", "mae"):
        found = Estimate.of(ours[name] - theirs[name])
        assert (found.value, found.low, found.high, *found.seeds) == (0,) * 6
    again = Resampling.of([patients] * 3).samples(seeds)
    np.testing.assert_array_equal(again["accuracy"], ours["accuracy"])


def test_scans_of_a_patient_are_drawn_together():
    samples = Resampling.of([["b", "a", "b"]]).samples([Seen("b", "a", "b")])
    np.testing.assert_array_equal(samples[0], samples[2])
    assert (samples[0] != samples[1]).any()
    assert set((samples[0] + samples[1])[0, 1:]) == {2}  # two patients are drawn each time


def test_seeds_may_have_different_scans_and_draw_the_same_patients():
    first, second = Seen("c", "b", "a"), Seen("b", "d")
    resampling = Resampling.of([first.groups, second.groups])
    assert resampling.patients == ("a", "b", "c", "d")
    alone, other = (resampling.samples([one]) for one in (first, second))
    np.testing.assert_array_equal(alone["b"], other["b"])
    assert (alone["a"] != other["b"]).any()
    everybody = alone["total"] + other["d"]
    assert set(everybody[0, 1:]) == {4}  # four patients are drawn each time
    counted = [Counted(Predictions.of_counts([0] * n, [0] * n), one.groups) for n, one in ((3, first), (2, second))]
    assert resampling.samples(counted)["mae"].shape == (2, 1001)

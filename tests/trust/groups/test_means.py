"""Totals and means of a group: what they are made of, and whether their intervals hold the truth."""

import numpy as np
import pytest
from simulated_trials import arm

from lesioncount import PoissonBinomial
from lesioncount.distributions.mixture import MixtureOfCounts
from lesioncount.errors import ScoreError
from lesioncount.trust.groups.means import group_mean, once_per_patient, share_with_any, total_count


def certain(*counts):
    return [(PoissonBinomial([1.0] * n),) for n in counts]


def test_certain_counts_have_the_interval_of_their_own_variance():
    mean = group_mean(certain(1, 2, 6), ["a", "b", "c"])
    error = np.std([1, 2, 6], ddof=1) / np.sqrt(3)
    assert mean.estimate.value == 3
    assert (mean.doubt_share, mean.doubt_variance) == (0, 0)
    assert np.log(mean.estimate.high / 3) == pytest.approx(4.302653 * error / 3)  # t with 2 degrees of freedom
    assert mean.estimate.low * mean.estimate.high == pytest.approx(9)


def test_patients_that_are_alike_leave_only_doubt():
    mean = group_mean([(PoissonBinomial([0.5, 0.5]),)] * 4, list("abcd"))
    assert mean.between_variance == 0
    assert mean.doubt_variance == pytest.approx(0.5 / 4)
    assert mean.doubt_share == 1
    assert mean.estimate.has_interval


def test_scans_of_one_patient_are_no_further_patients():
    alone = group_mean(certain(0, 3, 6), ["a", "b", "c"]).estimate
    thrice = group_mean(certain(0, 0, 0, 3, 3, 3, 6, 6, 6), list("aaabbbccc")).estimate
    assert (thrice.value, thrice.low, thrice.high) == pytest.approx((alone.value, alone.low, alone.high))
    assert group_mean(certain(0, 0, 0, 3, 3, 3, 6, 6, 6), list("abcdefghi")).estimate.high < alone.high


def test_means_per_scan_per_patient_and_per_year_differ():
    counts, patients = certain(1, 2, 3), ["a", "a", "b"]
    assert once_per_patient(patients).tolist() == [1, 0, 1]
    assert group_mean(counts, patients).estimate.value == 2
    assert group_mean(counts, patients, once_per_patient(patients)).estimate.value == 3
    assert group_mean(counts, patients, [0.5, 0.5, 2.0]).estimate.value == 2


@pytest.mark.parametrize(
    ("counts", "patients"),
    [((4, 5), "aa"), ((0, 0), "ab"), ((0, 1), "ab")],
    ids=["one patient", "none", "two patients"],
)
def test_an_interval_that_cannot_be_known_is_not_given(counts, patients):
    mean = group_mean(certain(*counts), list(patients))
    assert mean.estimate.value == np.mean(counts)
    assert not mean.estimate.has_interval


def test_of_nobody_and_of_nothing_the_shares_are_unknown():
    assert np.isnan(group_mean(certain(4, 5), ["a", "a"]).doubt_share)
    assert np.isnan(group_mean(certain(0, 0), ["a", "b"]).doubt_share)


@pytest.mark.parametrize(("patients", "units"), [(["a"], None), (["a", "b"], [1.0]), (["a", "b"], [0.0, 0.0])])
def test_what_does_not_fit_is_refused(patients, units):
    with pytest.raises(ScoreError, match="a patient and a unit"):
        group_mean(certain(1, 2), patients, units)


def test_total_is_the_sum_and_its_doubt_that_of_counts():
    scans = [(PoissonBinomial([0.5, 0.9]),), (PoissonBinomial([0.2]),)]
    total = total_count(scans)
    assert total.pmf() == pytest.approx(PoissonBinomial([0.5, 0.9, 0.2]).pmf())


def test_members_that_disagree_do_so_in_all_scans():
    scans = [(PoissonBinomial([1.0]), PoissonBinomial([0.0]))] * 10
    assert total_count(scans).pmf([0, 5, 10]).tolist() == [0.5, 0, 0.5]
    assert group_mean(scans, range(10)).doubt_variance == 0.25  # and not 0.025
    assert total_count(scans).var() / 100 == group_mean(scans, range(10)).doubt_variance


def share_that_holds(means, truth):
    return np.mean([one.estimate.low <= truth <= one.estimate.high for one in means])


def test_intervals_hold_the_mean_where_counts_are_uncertain_and_patients_differ(rng):
    means = [group_mean(arm(rng, 20, rate=6.0).counts, range(20)) for _ in range(400)]
    assert 0.05 < np.mean([one.doubt_share for one in means]) < 0.2
    assert 0.92 <= share_that_holds(means, 3.0) <= 0.985


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "rate", "shape", "beta"), [(8, 6.0, 1.0, (2, 2)), (20, 2.0, 0.7, (1, 2)), (60, 20.0, 3.0, (1, 1))]
)
def test_intervals_of_small_and_large_groups_hold_the_mean(rng, n, rate, shape, beta):
    arms = [arm(rng, n, rate=rate, shape=shape, beta=beta) for _ in range(2000)]
    means = [group_mean(one.counts, range(n)) for one in arms]
    # Never too short; where half of the variance is doubt, they are longer than they would have to be.
    assert 0.935 <= share_that_holds(means, rate * beta[0] / sum(beta)) <= 0.99


def test_totals_hold_the_true_number_of_lesions(rng):
    arms = [arm(rng, 15, rate=6.0) for _ in range(400)]
    intervals = [total_count(one.counts).interval(0.95) for one in arms]
    held = np.mean([low <= one.truth.sum() <= high for one, (low, high) in zip(arms, intervals, strict=True)])
    assert 0.93 <= held <= 0.985


def test_what_an_ensemble_disagrees_about_is_in_the_interval(rng):
    """One of five members is right; the others see too much or too little in every scan."""
    held, held_if_ignored = [], []
    for _ in range(300):
        factors = rng.uniform(0.5, 1.5, 5)  # of the existence that each member sees
        right = rng.choice(factors)
        candidates = [rng.uniform(0.2, 0.6, rng.poisson(10)) for _ in range(40)]
        scans = [tuple(PoissonBinomial(p * factor) for factor in factors) for p in candidates]
        true_mean = 10 * 0.4 * right
        together = [(MixtureOfCounts(members),) for members in scans]
        held.append(share_that_holds([group_mean(scans, range(40))], true_mean))
        held_if_ignored.append(share_that_holds([group_mean(together, range(40))], true_mean))
    assert np.mean(held) >= 0.93
    assert np.mean(held_if_ignored) < 0.6


def test_share_of_patients_with_any_is_that_of_known_counts():
    found = share_with_any(certain(0, 2, 0, 1, 3), ["a", "a", "b", "c", "d"])
    assert found.value == 0.75
    # Wilson's interval of 3 of 4
    assert (found.low, found.high) == pytest.approx((0.3006, 0.9544), abs=1e-4)


def test_share_of_patients_with_any_allows_for_doubt_and_members():
    doubtful = [[PoissonBinomial([0.5])]] * 10
    alike = share_with_any([[one[0]] * 2 for one in doubtful], range(10))
    apart = share_with_any([[PoissonBinomial([0.2]), PoissonBinomial([0.8])]] * 10, range(10))
    assert share_with_any(doubtful, range(10)) == alike
    assert alike.value == apart.value == pytest.approx(0.5)
    assert apart.low < alike.low < 0.5 < alike.high < apart.high
    assert not share_with_any(certain(3), ["a"]).has_interval
    assert 0 == share_with_any(certain(0, 0), ["a", "b"]).low < share_with_any(certain(0, 0), ["a", "b"]).high < 1

"""Counts with missed lesions, and mixtures of counts: every method agrees with the table of probabilities."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

import lesioncount as lc
from lesioncount.distributions import with_extra
from lesioncount.distributions.sum_of_counts import SumOfCounts
from lesioncount.distributions.with_extra import CountWithExtra, over_nodes
from lesioncount.errors import DistributionError

probabilities = st.lists(st.floats(0, 1), max_size=8)
rates = st.floats(1e-4, 30)


@given(probabilities, rates)
def test_missed_lesions_add_a_poisson(p, rate):
    found = lc.PoissonBinomial(p)
    count = CountWithExtra(found, rate)
    k = np.arange(60)
    expected = np.convolve(found.pmf(), stats.poisson.pmf(np.arange(120), rate))[:60]
    np.testing.assert_allclose(count.pmf(k), expected, rtol=1e-10, atol=1e-300)
    assert count.mean() == pytest.approx(found.mean() + rate)
    assert count.var() == pytest.approx(found.var() + rate)
    assert count.pmf().sum() == pytest.approx(1)


def test_many_extra_lesions_over_nodes_are_added_node_by_node(monkeypatch, rng):
    """Which is another way to the same table: up to a thousand lesions without a candidate, at three nodes."""
    p, weights, extra = rng.uniform(0.01, 0.99, (3, 400)), np.array([0.2, 0.5, 0.3]), np.array([60.0, 90.0, 0.0])
    quick = over_nodes(p, weights, extra, 1.5)
    monkeypatch.setattr(with_extra, "_MANY_EXTRA", 10**9)
    slow = over_nodes(p, weights, extra, 1.5)
    k = np.arange(3000)
    np.testing.assert_allclose(quick.pmf(k), slow.pmf(k), rtol=1e-9, atol=1e-18)
    assert quick.pmf(k).sum() == pytest.approx(1)
    assert quick.mean() == pytest.approx(weights @ (p.sum(axis=1) + extra), rel=1e-6)


@given(probabilities, rates)
def test_no_larger_count_is_impossible(p, rate):
    count = CountWithExtra(lc.PoissonBinomial(p), rate)
    low, high = count.support()
    assert (low, high) == (sum(value == 1 for value in p), math.inf)
    assert np.isfinite(count.logpmf([low, low + 10, 500, 5000])).all()
    assert count.logpmf(low - 1) == -math.inf
    assert count.logpmf(low + 0.5) == -math.inf
    assert count.pmf(100_000) == 0  # too small for a number, and yet:
    assert count.logpmf(1000) > -1e5


def test_methods_agree_with_the_table():
    count = CountWithExtra(lc.PoissonBinomial([0.3, 0.9, 1.0]), 0.7)
    pmf = count.pmf()
    assert count.mode() == pmf.argmax()
    assert count.median() == np.searchsorted(np.cumsum(pmf), 0.5)
    assert count.cdf(2) == pytest.approx(pmf[:3].sum())
    assert count.sf(2) == pytest.approx(pmf[3:].sum())
    assert count.entropy() == pytest.approx(stats.entropy(pmf))
    np.testing.assert_allclose(count.binned(4), [*pmf[:4], pmf[4:].sum()])
    np.testing.assert_allclose(np.exp(count.logpmf()), pmf)
    low, high = count.interval(0.9)
    assert pmf[low : high + 1].sum() >= 0.9
    assert count.interval(1.0) == (1, len(pmf) - 1)
    drawn = count.rvs(20_000, random_state=0)
    assert drawn.mean() == pytest.approx(count.mean(), abs=0.03)
    assert "extra=0.7" in repr(count)


@given(probabilities, rates, st.floats(0.1, 50))
def test_extra_lesions_are_negative_binomial(p, mean, shape):
    count = CountWithExtra(lc.PoissonBinomial(p), mean, shape)
    j = np.arange(60)
    # Not scipy's nbinom, which takes 1 - p: where p is nearly 1, its far tail has few digits.
    ways = special.gammaln(j + shape) - special.gammaln(j + 1) - special.gammaln(shape)
    extra = np.exp(ways + shape * np.log(shape / (shape + mean)) + j * np.log(mean / (shape + mean)))
    expected = np.convolve(lc.PoissonBinomial(p).pmf(), extra)[:40]
    np.testing.assert_allclose(count.pmf(np.arange(40)), expected, rtol=1e-8, atol=1e-290)
    np.testing.assert_allclose(np.exp(count.logpmf(np.arange(40))), expected, rtol=1e-8, atol=1e-290)
    assert count.var() == pytest.approx(lc.PoissonBinomial(p).var() + mean + mean**2 / shape)


def test_a_long_tail_is_in_the_table():
    count = CountWithExtra(lc.PoissonBinomial([0.5] * 10), 40.0, 0.2)
    pmf, k = count.pmf(), np.arange(len(count.pmf()))
    assert pmf.sum() == pytest.approx(1, abs=1e-12)
    assert pmf @ k == pytest.approx(count.mean())
    assert pmf @ (k - count.mean()) ** 2 == pytest.approx(count.var(), rel=1e-6)


def test_a_total_is_the_convolution_of_its_scans():
    scans = [
        lc.PoissonBinomial([0.3, 1.0]),
        CountWithExtra(lc.PoissonBinomial([0.5]), 0.4, 1.5),
        lc.PoissonBinomial([]),
    ]
    total = SumOfCounts(scans)
    expected = np.convolve(scans[0].pmf(), scans[1].pmf())
    np.testing.assert_allclose(total.pmf()[: len(expected)], expected, rtol=1e-12)
    assert total.mean() == pytest.approx(sum(scan.mean() for scan in scans))
    assert total.var() == pytest.approx(sum(scan.var() for scan in scans))
    assert total.support() == (1, math.inf)
    assert total.pmf(0) == 0
    np.testing.assert_allclose(total.logpmf([1, 3]), np.log(expected[[1, 3]]))
    assert "3 members" in repr(total)


def test_the_total_of_many_scans_is_that_of_all_their_candidates(rng):
    p = rng.random((301, 4))
    total, all_at_once = SumOfCounts([lc.PoissonBinomial(row) for row in p]), lc.PoissonBinomial(p.ravel())
    np.testing.assert_allclose(total.pmf(np.arange(500, 700)), all_at_once.pmf(np.arange(500, 700)), rtol=1e-9)
    assert total.interval(0.9) == all_at_once.interval(0.9)


@pytest.mark.parametrize("rate", [0, -1, math.nan, math.inf, "some"])
def test_rates_that_are_none_are_refused(rate):
    with pytest.raises(DistributionError, match="extra lesions above 0"):
        CountWithExtra(lc.PoissonBinomial([0.5]), rate)
    with pytest.raises(DistributionError, match="shape above 0"):
        CountWithExtra(lc.PoissonBinomial([0.5]), 1.0, 0.0)


def some_members():
    return [
        lc.PoissonBinomial([0.9, 0.2]),
        CountWithExtra(lc.PoissonBinomial([0.5]), 0.3),
        lc.PoissonBinomial([1.0] * 4),
    ]


def test_mixture_is_the_mean_of_its_members():
    members = some_members()
    mixture = lc.MixtureOfCounts(members, weights=[2, 1, 1])
    k = np.arange(8)
    expected = 0.5 * members[0].pmf(k) + 0.25 * members[1].pmf(k) + 0.25 * members[2].pmf(k)
    np.testing.assert_allclose(mixture.pmf(k), expected)
    np.testing.assert_allclose(mixture.pmf()[:8], expected)
    np.testing.assert_allclose(np.exp(mixture.logpmf(k)), expected)
    assert mixture.mean() == pytest.approx((mixture.pmf() * np.arange(len(mixture.pmf()))).sum())
    table = mixture.pmf()
    assert mixture.var() == pytest.approx((table * (np.arange(len(table)) - mixture.mean()) ** 2).sum())
    assert mixture.var() == pytest.approx(mixture.within_variance + mixture.between_variance)
    assert mixture.support() == (0, math.inf)
    assert "3 members" in repr(mixture)


def test_members_that_agree_have_nothing_between_them():
    member = lc.PoissonBinomial([0.3, 0.4])
    mixture = lc.MixtureOfCounts([member, member])
    assert mixture.between_variance == 0
    np.testing.assert_allclose(mixture.pmf(), member.pmf())


def test_mixture_keeps_disagreement_that_a_mean_map_hides():
    """One member sees a lesion, the other sees none: 0 or 1, and not one that both are half sure of in two places."""
    one, other = lc.PoissonBinomial([1.0, 0.0]), lc.PoissonBinomial([0.0, 1.0])
    assert lc.MixtureOfCounts([one, other]).pmf()[1] == 1
    assert lc.PoissonBinomial([0.5, 0.5]).pmf(1) == 0.5


def test_a_member_without_weight_has_no_say():
    mixture = lc.MixtureOfCounts([lc.PoissonBinomial([1.0]), lc.PoissonBinomial([1.0] * 9)], weights=[1, 0])
    assert mixture.support() == (1, 1)
    assert mixture.logpmf(9) == -math.inf
    assert mixture.interval(0.9) == (1, 1)


@pytest.mark.parametrize(("members", "weights"), [([], None), (2, [1]), (2, [1, -1]), (2, [0, 0]), (2, [1, math.inf])])
def test_mixtures_that_make_no_sense_are_refused(members, weights):
    given_members = [lc.PoissonBinomial([0.5])] * members if members else []
    with pytest.raises(DistributionError):
        lc.MixtureOfCounts(given_members, weights=weights)

"""Counts drawn from distributions, and what is pooled from them."""

import numpy as np
import pytest

from lesioncount import PoissonBinomial
from lesioncount.errors import ScoreError
from lesioncount.trust.groups.imputation import drawn_counts, pooled


def test_certain_counts_are_the_same_in_all_imputations():
    assert drawn_counts([(PoissonBinomial([1.0] * n),) for n in (0, 3)], n_imputations=4).tolist() == [[0, 3]] * 4


def test_imputations_have_the_mean_and_variance_of_their_distributions():
    count = PoissonBinomial([0.9, 0.5, 0.3])
    drawn = drawn_counts([(count,)] * 3, n_imputations=20_000, seed=1)
    assert drawn.shape == (20_000, 3)
    assert drawn.mean(axis=0) == pytest.approx([count.mean()] * 3, abs=0.03)
    assert drawn.var(axis=0) == pytest.approx([count.var()] * 3, abs=0.02)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.03


def test_all_counts_of_an_imputation_are_by_the_same_member():
    drawn = drawn_counts([(PoissonBinomial([1.0]), PoissonBinomial([0.0]))] * 5, n_imputations=50)
    assert set(drawn.sum(axis=1).tolist()) == {0, 5}


def test_the_seed_decides():
    scans = [(PoissonBinomial([0.5] * 20),)] * 5
    assert (drawn_counts(scans, seed=3) == drawn_counts(scans, seed=3)).all()
    assert (drawn_counts(scans, seed=3) != drawn_counts(scans, seed=4)).any()


def test_one_imputation_shows_no_doubt():
    with pytest.raises(ScoreError, match="at least 2 imputations"):
        drawn_counts([(PoissonBinomial([0.5]),)], n_imputations=1)
    with pytest.raises(ScoreError, match="at least 2 imputations"):
        pooled([0.5], [0.1], complete_df=10)


def test_pooled_by_the_rules_of_rubin():
    one = pooled([1.0, 2.0, 3.0, 4.0], [0.5, 0.7, 0.9, 1.1], complete_df=50)
    between = np.var([1, 2, 3, 4], ddof=1)
    assert one.value == 2.5
    assert one.variance == pytest.approx(0.8 + 1.25 * between)
    assert one.doubt_share == pytest.approx(1.25 * between / one.variance)


def test_degrees_of_freedom_are_those_of_rubin_for_large_samples_and_never_more_than_complete_data_have():
    large = pooled([1.0, 2.0, 3.0], [1.0] * 3, complete_df=1e9)
    assert large.df == pytest.approx(2 / large.doubt_share**2, rel=1e-6)
    assert pooled([1.0, 2.0, 3.0], [1.0] * 3, complete_df=12).df < 12
    assert pooled([1.0] * 3, [1.0] * 3, complete_df=12).df == pytest.approx(12 * 13 / 15)


def test_what_says_nothing_is_not_known():
    assert not pooled([1.0, 5.0, 9.0], [1e-9] * 3, complete_df=2).is_known  # hardly any degree of freedom
    assert not pooled([1.0, 1.0], [0.0, 0.0], complete_df=20).is_known
    assert not pooled([1.0, 2.0], [0.0, 0.0], complete_df=20).is_known  # nothing but doubt
    assert np.isnan(pooled([1.0, 1.0], [0.0, 0.0], complete_df=20).doubt_share)


def test_p_value_and_interval_agree():
    one = pooled([0.4, 0.5, 0.7], [0.04] * 3, complete_df=40)
    low, high = one.interval(1 - one.p_value)
    assert low == pytest.approx(0, abs=1e-6)
    assert high == pytest.approx(2 * one.value, abs=1e-6)

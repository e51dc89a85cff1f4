"""Rate ratios, beside statsmodels on plain counts, and whether their intervals hold the truth."""

import sys

import numpy as np
import pytest
from simulated_trials import arm

from lesioncount import PoissonBinomial
from lesioncount.errors import MissingExtraError, ScoreError
from lesioncount.trust.groups.imputation import drawn_counts
from lesioncount.trust.groups.rate_ratios import rate_ratios

models = pytest.importorskip("statsmodels.discrete.discrete_model", reason="needs the extra [stats]")

N = 40


@pytest.fixture
def counts(rng):
    """Counts of two groups that vary more than Poisson."""
    return rng.poisson(rng.gamma(1.0, np.repeat([6.0, 3.0], N)))


def twice(counts):
    return np.array([counts, counts])


@pytest.mark.filterwarnings("ignore")  # of statsmodels
def test_of_certain_counts_it_is_what_statsmodels_says(counts, rng):
    group, years = np.repeat([0, 1], N), rng.uniform(0.5, 3.0, 2 * N)
    design = np.stack([np.ones(2 * N), group], axis=1)
    plain = models.NegativeBinomial(counts, design, exposure=years).fit(disp=0)
    found = rate_ratios(twice(counts), group, range(2 * N), years)
    one = found.ratios[0].log_ratio
    assert one.value == pytest.approx(plain.params[1], abs=1e-4)
    assert one.standard_error == pytest.approx(plain.bse[1], rel=1e-3)
    assert (one.doubt_share, found.is_clustered, found.n_poisson) == (0, False, 0)


@pytest.mark.filterwarnings("ignore")
def test_scans_of_one_patient_make_the_variance_that_of_the_sandwich(counts):
    group, patients = np.repeat([0, 1], N), np.arange(2 * N) // 4
    design = np.stack([np.ones(2 * N), group], axis=1)
    plain = models.NegativeBinomial(counts, design).fit(disp=0, cov_type="cluster", cov_kwds={"groups": patients})
    found = rate_ratios(twice(counts), group, patients.tolist())
    assert found.is_clustered
    assert found.ratios[0].log_ratio.standard_error == pytest.approx(plain.bse[1], rel=1e-3)
    assert found.ratios[0].log_ratio.complete_df == 2 * N / 4 - 2


def test_counts_that_vary_less_than_poisson_are_fitted_as_poisson():
    found = rate_ratios(twice(np.array([4] * 10 + [2] * 10)), [0] * 10 + [1] * 10, range(20))
    assert found.n_poisson == 2
    one = found.ratios[0].log_ratio
    assert one.value == pytest.approx(np.log(0.5))
    assert one.standard_error == pytest.approx(np.sqrt(1 / 40 + 1 / 20))


def test_a_group_without_a_lesion_has_no_ratio_but_others_have(counts):
    with_empty = np.concatenate([counts, np.zeros(5, int)])
    group = np.repeat([0, 2, 1], [N, N, 5])
    empty, other = rate_ratios(twice(with_empty), group, range(len(group))).ratios
    assert (empty.group, empty.log_ratio) == (1, None)
    assert empty.why_unknown == "there is no lesion in 2 of 2 imputations"
    alone = rate_ratios(twice(counts), np.repeat([0, 1], N), range(2 * N)).ratios[0]
    assert other.log_ratio.value == pytest.approx(alone.log_ratio.value, abs=1e-6)


def test_where_the_reference_has_no_lesion_nothing_is_known(counts):
    found = rate_ratios(twice(np.where(np.arange(2 * N) < N, 0, counts)), np.repeat([0, 1], N), range(2 * N))
    assert found.ratios[0].why_unknown == "in the reference, there is no lesion in 2 of 2 imputations"


def test_one_patient_is_no_group(counts):
    found = rate_ratios(twice(counts), np.repeat([0, 1], [2 * N - 1, 1]), range(2 * N))
    assert found.ratios[0].why_unknown == "there is one patient only"


def test_of_very_few_patients_nothing_is_said():
    drawn = np.array([[1, 9, 3, 1], [2, 9, 1, 9], [9, 1, 9, 9], [1, 2, 40, 9]])
    found = rate_ratios(drawn, [0, 0, 1, 1], range(4))
    assert found.ratios[0].why_unknown == "there are too few patients"


def test_a_search_that_does_not_converge_is_said(counts, monkeypatch):
    monkeypatch.setattr("lesioncount.trust.groups.rate_ratios._MOST_STEPS", 1)
    found = rate_ratios(twice(counts), np.repeat([0, 1], N), range(2 * N))
    assert found.ratios[0].why_unknown == "the model did not converge on 2 of 2 imputations"


def test_what_does_not_fit_is_refused(counts):
    group = np.repeat([0, 1], N)
    for patients, years in ((range(3), None), (range(2 * N), [1.0]), (range(2 * N), np.zeros(2 * N))):
        with pytest.raises(ScoreError, match="an exposure above 0 for each scan"):
            rate_ratios(twice(counts), group, patients, years)


def test_without_statsmodels_the_extra_is_named(counts, monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels.discrete.discrete_model", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[stats\]'"):
        rate_ratios(twice(counts), np.repeat([0, 1], N), range(2 * N))


def test_one_calibration_for_both_arms_pulls_the_ratio_towards_1(rng):
    """As the documentation warns: as many false candidates in both arms, and half of the lesions in one."""
    n, scans = 300, []
    for rate in (3.0, 1.5):
        for factor in rng.gamma(1.0, 1.0, n):
            lesions, others = rng.normal(1, 1, rng.poisson(rate * factor)), rng.normal(-1, 1, rng.poisson(3.0))
            odds = np.exp(2 * np.concatenate([lesions, others])) * 2.25 / 3  # lesions per false candidate, in both arms
            scans.append((PoissonBinomial(odds / (1 + odds)),))
    ratio = np.exp(rate_ratios(drawn_counts(scans), np.repeat([0, 1], n), range(2 * n)).ratios[0].log_ratio.value)
    assert 0.54 < ratio < 0.72


@pytest.mark.slow
@pytest.mark.parametrize("n", [15, 50])
def test_pooled_intervals_hold_the_ratio_and_those_of_plugged_in_counts_do_so_less_often(rng, n):
    group, held, trials = [0] * n + [1] * n, {"pooled": 0, "expected": 0}, 300
    for seed in range(trials):
        scans = arm(rng, n, rate=6.0).counts + arm(rng, n, rate=3.0).counts
        plugged = twice(np.array([count.mean() for (count,) in scans]))
        for name, drawn in (("pooled", drawn_counts(scans, seed=seed)), ("expected", plugged)):
            low, high = rate_ratios(drawn, group, range(2 * n)).ratios[0].log_ratio.interval(0.95)
            held[name] += low <= np.log(0.5) <= high
    assert held["pooled"] / trials >= 0.94
    assert held["expected"] / trials <= held["pooled"] / trials - 0.02
    assert held["expected"] / trials < 0.955

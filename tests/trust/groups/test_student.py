"""Student's t, beside scipy's."""

import pytest
from scipy import stats

from lesioncount.trust.groups.student import student_cdf, student_quantile


@pytest.mark.parametrize("df", [1, 1.3, 2, 5.5, 30, 300, 1e5])
@pytest.mark.parametrize("q", [0.5, 0.6, 0.95, 0.975, 0.9995])
def test_quantiles_are_those_of_scipy(q, df):
    assert student_quantile(q, df) == pytest.approx(stats.t.ppf(q, df), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("t", [-60, -3, 0, 0.1, 8])
def test_probabilities_are_those_of_scipy(t):
    assert student_cdf(t, 4) == pytest.approx(stats.t.cdf(t, 4), abs=1e-12)


def test_many_degrees_of_freedom_are_the_normal_distribution():
    assert student_quantile(0.975, 1e12) == pytest.approx(stats.norm.ppf(0.975), rel=1e-6)

"""Student's t, beside scipy's."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lesioncount.trust.groups.student import student_reach, student_tails

DF = st.floats(0, 9).map(lambda log: 10**log)
P = st.floats(-12, 0).map(lambda log: 10**log)


@given(P, DF)
def test_quantiles_are_those_of_scipy(p, df):
    assert student_reach(p, df) == pytest.approx(stats.t.isf(p / 2, df), rel=1e-9, abs=1e-12)


@given(P, DF)
def test_probabilities_are_those_of_scipy(p, df):
    t = stats.t.isf(p / 2, df)
    # scipy itself is off by 3e-9 where t is nearly 0, with one degree of freedom.
    assert student_tails(t, df) == pytest.approx(2 * stats.t.sf(t, df), rel=1e-8)


@given(P, DF)
def test_quantiles_have_the_probability_that_they_were_asked_for(p, df):
    assert student_tails(student_reach(p, df), df) == pytest.approx(p, rel=1e-9)


@pytest.mark.parametrize("df", [1, 4, 1e4, 1e7, 1e9])
def test_no_distance_and_a_large_one(df):
    assert student_tails(0, df) == 1
    assert student_tails(1e4, df) == pytest.approx(2 * stats.t.sf(1e4, df), rel=1e-9)


def test_what_is_farther_than_numbers_reach_has_no_probability():
    assert student_tails(1e200, 10) == 0


def test_many_degrees_of_freedom_are_the_normal_distribution():
    assert student_reach(0.05, 1e12) == pytest.approx(stats.norm.isf(0.025), rel=1e-9)
    assert math.isclose(student_tails(-3, 1e12), 2 * stats.norm.sf(3), rel_tol=1e-9)

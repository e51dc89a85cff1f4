"""New or not: what coupling makes of a lesion now and something there at the other time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesioncount.changes.coupling import STRONGEST_COUPLING, margin_of, only_now, raised

P = st.floats(0, 1)
COUPLING = st.floats(0, STRONGEST_COUPLING)


@st.composite
def heights(draw):
    """A peak, its saddle, and the other time."""
    peak = draw(P)
    return np.array(peak), np.array(draw(st.floats(0, peak))), np.array(draw(P))


@given(heights(), COUPLING)
def test_what_is_new_is_a_lesion_in_the_first_place(at, coupling):
    peak, saddle, _ = at
    assert 0 <= only_now(*at, coupling) <= peak - saddle


@given(P, P, COUPLING, COUPLING)
def test_more_coupling_makes_fewer_new(peak, before, one, other):
    less, more = sorted((one, other))
    assert only_now(np.array(peak), 0.0, before, more) <= only_now(np.array(peak), 0.0, before, less) + 1e-12


@given(heights(), st.floats(1, STRONGEST_COUPLING), st.floats(1, STRONGEST_COUPLING))
def test_more_coupling_makes_fewer_new_peaks_from_one_on(at, one, other):
    """Below 1 not always: what was there before may have been the lesion that the peak touches."""
    less, more = sorted((one, other))
    assert only_now(*at, more) <= only_now(*at, less) + 1e-12


@given(heights(), P, COUPLING)
def test_more_before_makes_fewer_new(at, other, coupling):
    peak, saddle, before = at
    low, high = sorted((float(before), other))
    assert only_now(peak, saddle, np.array(high), coupling) <= only_now(peak, saddle, np.array(low), coupling) + 1e-12


@given(heights(), COUPLING)
def test_nothing_before_leaves_all_of_it_new_and_certainty_nothing(at, coupling):
    peak, saddle, _ = at
    assert only_now(peak, saddle, np.array(0.0), coupling) == peak - saddle
    assert only_now(peak, saddle, np.array(1.0), coupling) == pytest.approx(0, abs=1e-12)


@given(P, st.floats(1, STRONGEST_COUPLING))
def test_the_same_doubt_twice_is_no_news_from_a_coupling_of_one_on(p, coupling):
    assert only_now(np.array(p), 0.0, np.array(p), coupling) == pytest.approx(0, abs=1e-12)


@given(heights())
def test_one_half_lies_between_independent_and_the_same_doubt(at):
    assert only_now(*at, 0.5) == pytest.approx((only_now(*at, 0) + only_now(*at, 1)) / 2, abs=1e-12)


@given(st.floats(0.001, 0.999), st.floats(1, STRONGEST_COUPLING))
def test_the_margin_is_added_to_the_logit(p, coupling):
    def logit(x):
        return np.log(x / (1 - x))

    assert logit(raised(p, coupling)) == pytest.approx(logit(p) + margin_of(coupling), abs=1e-6)


def test_coupling_goes_on_without_a_step_at_one():
    now, saddle, before = np.array([0.9, 0.6]), np.array([0.0, 0.2]), np.array([0.4, 0.5])
    below, at, above = (only_now(now, saddle, before, one) for one in (1 - 1e-9, 1.0, 1 + 1e-9))
    np.testing.assert_allclose(below, at, atol=1e-8)
    np.testing.assert_allclose(above, at, atol=1e-8)

"""A calibration: what it does, what it refuses, and how it is kept."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lesioncount as lc
from lesioncount.errors import CalibrationError
from lesioncount.trust.candidate_table import CandidateTable


def test_positive_weight_is_undone():
    honest = np.array([0.01, 0.2, 0.5, 0.9])
    weighted = 3 * honest / (3 * honest + 1 - honest)
    np.testing.assert_allclose(lc.Calibration.for_positive_weight(3).existence(weighted), honest, rtol=1e-6)


def test_nothing_to_correct_changes_nothing():
    p = np.array([0.0, 0.1, 0.7, 1.0])
    assert lc.Calibration().existence(p).tolist() == p.tolist()
    assert lc.Calibration().distribution(p) == lc.PoissonBinomial(p)


@given(st.floats(0.05, 20), st.floats(-5, 5), st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_larger_stays_larger(slope, offset, p):
    corrected = lc.Calibration(slope, offset).existence(np.sort(p))
    assert (np.diff(corrected) >= 0).all()
    assert ((corrected >= 0) & (corrected <= 1)).all()


@given(st.floats(0.2, 5), st.floats(-3, 3), st.floats(0.05, 0.95))
def test_inverse_leads_back(slope, offset, p):
    calibration = lc.Calibration(slope, offset)
    raw = calibration.inverse(p)
    if 1e-5 < raw < 1 - 1e-5:
        assert calibration.existence([raw])[0] == pytest.approx(p, rel=1e-6)


def test_missed_lesions_are_part_of_the_count():
    count = lc.Calibration(extra_rate=0.2).distribution([0.5])
    assert count.mean() == pytest.approx(0.7)
    assert count.pmf(5) > 0


def test_fields_survive_a_round_trip():
    protocol = lc.CountingProtocol(min_voxels=3)
    for calibration in (
        lc.Calibration(0.5, -1.0, 0.1, protocol=protocol, origin="a test"),
        lc.Calibration(0.5, -1.0, 0.1, 0.3, 0.8, 0.4, origin="a test"),
    ):
        plain = json.loads(json.dumps(calibration.to_dict(), allow_nan=False))
        assert lc.Calibration.from_dict(plain) == calibration
        assert "a test" in str(calibration)


def test_spread_between_scans_is_an_integral_over_what_they_share(rng):
    calibration, p = lc.Calibration(0.7, -0.5, 0.2, 0.3, 1.5, 0.8), rng.random(30)
    count = calibration.distribution(p)
    z = rng.normal(size=4000)
    drawn = 1 / (1 + np.exp(-(0.7 * np.log(p / (1 - p)) - 0.5 + 0.8 * z[:, None])))
    extra = 0.2 + 0.3 * drawn.sum(axis=1)
    counts = (rng.random(drawn.shape) < drawn).sum(axis=1) + rng.negative_binomial(1.5, 1.5 / (1.5 + extra))
    assert count.mean() == pytest.approx(counts.mean(), abs=4 * counts.std() / 60)
    assert count.std() == pytest.approx(counts.std(), rel=0.08)
    assert count.cdf(15) == pytest.approx((counts <= 15).mean(), abs=0.03)
    np.testing.assert_allclose(calibration.existence(p), drawn.mean(axis=0), atol=0.02)
    assert calibration.existence(p).sum() * 1.3 + 0.2 == pytest.approx(count.mean(), rel=1e-3)


@pytest.mark.parametrize("n", [3, 40, 300])
def test_no_count_falls_between_the_nodes(n):
    pmf = lc.Calibration(spread=1.0).distribution([0.5] * n).pmf()
    middle = pmf[n // 4 : n - n // 4 + 1]
    assert (np.abs(np.diff(middle)) < 0.1 * middle[1:]).all() or n < 10


def test_a_peak_counts_for_what_it_rises_above_its_saddle():
    raw = lc.Calibration()
    touching = CandidateTable.of([0.9, 0.8], saddle=[0.0, 0.5])
    np.testing.assert_allclose(raw.existence(touching), [0.9, 0.3])
    weight = lc.Calibration.for_positive_weight(3)
    expected = weight.existence([0.9, 0.8]) - [0, weight.existence([0.5])[0]]
    np.testing.assert_allclose(weight.existence(touching), expected)
    assert weight.distribution(touching).mean() == pytest.approx(expected.sum())


def test_a_candidate_among_many_is_more_often_a_lesion():
    crowded = lc.Calibration(crowding=1.0, typical_count=1.0)
    alone, among = crowded.existence([0.5])[0], crowded.existence([0.5, 0.9, 0.9, 0.9])[0]
    assert alone == pytest.approx(1.5 / (1.5 + 2))  # odds of 1, times (1 + 0.5) / (1 + 1)
    assert among == pytest.approx(4.2 / (4.2 + 2))  # and times (1 + 3.2) / (1 + 1)
    assert crowded.existence([0.5], among=3.2)[0] == pytest.approx(among)
    assert crowded.existence([0.5], among=1)[0] == pytest.approx(0.5)
    assert crowded.distribution([0.5, 0.9]).mean() == pytest.approx(crowded.existence([0.5, 0.9]).sum())
    touching = crowded.existence(CandidateTable.of([0.5, 0.9, 0.9], saddle=[0, 0, 0.4]))  # together they seem to be 1.9
    assert touching[0] == pytest.approx(crowded.existence([0.5], among=1.9)[0])


def test_ripples_are_not_lesions_of_their_own():
    calm = lc.Calibration(ripple=0.02)
    np.testing.assert_allclose(calm.existence(CandidateTable.of([0.9, 0.9, 0.9], saddle=[0, 0.89, 0.8])), [0.9, 0, 0.1])
    np.testing.assert_allclose(calm.existence([0.01]), [0.01])  # a region of its own is none
    assert not calm.is_identity
    assert "less than 0.02" in str(calm)
    crowded = lc.Calibration(crowding=1.0, ripple=0.02)
    expected = crowded.existence([0.9], among=0.9)
    np.testing.assert_allclose(crowded.existence(CandidateTable.of([0.9, 0.9], saddle=[0, 0.89]))[:1], expected)


def test_words_name_what_is_corrected():
    assert "nothing is corrected" in str(lc.Calibration())
    words = str(lc.Calibration(0.5, -1, 0.1, 0.3, 0.8, 0.4))
    assert "spread 0.4 between scans" in words
    assert "crowding +2 around 3.5 lesions" in str(lc.Calibration(crowding=2.0, typical_count=3.5))
    assert "0.3 for each that has one" in words


def test_another_protocol_is_refused():
    calibration = lc.Calibration(protocol=lc.CountingProtocol(connectivity=26))
    calibration.check(lc.CountingProtocol(connectivity=26))
    lc.Calibration().check(lc.CountingProtocol(connectivity=26))
    with pytest.raises(CalibrationError, match="Count with the same protocol, or calibrate again"):
        calibration.check(lc.CountingProtocol(connectivity=6))


@pytest.mark.parametrize(
    "values",
    [
        {"slope": 0},
        {"slope": -1},
        {"slope": math.inf},
        {"offset": math.nan},
        {"extra_rate": -0.1},
        {"slope": "steep"},
        {"extra_rate": 3e8},
        {"extra_rate": 10**400},
        {"offset": 10**400},
        {"spread": -1},
        {"spread": 1e9},
        {"extra_share": 1e3},
        {"extra_shape": 0},
        {"extra_shape": math.nan},
        {"crowding": 11},
        {"crowding": math.nan},
        {"typical_count": -1},
        {"typical_count": math.inf},
        {"ripple": 1.5},
    ],
)
def test_numbers_that_make_no_sense_are_refused(values):
    with pytest.raises(CalibrationError):
        lc.Calibration(**values)


def test_unknown_fields_and_weights_are_refused():
    with pytest.raises(CalibrationError, match="slope, offset, extra_rate"):
        lc.Calibration.from_dict({"steepness": 1})
    with pytest.raises(CalibrationError, match="positive weight"):
        lc.Calibration.for_positive_weight(0)

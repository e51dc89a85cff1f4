"""A calibration: what it does, what it refuses, and how it is kept."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lesioncount as lc
from lesioncount.errors import CalibrationError


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
    count = lc.Calibration(missed_rate=0.2).distribution([0.5])
    assert count.mean() == pytest.approx(0.7)
    assert count.pmf(5) > 0


def test_fields_survive_a_round_trip():
    calibration = lc.Calibration(0.5, -1.0, 0.1, lc.CountingProtocol(min_voxels=3), "a test")
    assert lc.Calibration.from_dict(calibration.to_dict()) == calibration
    assert "a test" in str(calibration)


def test_another_protocol_is_refused():
    calibration = lc.Calibration(protocol=lc.CountingProtocol(connectivity=26))
    calibration.check_protocol(lc.CountingProtocol(connectivity=26))
    lc.Calibration().check_protocol(lc.CountingProtocol(connectivity=26))
    with pytest.raises(CalibrationError, match="Count with the same protocol, or calibrate again"):
        calibration.check_protocol(lc.CountingProtocol(connectivity=6))


@pytest.mark.parametrize(
    "values",
    [
        {"slope": 0},
        {"slope": -1},
        {"slope": math.inf},
        {"offset": math.nan},
        {"missed_rate": -0.1},
        {"slope": "steep"},
        {"missed_rate": 3e8},
        {"missed_rate": 10**400},
        {"offset": 10**400},
    ],
)
def test_numbers_that_make_no_sense_are_refused(values):
    with pytest.raises(CalibrationError):
        lc.Calibration(**values)


def test_unknown_fields_and_weights_are_refused():
    with pytest.raises(CalibrationError, match="slope, offset, missed_rate"):
        lc.Calibration.from_dict({"steepness": 1})
    with pytest.raises(CalibrationError, match="positive weight"):
        lc.Calibration.for_positive_weight(0)

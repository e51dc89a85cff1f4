"""What older files and results rest on: fingerprints of calibrations, and the numbers that they give."""

import pytest

import lesioncount as lc
from lesioncount.errors import CalibrationError
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.fitting import CalibrationFit, ConformalFit

OF_PEAKS = lc.Calibration(
    0.5, -1.0, 0.125, 0.25, 1.5, 0.75, 0.5, 3.5, 0.02,
    protocol=lc.CountingProtocol(0.25, min_voxels=3), origin="the counts of 40 scans",
)  # fmt: skip
OF_NEW = lc.Calibration(0.5, -0.25, counted="new", coupling=3.0, origin="the counts of 60 scans")
INTERVALS = ConformalFit(lc.Calibration(0.75, origin="half"), lc.ConformalCounts("interval", ((0.0, 0.5, 2.25),)))

PEAKS, SADDLES = [0.95, 0.8, 0.6, 0.3, 0.41], [0.0, 0.5, 0.0, 0.1, 0.4]
TOUCHING = CandidateTable.of(PEAKS, saddle=SADDLES)
CHANGING = CandidateTable.of(PEAKS, saddle=SADDLES, other=[0.1, 0.5, 0.0, 0.05, 0.2], risen=[0.9, 0.7, 0.6, 0.3, 0.405])


@pytest.mark.parametrize(
    ("fit", "fingerprint"),
    [
        (CalibrationFit(lc.Calibration.for_positive_weight(3)), "620ae19a38d4"),
        (CalibrationFit(OF_PEAKS, conformal=INTERVALS), "8b6ec4bf9849"),
        (CalibrationFit(OF_NEW), "eab708e6ee43"),
    ],
)
def test_the_fingerprint_of_a_calibration_stays_so_that_a_run_can_be_resumed(fit, fingerprint):
    assert fit.fingerprint == fingerprint
    assert CalibrationFit.from_json(fit.to_json()).fingerprint == fingerprint


def test_numbers_that_were_changed_after_the_fit_are_refused():
    fit = CalibrationFit(OF_PEAKS, conformal=INTERVALS)
    for old, new in (('"offset": -1.0', '"offset": 2.0'), ('"slope": 0.75', '"slope": 0.7')):
        text = fit.to_json()
        assert old in text
        with pytest.raises(CalibrationError, match="changed since it was fitted"):
            CalibrationFit.from_json(text.replace(old, new))


def test_a_calibration_of_peaks_gives_the_numbers_that_it_gave():
    existence = [0.5613965605060128, 0.13473269542945532, 0.29202102289885695, 0.078537135846079, 0.0]
    assert OF_PEAKS.existence(TOUCHING) == pytest.approx(existence, rel=1e-13)
    count = OF_PEAKS.distribution(TOUCHING)
    assert count.mean() == pytest.approx(1.4583592683505047, rel=1e-13)
    expected = [0.20488939325131958, 0.36283082157400925, 0.26930635343647014, 0.11372226990526496]
    assert count.pmf()[:4] == pytest.approx(expected, rel=1e-13)


def test_a_calibration_of_changes_gives_the_numbers_that_it_gave():
    existence = [0.042952845275199825, 0.0, 0.4881853381360123, 0.0, 0.0]
    assert OF_NEW.existence(CHANGING) == pytest.approx(existence, rel=1e-13)
    expected = [0.48983076588336516, 0.48920028482205763, 0.020968949294577245, 0.0, 0.0, 0.0]
    assert OF_NEW.distribution(CHANGING).pmf() == pytest.approx(expected, rel=1e-13)

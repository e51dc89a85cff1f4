"""What older files and results rest on: fingerprints of calibrations, and the numbers that they give."""

import json
import re

import pytest
from trust.fitting.simulated import cohort

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


WITH_ALL = CalibrationFit.fit(cohort(40, candidates=8))


def test_a_file_that_was_changed_is_refused():
    content = json.loads(WITH_ALL.to_json())
    held_out, lists = content["held_out"], content["lists"]
    changes = {
        "calibration": content["calibration"] | {"offset": 2.0},
        "held_out": held_out | {"after": held_out["after"] | {"coverage90": held_out["after"]["rps"]}},
        "lists": lists | {"thresholds": lists["thresholds"] | {"missed": [0.9] * len(lists["thresholds"]["missed"])}},
        "scans": None,
        "conformal": None,
    }
    for name, value in changes.items():
        with pytest.raises(CalibrationError, match="This file has been changed since lesioncount wrote it"):
            CalibrationFit.from_json(json.dumps(content | {name: value}))


def test_a_file_that_another_program_wrote_again_is_the_same():
    content = json.loads(WITH_ALL.to_json()) | {"checksum": "of the text"}
    text = json.dumps(dict(reversed(content.items())), indent=4)
    for old, new in ((r"\b(\d+)\.0\b", r"\1"), (r"(?<![\d.e-])(\d+)(?=[,\n])", r"\1.0"), (r"\b0\.0\b", "-0")):
        assert CalibrationFit.from_json(re.sub(old, new, text).replace('"format": 2.0', '"format": 2')) is not None


def test_a_file_of_an_older_version_promises_what_its_fingerprint_covers():
    content = json.loads(WITH_ALL.to_json())
    del content["content_sha256"]
    old = CalibrationFit.from_json(json.dumps(content))
    assert old.calibration == WITH_ALL.calibration
    assert old.guaranteed([0.9, 0.5], 0.8) == WITH_ALL.guaranteed([0.9, 0.5], 0.8)
    assert (old.held_out, old.scans, old.lists, old.pool) == (None, None, None, None)
    content["calibration"]["offset"] = 2.0
    with pytest.raises(CalibrationError, match="has been changed"):
        CalibrationFit.from_json(json.dumps(content))


def test_a_file_without_a_fingerprint_counts_but_promises_nothing_and_says_so():
    content = json.loads(WITH_ALL.to_json())
    del content["content_sha256"], content["fingerprint"]
    typed = CalibrationFit.from_json(json.dumps(content))
    assert typed.calibration.existence([0.7]) == WITH_ALL.calibration.existence([0.7])
    assert (typed.held_out, typed.conformal, typed.scans, typed.lists) == (None, None, None, None)
    assert "a file without a fingerprint (the lesions of 40 scans" in str(typed.calibration)
    assert typed.calibration.is_stated  # and all that is made with it says that nothing was checked


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

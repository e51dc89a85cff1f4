"""Fits find what was put in, and the evidence says what they are worth."""

import json
from pathlib import Path

import numpy as np
import pytest
from trust.fitting.simulated import cohort, without_lesions

import lesioncount as lc
from lesioncount.errors import CalibrationError
from lesioncount.trust.fitting import CalibrationFit, KnownTruth, fit_calibration
from lesioncount.trust.fitting.likelihood import CountLikelihood, LesionLikelihood
from lesioncount.trust.scores import Predictions, score_all


@pytest.mark.parametrize("forget", [without_lesions, lambda truth: truth])
def test_fit_finds_what_was_put_in(forget):
    fitted = fit_calibration(forget(cohort(3000, slope=0.5, offset=-1.0, missed_rate=0.1)))
    assert fitted.slope == pytest.approx(0.5, abs=0.12)
    assert fitted.offset == pytest.approx(-1.0, abs=0.2)
    assert fitted.missed_rate == pytest.approx(0.1, abs=0.06)


def test_derivatives_are_those_of_the_values():
    truth = cohort(40, slope=0.7, missed_rate=0.3)
    n_missed = truth.counts - [o.sum() for o in truth.owns]
    point = np.array([0.8, -0.4, 0.2])
    for likelihood in (
        CountLikelihood(truth.existence, truth.counts),
        LesionLikelihood(np.concatenate(truth.existence), np.concatenate(truth.owns), n_missed),
    ):
        numeric = [(likelihood(*(point + 1e-6 * e))[0] - likelihood(*(point - 1e-6 * e))[0]) / 2e-6 for e in np.eye(3)]
        np.testing.assert_allclose(likelihood(*point)[1], numeric, rtol=1e-5)


def test_count_likelihood_is_that_of_the_distribution():
    truth = cohort(30, missed_rate=0.2)
    value, _ = CountLikelihood(truth.existence, truth.counts)(0.8, -0.4, 0.2)
    calibration = lc.Calibration(0.8, -0.4, 0.2)
    expected = 0.0
    for p, count in zip(truth.existence, truth.counts, strict=True):
        spread = 1 / (2 * max(len(p), count) + 10)
        expected -= np.log(0.95 * calibration.distribution(p).pmf(int(count)) + 0.05 * spread)
    assert value == pytest.approx(expected)


def test_one_scan_out_of_reach_does_not_pull_the_fit_to_itself():
    truth = without_lesions(cohort(100, seed=4))
    strange = KnownTruth.of([*truth.existence, [0.9]], [*truth.counts, 60])
    plain, pulled = fit_calibration(truth), fit_calibration(strange)
    assert pulled.missed_rate == pytest.approx(plain.missed_rate, abs=0.02)
    assert pulled.slope == pytest.approx(plain.slope, rel=0.1)


def test_scans_without_candidates_take_part():
    truth = KnownTruth.of([[]] * 30 + [[0.9]] * 30, [0] * 30 + [1] * 30)
    assert fit_calibration(truth).existence([0.9])[0] > 0.8


@pytest.mark.parametrize(
    ("n", "candidates", "message"), [(19, 3, "at least 20 scans .* 19 and"), (40, 0.05, "10 true lesions")]
)
def test_too_little_data_is_refused_with_what_is_needed(n, candidates, message):
    with pytest.raises(CalibrationError, match=message):
        fit_calibration(cohort(n, candidates=candidates))


def test_gain_on_a_cohort_that_needs_it():
    fit = CalibrationFit.fit(without_lesions(cohort(300, slope=0.4, offset=-1.2, missed_rate=0.1, seed=1)))
    assert fit.held_out.change["rps"].high < 0
    assert fit.held_out.change["ece"].high < 0
    assert "better" in fit.held_out.verdict


def test_no_gain_on_a_cohort_that_is_calibrated_already():
    fit = CalibrationFit.fit(without_lesions(cohort(300, seed=2)))
    assert fit.held_out.change["rps"].low <= 0 <= fit.held_out.change["rps"].high
    assert "gained nothing" in fit.held_out.verdict
    assert fit.calibration.slope == pytest.approx(1, abs=0.4)


def test_polarised_maps_are_widened_to_honest_coverage():
    """Every candidate is pushed to near 1 or near the threshold, as averaging logits over an ensemble does."""
    honest, judged = cohort(400, seed=5), cohort(400, seed=6)

    def polarised(truth):
        return KnownTruth.of([lc.Calibration(slope=8).existence(p) for p in truth.existence], truth.counts)

    fit = fit_calibration(polarised(honest))
    assert fit.slope == pytest.approx(1 / 8, abs=0.05)
    scans = polarised(judged)
    methods = {
        "raw": Predictions.of_distributions([lc.PoissonBinomial(p) for p in scans.existence], scans.counts),
        "fitted": Predictions.of_distributions([fit.distribution(p) for p in scans.existence], scans.counts),
    }
    scores, _ = score_all(methods, groups=range(400), n_resamples=200)
    assert scores["raw"]["coverage90"].high < 0.85
    assert scores["fitted"]["coverage90"].estimate >= 0.9


def test_guaranteed_intervals_come_from_scans_the_fit_has_not_seen():
    fit = CalibrationFit.fit(without_lesions(cohort(200, seed=3)))
    assert sum(map(len, fit.conformal.conformal.scores)) == 100
    assert fit.conformal.calibration != fit.calibration
    low, high = fit.conformal.interval([0.9, 0.5], 0.9)
    assert 0 <= low <= high


def test_few_scans_have_intervals_of_counts_as_they_are():
    fit = CalibrationFit.fit(without_lesions(cohort(30)))
    assert fit.conformal.calibration.slope == 1
    assert sum(map(len, fit.conformal.conformal.scores)) == 30


def test_counts_that_were_perfect_already():
    fit = CalibrationFit.fit(KnownTruth.of([[1.0] * (i % 4) for i in range(40)], [i % 4 for i in range(40)]))
    assert "held-out counts" in fit.held_out.verdict
    assert CalibrationFit.from_json(fit.to_json()).fingerprint == fit.fingerprint


def test_patients_stay_together():
    truth = cohort(90, groups=[i // 3 for i in range(90)])
    parts = truth.parts(5, seed=0)
    assert sorted(row for part in parts for row in part) == list(range(90))
    patients = [{truth.groups[row] for row in part} for part in parts]
    assert all(not a & b for i, a in enumerate(patients) for b in patients[i + 1 :])


def test_what_is_saved_is_what_is_loaded(tmp_path):
    fit = CalibrationFit.fit(cohort(60), protocol=lc.CountingProtocol(min_voxels=2))
    path = tmp_path / "calibration.json"
    fit.save(path)
    again = CalibrationFit.load(path)
    assert again.to_json() == fit.to_json()
    assert again.fingerprint == fit.fingerprint
    assert again.conformal.interval([0.7], 0.8) == fit.conformal.interval([0.7], 0.8)
    assert json.loads(path.read_text())["held_out"]["verdict"] == fit.held_out.verdict


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 9}', '{"format": 1, "calibration": {"slope": "x"}}', '{"format": 1}']
)
def test_files_that_are_no_calibration_are_refused(tmp_path, text):
    path = tmp_path / "calibration.json"
    path.write_text(text)
    with pytest.raises(CalibrationError, match="Expected"):
        CalibrationFit.load(path)


def test_a_file_that_is_not_there_is_refused():
    with pytest.raises(CalibrationError, match="cannot be read"):
        CalibrationFit.load(Path("nowhere.json"))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([[0.5]], [1, 2]), {}, "a count of at least 0 for each of 1 scans"),
        (([[0.5]], [-1]), {}, "a count of at least 0"),
        (([[7.0]], [1]), {}, "in \\[0, 1\\]"),
        (([[float("nan")]], [1]), {}, "in \\[0, 1\\]"),
        (([0.5], [1]), {}, "one dimension"),
        (([[0.5]], ["many"]), {}, "a count for each scan"),
        (([[0.5]], [1]), {"owns": [[True, False]]}, "each candidate"),
        (([[0.5]], [1]), {"groups": ["a", "b"]}, "a group for each"),
    ],
)
def test_truth_that_does_not_fit_is_refused(arguments, options, message):
    with pytest.raises(CalibrationError, match=message):
        KnownTruth.of(*arguments, **options)

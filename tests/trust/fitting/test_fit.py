"""Fits find what was put in, and the evidence says what they are worth."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from trust.fitting.simulated import cohort, without_lesions

import lesioncount as lc
from lesioncount.errors import CalibrationError
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.fitting import CalibrationFit, KnownTruth, fit_calibration
from lesioncount.trust.fitting.candidates_of_scans import Numbers
from lesioncount.trust.fitting.evidence import HeldOut
from lesioncount.trust.fitting.fit import best_calibration
from lesioncount.trust.fitting.likelihood import CountLikelihood, LesionLikelihood
from lesioncount.trust.scores import Estimate, Predictions, score_all


@pytest.mark.parametrize("forget", [without_lesions, lambda truth: truth])
def test_fit_finds_what_was_put_in(forget):
    fitted = fit_calibration(forget(cohort(3000, slope=0.5, offset=-1.0, extra_rate=0.1)))
    assert fitted.slope == pytest.approx(0.5, abs=0.12)
    assert fitted.offset == pytest.approx(-1.0, abs=0.2)
    assert fitted.extra_rate + fitted.extra_share * 0.7 == pytest.approx(0.1, abs=0.06)


@pytest.mark.parametrize("forget", [without_lesions, lambda truth: truth])
def test_fit_finds_how_far_scans_differ(forget):
    fitted = fit_calibration(forget(cohort(500, candidates=40, offset=-1.0, spread=0.8)))
    assert fitted.spread == pytest.approx(0.8, abs=0.12)
    assert fitted.offset == pytest.approx(-1.0, abs=0.15)


def test_fit_finds_lesions_that_grow_with_what_is_there():
    truth = cohort(500, candidates=20)
    rng = np.random.default_rng(0)
    expected = 0.6 * np.array([table.peak.sum() for table in truth.candidates])
    counts = truth.counts + rng.negative_binomial(2.0, 2.0 / (2.0 + expected))
    fitted = fit_calibration(KnownTruth.of(truth.candidates, counts))
    assert fitted.extra_share == pytest.approx(0.6, abs=0.15)
    assert 1 < fitted.extra_shape < 4


@pytest.mark.parametrize("forget", [without_lesions, lambda truth: truth])
def test_fit_finds_that_a_candidate_among_many_is_more_often_a_lesion(forget):
    fitted = fit_calibration(forget(cohort(500, candidates=20, offset=-0.5, crowding=1.0)))
    assert fitted.crowding == pytest.approx(1.0, abs=0.25)
    assert fitted.offset == pytest.approx(-0.5, abs=0.2)


def with_saddles(truth, saddle):
    return replace(
        truth, candidates=tuple(CandidateTable.of(one.peak, saddle=saddle(one.peak)) for one in truth.candidates)
    )


def every_other(p):
    """Saddles of every other candidate."""
    return 0.6 * p * (np.arange(len(p)) % 2)


def test_ripples_are_left_out_where_candidates_touch():
    truth = cohort(100, offset=-1.0)
    apart = with_saddles(truth, lambda p: np.zeros(len(p)))
    touching = with_saddles(truth, lambda p: p * (np.arange(len(p)) > 2) / 2)
    assert fit_calibration(without_lesions(apart)).ripple == 0
    assert fit_calibration(without_lesions(touching)).ripple == 0.02


def test_fit_finds_no_crowding_where_there_is_none():
    assert abs(fit_calibration(cohort(500, candidates=20, offset=-0.5)).crowding) < 0.15


NUMBERS = Numbers(0.8, -0.4, 0.5, 0.2, 0.3, 1.5, 0.7)


def likelihoods(saddles):
    apart = cohort(40, slope=0.7, extra_rate=0.3)
    truth = with_saddles(apart, every_other) if saddles else apart
    return CountLikelihood(truth), LesionLikelihood(truth)


@pytest.mark.parametrize("saddles", [False, True])
def test_derivatives_are_those_of_the_values(saddles):
    for likelihood in likelihoods(saddles):
        np.testing.assert_array_equal(likelihood.values(NUMBERS, 9), likelihood(NUMBERS, 9)[0])
        numeric = []
        for step in 1e-6 * np.eye(len(NUMBERS.vector)):
            up, down = (likelihood(Numbers.of_vector(NUMBERS.vector + sign * step), 9)[0] for sign in (1, -1))
            numeric.append((up - down) / 2e-6)
        np.testing.assert_allclose(likelihood(NUMBERS, 9)[1], np.transpose(numeric), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("saddles", [False, True])
def test_count_likelihood_is_that_of_the_distribution(saddles):
    apart = cohort(30, candidates=8, extra_rate=0.2)
    truth = with_saddles(apart, every_other) if saddles else apart
    values, _ = CountLikelihood(truth)(NUMBERS, 9)
    seeming = [table.peak.sum() - table.saddle.sum() for table in truth.candidates]
    typical = np.expm1(np.log1p(seeming).mean())
    calibration = lc.Calibration(0.8, -0.4, 0.2, 0.3, 1.5, 0.5, 0.7, typical)
    for value, table, count in zip(values, truth.candidates, truth.counts, strict=True):
        beyond = 1 / (2 * max(len(table), count) + 10)
        expected = np.log(0.95 * calibration.distribution(table).pmf(int(count)) + 0.05 * beyond)
        assert value == pytest.approx(expected, rel=1e-9)


def test_a_thousand_candidates_and_a_count_beyond_reach_have_a_likelihood(rng):
    likelihood = CountLikelihood(KnownTruth.of([rng.random(1500), np.empty(0)], [1490, 3]))
    values, gradient = likelihood(NUMBERS, 9)
    assert np.isfinite(values).all()
    assert np.isfinite(gradient).all()


def test_one_scan_out_of_reach_does_not_pull_the_fit_to_itself():
    truth = without_lesions(cohort(100, seed=4))
    strange = KnownTruth.of([*truth.candidates, [0.9]], [*truth.counts, 60])
    plain, pulled = (fit_calibration(one).distribution([0.9, 0.5]) for one in (truth, strange))
    assert pulled.mean() == pytest.approx(plain.mean(), abs=0.1)
    assert pulled.std() == pytest.approx(plain.std(), abs=0.3)


def test_nothing_is_corrected_where_maps_are_honest():
    fitted = [fit_calibration(without_lesions(cohort(30, candidates=10, seed=seed))) for seed in range(20)]
    assert np.mean([member.is_identity for one in fitted for member in one.members]) > 0.4
    assert np.mean([one.existence([0.5])[0] for one in fitted]) == pytest.approx(0.5, abs=0.03)


def test_far_off_and_many_candidates_is_no_dead_end():
    """All say .95, one in two is a lesion: every count is hopeless at the start, and gradients vanish."""
    rng = np.random.default_rng(1)
    n = rng.poisson(45, 100)
    fit = CalibrationFit.fit(KnownTruth.of([[0.95] * k for k in n], rng.binomial(n, 0.5)))
    assert fit.calibration.existence([0.95])[0] == pytest.approx(0.5, abs=0.05)
    assert fit.held_out.before["coverage90"].value < 0.1
    assert fit.held_out.after["coverage90"].value == pytest.approx(0.9, abs=0.06)
    assert "better" in fit.held_out.verdict


def test_truth_that_no_correction_explains_is_an_error_that_says_so():
    """What has .55 is a lesion, what has .45 is none: no slope is steep enough."""
    rng = np.random.default_rng(0)
    is_lesion = [rng.random(30) < 0.5 for _ in range(60)]
    truth = KnownTruth.of([np.where(one, 0.55, 0.45) for one in is_lesion], [one.sum() for one in is_lesion])
    with pytest.raises(CalibrationError, match=r"ran to the bound of slope \(20\).*belong together"):
        fit_calibration(truth)


def test_of_many_scans_some_are_enough():
    many = without_lesions(cohort(4000, offset=-1.0))
    assert fit_calibration(many).offset == pytest.approx(-1.0, abs=0.25)
    assert "4000 scans" in fit_calibration(many).origin


def test_scans_without_candidates_take_part():
    truth = KnownTruth.of([[]] * 30 + [[0.9]] * 30, [0] * 30 + [1] * 30)
    assert fit_calibration(truth).existence([0.9])[0] > 0.8


@pytest.mark.parametrize(
    ("n", "candidates", "message"), [(9, 6, "at least 10 scans .* 9 and"), (40, 0.05, "10 true lesions")]
)
def test_too_little_data_is_refused_with_what_is_needed(n, candidates, message):
    with pytest.raises(CalibrationError, match=message):
        fit_calibration(cohort(n, candidates=candidates))


def test_gain_on_a_cohort_that_needs_it():
    fit = CalibrationFit.fit(without_lesions(cohort(300, slope=0.4, offset=-1.2, extra_rate=0.1, seed=1)))
    assert fit.held_out.change["rps"].high < 0
    assert fit.held_out.change["mae"].value < 0
    assert "better" in fit.held_out.verdict
    assert "lesions" in fit.held_out.verdict


def test_no_gain_on_a_cohort_that_is_calibrated_already():
    fit = CalibrationFit.fit(without_lesions(cohort(300, seed=2)))
    assert fit.held_out.change["rps"].low <= 0 <= fit.held_out.change["rps"].high
    assert any(words in fit.held_out.verdict for words in ("Nothing needs", "gains nothing", "next to nothing"))
    assert fit.calibration.slope == pytest.approx(1, abs=0.4)


TOO_SHORT, HONEST = (0.5, 0.9), (0.9, 0.9)  # coverage of 90 % intervals, before and after


@pytest.mark.parametrize(
    ("rps", "coverage", "words"),
    [
        ((0.0, 0.0, 0.0), HONEST, "Nothing needs to be corrected"),
        ((-0.3, -0.4, -0.2), HONEST, "held-out counts better"),
        ((0.3, 0.2, 0.4), HONEST, "held-out counts worse"),
        ((0.3, 0.2, 0.4), TOO_SHORT, "held-out counts worse"),
        ((0.0, -0.2, 0.2), HONEST, "gains nothing"),
        ((0.0, -0.2, 0.2), TOO_SHORT, "intervals honest"),
        ((0.0, -0.01, 0.01), HONEST, "next to nothing"),
        ((0.01, 0.001, 0.03), HONEST, "next to nothing"),  # sure, but too little to notice
        ((0.01, 0.001, 0.03), TOO_SHORT, "intervals honest"),
    ],
)
def test_the_verdict_is_about_what_a_user_would_notice(rps, coverage, words):
    def part(value, covered):
        wide = {"rps": Estimate(*value), "bias": Estimate(0.1)}
        return wide | {"coverage90": Estimate(covered, covered - 0.05, covered + 0.05)}

    gained = coverage[1] - coverage[0]
    held_out = HeldOut(100, 5, part((1.0,), coverage[0]), part((1 + rps[0],), coverage[1]), part(rps, gained))
    assert words in held_out.verdict


def test_polarised_maps_are_widened_to_honest_coverage():
    """Every candidate is pushed to near 1 or near the threshold, as averaging logits over an ensemble does."""
    honest, judged = cohort(400, seed=5), cohort(400, seed=6)

    def polarised(truth):
        return KnownTruth.of([lc.Calibration(slope=8).existence(one) for one in truth.candidates], truth.counts)

    fit = fit_calibration(polarised(honest))
    assert fit.slope == pytest.approx(1 / 8, abs=0.05)
    scans = polarised(judged)
    methods = {
        "raw": Predictions.of_distributions(scans.distributions(lc.Calibration()), scans.counts),
        "fitted": Predictions.of_distributions(scans.distributions(fit), scans.counts),
    }
    scores, _ = score_all(methods, groups=range(400), n_resamples=200)
    assert scores["raw"]["coverage90"].high < 0.85
    assert scores["fitted"]["coverage90"].value >= 0.9


def test_guaranteed_intervals_come_from_scans_the_fit_has_not_seen():
    fit = CalibrationFit.fit(without_lesions(cohort(200, seed=3)))
    assert sum(map(len, fit.conformal.conformal.scores)) == 100
    assert "100 scans" in fit.conformal.calibration.origin
    low, high = fit.conformal.interval([0.9, 0.5], 0.9)
    assert 0 <= low <= high


def test_few_scans_have_intervals_around_calibrated_counts():
    fit = CalibrationFit.fit(without_lesions(cohort(30)))
    assert fit.conformal.calibration == fit.calibration
    assert fit.conformal.n_scans == [30]
    assert fit.conformal.conformal.proven(0.9) == pytest.approx(1 - 5 / 31)
    again = CalibrationFit.from_json(fit.to_json())
    assert again.fingerprint == fit.fingerprint
    for p in ([], [0.9, 0.5], [0.99] * 12):
        low, high = fit.guaranteed(p, 0.9)
        assert (low, high) == again.guaranteed(p, 0.9)
        assert low <= fit.calibration.distribution(p).median() <= high


def test_a_fit_without_a_scan_does_not_know_it():
    truth = without_lesions(cohort(25))
    few = CalibrationFit.fit(truth).conformal.conformal
    odd = replace(truth, counts=np.array([99, *truth.counts[1:]]))
    assert CalibrationFit.fit(odd).conformal.conformal.calibrations[0] == few.calibrations[0]


def test_a_patient_is_left_out_with_all_scans():
    truth = without_lesions(cohort(60, groups=[i // 2 for i in range(60)]))
    few = CalibrationFit.fit(truth).conformal
    assert few.n_scans == [30]
    alone = best_calibration(truth[list(range(2, 60))], averaged=False)
    assert replace(alone, origin="") == few.conformal.calibrations[0]


def test_groups_of_intervals_need_more_scans_than_few():
    with pytest.raises(CalibrationError, match="need the scans of 80 patients, but there are 30"):
        CalibrationFit.fit(without_lesions(cohort(30)), group_edges=(1,))


@pytest.mark.parametrize("true_count", [40, 100, 1000])
def test_counts_that_do_not_belong_to_the_maps_are_refused(true_count):
    truth = KnownTruth.of([[0.9, 0.5, 0.2]] * 30, [true_count] * 30)
    with pytest.raises(CalibrationError, match=rf"{true_count}\.0 true lesions per scan, but 3\.0 candidates"):
        CalibrationFit.fit(truth)


def test_counts_that_nothing_helps_are_not_said_to_fit():
    nothing = {name: Estimate(0.0, 0.0, 0.0) for name in ("rps", "bias", "coverage90")}
    poor = {"rps": Estimate(5.0, 4.0, 6.0), "bias": Estimate(-5.0, -6.0, -4.0), "coverage90": Estimate(0.2, 0.1, 0.4)}
    verdict = HeldOut(30, 5, poor, poor, nothing).verdict
    assert "Nothing needs to be corrected" not in verdict
    assert "20 %" in verdict


def test_counts_that_were_perfect_already():
    fit = CalibrationFit.fit(KnownTruth.of([[1.0] * (i % 4) for i in range(40)], [i % 4 for i in range(40)]))
    assert "calibrated already" in fit.held_out.verdict or "Nothing needs to be corrected" in fit.held_out.verdict
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
    "text", ["", "[]", "{}", '{"format": 9}', '{"format": 2, "calibration": {"slope": "x"}}', '{"format": 2}']
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

"""A mean or a prevalence from elsewhere calibrates, or is refused."""

import numpy as np
import pytest
from trust.fitting.real_maps import real_maps
from trust.fitting.simulated import cohort, without_lesions

import lesioncount as lc
from lesioncount.errors import CalibrationError
from lesioncount.trust.fitting import CalibrationFit
from lesioncount.trust.fitting.prior import LEARNT, LEARNT_FROM
from lesioncount.trust.fitting.stated import NOT_CHECKED, Stated, _drawn, calibration_from


def scans(n=60, seed=0):
    return without_lesions(cohort(n, candidates=8, slope=1.6, offset=-2.5, spread=0.7, seed=seed))


@pytest.mark.parametrize("what", ["mean", "prevalence"])
def test_scans_have_on_average_what_is_stated(what):
    truth = scans()
    value = truth.counts.mean() if what == "mean" else np.mean(truth.counts > 0)
    calibration = calibration_from(Stated(**{what: float(value)}, doubt=0.02 * float(value)), truth.candidates)
    counts = truth.distributions(calibration)
    found = np.mean([one.mean() if what == "mean" else 1 - one.pmf(0) for one in counts])
    assert found == pytest.approx(value, rel=0.08)
    assert NOT_CHECKED in str(calibration)


def test_the_learnt_prior_is_named_and_its_numbers_kept():
    calibration = calibration_from(Stated(mean=2.0), scans().candidates)
    assert LEARNT_FROM in calibration.origin
    assert calibration.prior["centre"]["log_slope"] == LEARNT.centre[0]
    assert "offset" not in calibration.prior["width"]  # solved, not drawn
    read = CalibrationFit.from_json(CalibrationFit(calibration).to_json())
    assert read.calibration == calibration


def test_a_stated_mean_counts_better_than_the_maps_do():
    truth, new = scans(), scans(150, seed=7)
    calibration = calibration_from(Stated(mean=float(truth.counts.mean())), truth.candidates)
    raw, stated = (
        lc.trust.scores.Predictions.of_distributions(new.distributions(one), new.counts).means
        for one in (new.as_it_is, calibration)
    )
    assert stated["rps"].mean() < 0.7 * raw["rps"].mean()
    assert stated["coverage90"].mean() > 0.85


def test_a_wider_doubt_gives_wider_counts():
    truth = scans()
    mean = float(truth.counts.mean())
    sure, unsure = (
        np.mean(
            [one.std() for one in truth.distributions(calibration_from(Stated(mean=mean, doubt=d), truth.candidates))]
        )
        for d in (0.05 * mean, 0.8 * mean)
    )
    assert unsure > 1.1 * sure


def test_a_prevalence_is_as_well_known_as_the_share_without_a_lesion():
    noise = np.random.default_rng(0).standard_normal(4000)
    few, most = (Stated(prevalence=p).draws(noise) for p in (0.3, 0.7))
    np.testing.assert_allclose(np.quantile(most, [0.2, 0.8]), 1 - np.quantile(few, [0.8, 0.2]), atol=0.01)
    assert str(Stated(prevalence=0.7)) == "a stated prevalence of 0.7 ± 0.11"


def test_the_upper_end_of_a_prevalence_is_asked_too():
    assert Stated(prevalence=0.6).highest.value == pytest.approx(0.74)
    assert Stated(prevalence=0.6, doubt=0.05).highest.value == pytest.approx(0.65)
    assert Stated(prevalence=0.6, doubt=0.5).highest.value == 0.95  # above, no prevalence can be stated
    assert Stated(mean=1.7) == Stated(mean=1.7).highest


@pytest.mark.parametrize("prevalence", [0.84, 0.7, 0.6])
def test_a_prevalence_of_leaves_is_refused_also_where_it_is_too_low(shared_data, prevalence):
    """With 0.7 and 0.6, RPS would be 3.2 and 3.6, and is 1.0 as counted."""
    truth, _ = real_maps(shared_data, "leaves", "peaks")
    some = [truth.candidates[row] for row in np.random.default_rng(0).permutation(len(truth))[:100]]
    with pytest.raises(CalibrationError, match="leaves too much open"):
        calibration_from(Stated(prevalence=prevalence), some)


@pytest.mark.parametrize(
    ("stated", "tables", "why"),
    [
        (Stated(mean=2.0), [[0.5]] * 5, "needs 10 scans"),
        (Stated(prevalence=0.97), [[0.5]] * 20, "State the mean"),
        (Stated(mean=2.0), [lc.CandidateTable.of([0.9, 0.8], saddle=[0.0, 0.4])] * 20, "50% of the candidates touch"),
        (Stated(mean=50.0), [[0.5]] * 20, "of 100 calibrations could give"),
        (Stated(mean=2.0), [[]] * 20, "of 100 calibrations could give"),
    ],
)
def test_what_has_done_harm_is_refused(stated, tables, why):
    with pytest.raises(CalibrationError, match=why):
        calibration_from(stated, tables)


def test_regions_that_hold_what_touches_are_refused_where_maps_can_tell():
    truth = scans()
    calibration_from(Stated(mean=1.0), truth.candidates, joined=0.06)  # leaves
    with pytest.raises(CalibrationError, match="39% of the scans have lesions that touch and are counted as one"):
        calibration_from(Stated(mean=1.0), truth.candidates, joined=0.39)  # nuclei


def test_a_doubt_so_wide_that_most_draws_have_no_solution_is_refused():
    with pytest.raises(CalibrationError, match=r"of 100 calibrations could give .* a stated mean of 1 ± 1"):
        calibration_from(Stated(mean=1.0, doubt=1.0), [[0.5]] * 20)


def test_no_seed_draws_numbers_that_no_calibration_has():
    """The shape of extra lesions reaches below its bound once in 700 draws: with this seed, too."""
    drawn = _drawn(3000, np.random.default_rng(0))
    assert min(one.extra_shape for one in drawn) >= 0.1
    assert max(one.spread for one in drawn) <= 10


@pytest.mark.parametrize(
    "numbers",
    [
        {},
        {"mean": 1.0, "prevalence": 0.5},
        {"mean": 1.7, "doubt": 5.0},
        {"mean": 0.0},
        {"prevalence": 1.0},
        {"mean": float("nan")},
        {"mean": 1.0, "doubt": 0},
    ],
)
def test_numbers_that_say_nothing_are_refused(numbers):
    with pytest.raises(CalibrationError, match=r"Expected a|Give a mean or a prevalence, not both"):
        Stated(**numbers)

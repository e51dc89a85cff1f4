"""What calibration promises, over many simulated cohorts with known truth."""

import numpy as np
import pytest
from trust.fitting.simulated import cohort, without_lesions

import lesioncount as lc
from lesioncount.trust.fitting import fit_calibration
from lesioncount.trust.scores import Predictions, score_all

pytestmark = pytest.mark.slow
N_COHORTS = 100


def changes(n_fit, n_judge, kind, **truth):
    """Of each cohort: changes on held-out scans, and how many cohorts by themselves show a clear one."""
    found = {"rps": [], "ece": [], "coverage90": []}
    clear = 0
    for seed in range(N_COHORTS):
        fitted = fit_calibration(kind(cohort(n_fit, seed=2 * seed, **truth)))
        judged = cohort(n_judge, seed=2 * seed + 1, **truth)
        methods = {
            "raw": Predictions.of_distributions([lc.PoissonBinomial(p) for p in judged.peaks], judged.counts),
            "fitted": Predictions.of_distributions([fitted.distribution(p) for p in judged.peaks], judged.counts),
        }
        scores, differences = score_all(methods, groups=range(n_judge), n_resamples=300, seed=seed)
        change = differences["fitted", "raw"]
        found["rps"].append(change["rps"].estimate)
        found["ece"].append(change["ece"].estimate)
        found["coverage90"].append(scores["fitted"]["coverage90"].estimate)
        clear += change["rps"].high < 0 and change["ece"].high < 0
    return {name: np.array(values) for name, values in found.items()}, clear


def interval(values):
    half = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    return values.mean() - half, values.mean() + half


def everything(truth):
    return truth


@pytest.mark.parametrize("kind", [without_lesions, everything])
@pytest.mark.parametrize(
    "truth",
    [
        {"offset": -1.1},  # a positive weight of 3
        {"slope": 0.3},  # polarised
        {"slope": 0.5, "offset": -1.0, "extra_rate": 0.2},
    ],
)
def test_calibration_helps_cohorts_that_need_it(kind, truth):
    found, _ = changes(200, 300, kind, **truth)
    assert interval(found["rps"])[1] < 0
    assert interval(found["ece"])[1] < 0
    assert found["coverage90"].mean() > 0.9


@pytest.mark.parametrize("kind", [without_lesions, everything])
def test_calibrated_cohorts_stay_as_they_are(kind):
    found, clear = changes(200, 300, kind)
    assert np.abs(found["rps"]).mean() < 0.01  # of a score of about 0.3
    assert found["rps"].mean() < 0.005
    assert clear <= N_COHORTS // 10

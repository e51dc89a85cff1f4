"""Of scans told 70 %, 70 % fulfil the criterion: simulated ones, whose candidates are lesions as often as is said."""

import numpy as np
import pytest

from lesioncount.questions import ExtraLesions, Question, Trials, probability_of
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.scores.reliability import reliability

N_SCANS = 2000
AREAS = ["periventricular", "juxtacortical", "infratentorial", "elsewhere"]
IN_AREA = [0.35, 0.2, 0.1, 0.35]
CALIBRATION = Calibration(slope=0.8, offset=-0.5, extra_rate=0.3, extra_share=0.1, extra_shape=1.0, spread=1.0)


def simulated_scan(rng):
    """What a network says of a scan, and the true number of lesions in each area, drawn from what the network means."""
    n = rng.poisson(rng.gamma(1.0, 12.0))
    peaks, area = rng.beta(0.6, 1.2, n), rng.choice(len(AREAS), n, p=IN_AREA)
    logits = CALIBRATION.slope * np.log(peaks / (1 - peaks)) + CALIBRATION.offset + CALIBRATION.spread * rng.normal()
    existence = 1 / (1 + np.exp(-logits))
    extra = rng.poisson((0.3 + 0.1 * existence.sum()) * rng.gamma(1.0))
    counts = np.bincount(area[rng.random(n) < existence], minlength=len(AREAS)) + rng.multinomial(extra, IN_AREA)
    return peaks, area, dict(zip(AREAS, counts.tolist(), strict=True)) | {"count": int(counts.sum())}


def trials_of(peaks, area, calibration):
    p, weights, *_ = calibration.at_nodes(peaks)
    adds = {name: area == i for i, name in enumerate(AREAS)} | {"count": np.ones(len(peaks), dtype=bool)}
    cells = {name: np.arange(len(AREAS)) == i for i, name in enumerate(AREAS)} | {
        "count": np.ones(len(AREAS), dtype=bool)
    }
    mean = calibration.extra_rate + calibration.extra_share * p.sum(axis=1)
    extra = ExtraLesions(mean=mean, shape=calibration.extra_shape, share=IN_AREA, adds=cells)
    return Trials(probability=p, weights=weights, adds=adds, extra=extra)


def in_two_areas(counts):
    return sum(counts[area] >= 1 for area in AREAS[:3]) >= 2


def in_three_of_four(counts):
    brain = [counts["count"] >= 9, counts["infratentorial"] >= 1, counts["juxtacortical"] >= 1]
    return sum([*brain, counts["periventricular"] >= 3]) >= 3


@pytest.mark.parametrize(("name", "met"), [("mcdonald2017-dis", in_two_areas), ("mcdonald2001-dis", in_three_of_four)])
def test_share_of_scans_that_fulfil_a_criterion_is_what_they_were_told(name, met, rng):
    question, _ = Question.named(name).given([*AREAS, "count"])
    scans = [simulated_scan(rng) for _ in range(N_SCANS)]
    truth = [met(counts) for _, _, counts in scans]
    told = [probability_of(question, trials_of(peaks, area, CALIBRATION)) for peaks, area, _ in scans]
    as_it_is = [probability_of(question, trials_of(peaks, area, Calibration())) for peaks, area, _ in scans]
    assert 0.1 < np.mean(truth) < 0.9
    assert reliability(told, truth).ece <= 0.03
    assert reliability(as_it_is, truth).ece > reliability(told, truth).ece
    error = np.sqrt(np.sum(np.multiply(told, np.subtract(1, told)))) / N_SCANS
    assert np.mean(told) == pytest.approx(np.mean(truth), abs=3 * error)

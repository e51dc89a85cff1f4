"""Questions about changes, asked of calibrated candidates."""

import numpy as np
import pytest

from lesioncount.questions import Question, probability_of
from lesioncount.trust import change_trials
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.change_trials import trials_of_changes
from lesioncount.trust.heights import Heights

KINDS = ("new", "gone", "persisting")
CALIBRATIONS = {
    "new": Calibration(0.9, -0.2, 0.3, 0.1, 1.5, 0.7, coupling=3.0, counted="new"),
    "gone": Calibration(1.2, 0.3, 0.2, coupling=2.0, counted="gone"),
    "persisting": Calibration(1.1, 0.1, spread=0.5, coupling=2.0, counted="persisting"),
}


@pytest.fixture
def heights(rng):
    """Of 12 later candidates, and of 7 earlier ones."""
    later, earlier = (Heights.of(rng.random(n), None, 0.6 * rng.random(n)) for n in (12, 7))
    return {"new": later, "gone": earlier, "persisting": later}


def asked(text, heights, calibrations=CALIBRATIONS):
    question = Question.parse(text)
    return probability_of(question, trials_of_changes(heights, question.names, calibrations))


def distribution(heights, kind, calibration=None):
    of = heights[kind]
    return (calibration or CALIBRATIONS[kind]).distribution(of.peaks, of.saddles, of.others, of.risen)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [0, 1, 2, 5])
def test_answers_about_one_kind_are_those_of_its_calibrated_number(kind, k, heights):
    assert asked(f"{kind} >= {k}", heights) == pytest.approx(distribution(heights, kind).sf(k - 1), abs=1e-9)


def test_kinds_of_two_scans_are_independent(heights):
    expected = distribution(heights, "new").sf(1) * distribution(heights, "gone").pmf(0)
    assert asked("new >= 2 and gone = 0", heights) == pytest.approx(expected, abs=1e-9)


def test_the_count_is_that_of_new_and_persisting_candidates(heights):
    """Without calibration, and with one coupling, the two outcomes add up to the existence of each candidate."""
    as_it_is = {kind: Calibration(counted=kind, coupling=1.0) for kind in KINDS}
    whole = Calibration().distribution(heights["new"].peaks)
    for k in (1, 4, 8):
        assert asked(f"count >= {k}", heights, as_it_is) == pytest.approx(whole.sf(k - 1), abs=1e-9)


def test_a_candidate_is_not_new_and_persisting_at_once():
    """Calibrations that were fitted apart may be sure of both: each is then as probable as the other."""
    heights = {"new": Heights.of([0.9], None, [0.0]), "persisting": Heights.of([0.9], None, [0.9])}
    sure = {kind: Calibration(offset=20.0, counted=kind) for kind in heights}
    assert asked("new = 1", heights, sure) == pytest.approx(1.0)
    assert asked("persisting = 1", heights, sure) == pytest.approx(1.0)
    assert asked("new = 1 and persisting = 1", heights, sure) == 0
    assert asked("count = 1", heights, sure) == pytest.approx(1.0)
    assert asked("new = 1 and persisting = 0", heights, sure) == pytest.approx(0.5, abs=1e-6)


def test_very_many_nodes_are_thinned_and_hardly_change_the_answer(heights, monkeypatch):
    wide = {kind: Calibration(0.9, 0.1, spread=5.0, counted=kind) for kind in KINDS}
    question = Question.parse("new > gone and persisting >= 2")
    few = trials_of_changes(heights, question.names, wide)
    monkeypatch.setattr(change_trials, "_MOST_NODES", 10**6)
    many = trials_of_changes(heights, question.names, wide)
    assert len(few.weights) <= 10_000 < len(many.weights)
    assert probability_of(question, few) == pytest.approx(probability_of(question, many), abs=1e-3)


def test_answers_agree_with_samples(heights, rng):
    """All at once: nodes of two kinds, lesions without a candidate, and outcomes that exclude each other."""
    n, counts = 100_000, {}
    existence = {}
    for kind in KINDS:
        one, of = CALIBRATIONS[kind], heights[kind]
        p, weights = one.at_nodes(of.peaks, of.saddles, of.others, of.risen)
        existence[kind] = p[rng.choice(len(weights), n, p=weights)]
        mean = one.extra_rate + one.extra_share * existence[kind].sum(axis=1)
        rate = mean if np.isinf(one.extra_shape) else rng.gamma(one.extra_shape, mean / one.extra_shape)
        counts[kind] = rng.poisson(rate)
    total = np.maximum(existence["new"] + existence["persisting"], 1.0)
    u = rng.random(total.shape)
    is_new = u < existence["new"] / total
    counts["new"] += is_new.sum(axis=1)
    counts["persisting"] += (~is_new & (u < (existence["new"] + existence["persisting"]) / total)).sum(axis=1)
    counts["gone"] += (rng.random(existence["gone"].shape) < existence["gone"]).sum(axis=1)
    for text, holds in (
        ("new > gone", counts["new"] > counts["gone"]),
        ("new + persisting >= 6", counts["new"] + counts["persisting"] >= 6),
        ("count >= 6 and gone <= 1", (counts["new"] + counts["persisting"] >= 6) & (counts["gone"] <= 1)),
    ):
        p = asked(text, heights)
        assert holds.mean() == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / n))

"""Questions about changes, asked of calibrated candidates."""

import numpy as np
import pytest

from lesioncount.questions import Question, probability_of
from lesioncount.trust import trials
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.trials import trials_of_changes

KINDS = ("new", "gone", "persisting")
CALIBRATIONS = {
    "new": Calibration(0.9, -0.2, 0.3, 0.1, 1.5, 0.7, coupling=3.0, counted="new"),
    "gone": Calibration(1.2, 0.3, 0.2, coupling=2.0, counted="gone"),
    "persisting": Calibration(1.1, 0.1, spread=0.5, coupling=2.0, counted="persisting"),
}


@pytest.fixture
def tables(rng):
    """Of 12 later candidates, and of 7 earlier ones."""
    later, earlier = (CandidateTable.of(rng.random(n), other=0.6 * rng.random(n)) for n in (12, 7))
    return {"new": later, "gone": earlier, "persisting": later}


def asked(text, tables, calibrations=CALIBRATIONS):
    question = Question.parse(text)
    return probability_of(question, trials_of_changes(tables, question.names, calibrations))


def distribution(tables, kind, calibration=None):
    return (calibration or CALIBRATIONS[kind]).distribution(tables[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [0, 1, 2, 5])
def test_answers_about_one_kind_are_those_of_its_calibrated_number(kind, k, tables):
    assert asked(f"{kind} >= {k}", tables) == pytest.approx(distribution(tables, kind).sf(k - 1), abs=1e-9)


def test_kinds_of_two_scans_are_independent(tables):
    expected = distribution(tables, "new").sf(1) * distribution(tables, "gone").pmf(0)
    assert asked("new >= 2 and gone = 0", tables) == pytest.approx(expected, abs=1e-9)


def test_the_count_is_that_of_new_and_persisting_candidates(tables):
    """Without calibration, and with one coupling, the two outcomes add up to the existence of each candidate."""
    as_it_is = {kind: Calibration(counted=kind, coupling=1.0) for kind in KINDS}
    whole = Calibration().distribution(tables["new"].peak)
    for k in (1, 4, 8):
        assert asked(f"count >= {k}", tables, as_it_is) == pytest.approx(whole.sf(k - 1), abs=1e-9)


def test_a_candidate_is_not_new_and_persisting_at_once():
    """Calibrations that were fitted apart may be sure of both: each is then as probable as the other."""
    tables = {"new": CandidateTable.of([0.9], other=[0.0]), "persisting": CandidateTable.of([0.9], other=[0.9])}
    sure = {kind: Calibration(offset=20.0, counted=kind) for kind in tables}
    assert asked("new = 1", tables, sure) == pytest.approx(1.0)
    assert asked("persisting = 1", tables, sure) == pytest.approx(1.0)
    assert asked("new = 1 and persisting = 1", tables, sure) == 0
    assert asked("count = 1", tables, sure) == pytest.approx(1.0)
    assert asked("new = 1 and persisting = 0", tables, sure) == pytest.approx(0.5, abs=1e-6)


def test_very_many_nodes_are_thinned_and_hardly_change_the_answer(tables, monkeypatch):
    wide = {kind: Calibration(0.9, 0.1, spread=5.0, counted=kind) for kind in KINDS}
    question = Question.parse("new > gone and persisting >= 2")
    few = trials_of_changes(tables, question.names, wide)
    monkeypatch.setattr(trials, "_MOST_NODES", 10**6)
    many = trials_of_changes(tables, question.names, wide)
    assert len(few.weights) <= 10_000 < len(many.weights)
    assert probability_of(question, few) == pytest.approx(probability_of(question, many), abs=1e-3)


def test_answers_agree_with_samples(tables, rng):
    """All at once: nodes of two kinds, lesions without a candidate, and outcomes that exclude each other."""
    n, counts = 100_000, {}
    existence = {}
    for kind in KINDS:
        one = CALIBRATIONS[kind]
        p, weights, *_ = one.at_nodes(tables[kind])
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
        p = asked(text, tables)
        assert holds.mean() == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / n))

"""Answers are those of the plain way, to all digits: regions, distances, changes, nodes and extra lesions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from questions.made_questions import NAMES, SIGNS, questions
from questions.plain_answer import plain_answer

import lesioncount as lc
from lesioncount.questions import ExtraLesions, Question, Trials, probability_of
from lesioncount.questions.over_time import CHANGES, trials_over_time
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.regional_count import RegionalCount
from lesioncount.trust.trials import trials_of

SEEDS = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def random_adds(rng, n):
    """Regions that overlap, and the count, which all are in."""
    return {name: rng.random(n) < 0.4 for name in NAMES} | {"count": np.ones(n, dtype=bool)}


def random_extra(rng, n_nodes, shape):
    n_cells = int(rng.integers(1, 3))
    share = rng.dirichlet(np.ones(n_cells + 1))[:n_cells]
    mean = rng.choice([0.0, 0.1, 0.4], n_nodes)
    return ExtraLesions(mean=mean, shape=shape, share=share, adds=random_adds(rng, n_cells))


@settings(max_examples=100)
@given(questions(), SEEDS, st.sampled_from([None, 0.8, 3.0, np.inf]), st.booleans())
def test_regions_that_overlap_with_nodes_and_extra_lesions(made, rng, shape, exclusive):
    text, holds = made
    n, n_nodes = int(rng.integers(0, 8 if shape is None else 5)), int(rng.integers(1, 4))
    trial = rng.integers(0, 5, n) if exclusive else None
    p = rng.choice([0.0, 1.0, 0.5, 0.1, 0.73], (n_nodes, n))
    if trial is not None:
        p /= np.maximum(1, np.array([p[:, trial == i].sum(axis=1) for i in trial]).reshape(n, n_nodes).T)
    extra = None if shape is None else random_extra(rng, n_nodes, shape)
    weights = rng.random(n_nodes) + 0.1
    trials = Trials(probability=p, adds=random_adds(rng, n), weights=weights, trial=trial, extra=extra)
    expected = plain_answer(trials, holds)
    assert probability_of(Question.parse(text), trials) == pytest.approx(expected, abs=1e-11 if extra else 4e-15)


@st.composite
def over_time(draw):
    """Questions about changes, which may compare them, and a function that says whether they hold."""
    terms = st.sampled_from([*CHANGES, 0, 1, 2, 4])
    parts = draw(
        st.lists(
            st.tuples(st.sampled_from([*CHANGES]), st.sampled_from([*SIGNS]), terms, terms), min_size=1, max_size=3
        )
    )
    text = " and ".join(f"{left} {sign} {a} + {b}" for left, sign, a, b in parts)

    def holds(counts):
        value = {**counts, **{i: i for i in range(5)}}
        return all(SIGNS[sign](counts[left], value[a] + value[b]) for left, sign, a, b in parts)

    return text, holds


@settings(max_examples=60)
@given(over_time(), SEEDS, st.booleans())
def test_changes_with_nodes_and_extra_ones(made, rng, has_extra):
    text, holds = made
    n_nodes, n_later, n_earlier = rng.integers(1, 4), rng.integers(0, 6), rng.integers(0, 5)
    new, persisting, _ = np.moveaxis(rng.dirichlet([0.5, 1, 0.5], (n_nodes, n_later)), 2, 0)
    p = {"new": new, "persisting": persisting, "gone": rng.random((n_nodes, n_earlier))}
    extra = {"new": (rng.random(n_nodes) * 0.4, 1.0), "gone": (0.3, np.inf)} if has_extra else None
    trials = trials_over_time([*CHANGES], p, weights=rng.random(n_nodes) + 0.1, extra=extra)
    expected = plain_answer(trials, holds)
    assert probability_of(Question.parse(text), trials) == pytest.approx(expected, abs=1e-11 if extra else 4e-15)


@settings(max_examples=20)
@given(questions(), SEEDS, st.sampled_from([1.0, np.inf]))
def test_calibrated_counts(made, rng, shape):
    text, holds = made
    calibration = Calibration(slope=0.8, offset=-0.4, extra_rate=0.05, extra_share=0.02, extra_shape=shape, spread=0.7)
    n = int(rng.integers(0, 4))
    adds = random_adds(rng, n)
    trials = trials_of(RegionalCount(calibration, rng.random(n), {**adds, "outside": ~adds["a"]}), NAMES)
    assert probability_of(Question.parse(text), trials) == pytest.approx(plain_answer(trials, holds), abs=1e-11)


@settings(max_examples=40)
@given(SEEDS, st.integers(0, 3), st.integers(0, 3), st.sampled_from([1, 2.5, 4]))
def test_regions_by_distance(rng, k, m, distance):
    """Spots in a line, and the ventricles somewhere in it: distances are known without any map of them."""
    p = np.zeros((1, 24))
    p[0, ::3] = np.round(rng.random(8) * (rng.random(8) < 0.8), 3)
    p[0, 1] = 0.05  # some background, so that the map does not look cut off
    ventricles = np.zeros(p.shape, dtype=int)
    at = int(rng.integers(0, 24))
    ventricles[0, at] = 1
    result = lc.count_lesions(
        p, regions=ventricles, region_names={1: "ventricles"}, within=f"near = ventricles <= {distance}mm",
        spacing_mm=(1, 1),
    )  # fmt: skip
    spots = np.flatnonzero(p[0] > 0.1)
    adds = {"near": np.abs(spots - at) <= distance, "count": np.ones(len(spots), dtype=bool)}
    trials = Trials(probability=p[0, spots], adds=adds)
    expected = plain_answer(trials, lambda counts: counts["near"] >= k and counts["count"] - counts["near"] < m)
    assert result.ask(f"near >= {k} and count < near + {m}") == pytest.approx(expected, abs=4e-15)

"""Answers are exact: against all outcomes one by one, against samples, and against distributions of a single count."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from questions.made_questions import NAMES, questions

from lesioncount.distributions.mixture import MixtureOfCounts
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.distributions.with_extra import CountWithExtra
from lesioncount.errors import QuestionError
from lesioncount.questions import ExtraLesions, Question, Trials, probability_of
from lesioncount.trust.calibration import Calibration

N_SAMPLES = 100_000


@st.composite
def small_trials(draw, max_outcomes=6):
    """Few outcomes, some of them impossible or certain, in overlapping regions; some exclude each other."""
    n = draw(st.integers(0, max_outcomes))
    n_nodes = draw(st.integers(1, 2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    p = rng.choice([0.0, 1.0, 0.5, 0.1, 0.73], (n_nodes, n))
    trial = rng.integers(0, 4, n) if draw(st.booleans()) else None
    if trial is not None:
        p /= np.maximum(1, np.array([p[:, trial == i].sum(axis=1) for i in trial]).reshape(n, n_nodes).T)
    adds = {name: rng.random(n) < 0.5 for name in NAMES} | {"count": np.ones(n, dtype=bool)}
    return Trials(probability=p, adds=adds, trial=trial, weights=rng.random(n_nodes) + 0.1)


def outcome_by_outcome(trials, holds):
    """The sum over everything that can happen."""
    n = trials.probability.shape[1]
    numbers = np.arange(n) if trials.trial is None else trials.trial
    choices = [[None, *np.flatnonzero(numbers == i)] for i in np.unique(numbers)]
    total = 0.0
    for weight, p in zip(trials.weights, trials.probability, strict=True):
        for happened in product(*choices):
            of_each = [
                p[one] if one is not None else 1 - p[choice[1:]].sum()
                for one, choice in zip(happened, choices, strict=True)
            ]
            lesions = [one for one in happened if one is not None]
            if holds({name: int(which[lesions].sum()) for name, which in trials.adds.items()}):
                total += weight * np.prod(of_each)
    return total


@settings(max_examples=100)
@given(questions(), small_trials())
def test_answer_is_the_sum_over_all_outcomes(made, trials):
    text, holds = made
    assert probability_of(Question.parse(text), trials) == pytest.approx(outcome_by_outcome(trials, holds), abs=1e-12)


@given(st.lists(st.floats(0, 1), max_size=60), st.integers(0, 50))
def test_at_least_so_many_is_the_tail_of_the_poisson_binomial(p, k):
    trials = Trials(probability=p, adds={"count": np.ones(len(p), dtype=bool)})
    known = PoissonBinomial(p)
    assert probability_of(Question.parse(f"count >= {k}"), trials) == pytest.approx(known.sf(k - 1), abs=1e-12)
    assert probability_of(Question.parse(f"count == {k}"), trials) == pytest.approx(known.pmf(k), abs=1e-12)


@pytest.mark.parametrize(
    "text", ["a >= 2", "a >= 1 and b >= 2", "a + b >= 3 or c >= 1", "at least 2 of (a>=1,b>=1,c>=1)"]
)
def test_more_probable_candidates_make_more_probable_answers(text, rng):
    question = Question.parse(text)
    adds = {name: rng.random(12) < 0.5 for name in NAMES}
    p = rng.random(12) * 0.8
    before = probability_of(question, Trials(probability=p, adds=adds))
    for i in range(12):
        more = np.where(np.arange(12) == i, p + 0.2, p)
        after = probability_of(question, Trials(probability=more, adds=adds))
        assert after > before - 1e-15
    assert probability_of(question, Trials(probability=p + 0.2, adds=adds)) > before + 1e-6


def test_order_of_candidates_does_not_matter(rng):
    question = Question.parse("a >= 2 and b + c >= 3")
    p, adds = rng.random((9, 40)), {name: rng.random(40) < 0.3 for name in NAMES}
    order = rng.permutation(40)
    turned = Trials(probability=p[:, order], adds={name: which[order] for name, which in adds.items()})
    assert probability_of(question, turned) == probability_of(question, Trials(probability=p, adds=adds))


def sampled(rng, trials, holds):
    """The share of samples in which a question holds, and its standard error."""
    nodes = rng.choice(len(trials.weights), N_SAMPLES, p=trials.weights)
    counts = {name: np.zeros(N_SAMPLES, dtype=int) for name in trials.adds}
    n = trials.probability.shape[1]
    numbers = np.arange(n) if trials.trial is None else trials.trial
    for i in np.unique(numbers):
        outcomes = np.flatnonzero(numbers == i)
        up_to = np.cumsum(trials.probability[:, outcomes], axis=1)[nodes]
        which = (rng.random(N_SAMPLES)[:, np.newaxis] >= up_to).sum(axis=1)
        for name, added in trials.adds.items():
            counts[name] += np.append(added[outcomes], False)[which]
    if trials.extra is not None:
        add_extra(rng, trials.extra, nodes, counts)
    share = np.mean(holds(counts))
    return share, np.sqrt(share * (1 - share) / N_SAMPLES)


def add_extra(rng, extra, nodes, counts):
    mean = np.broadcast_to(extra.mean, nodes.max() + 1)[nodes]
    rate = mean if np.isinf(extra.shape) else rng.gamma(extra.shape, mean / extra.shape)
    number = rng.poisson(rate)
    share = np.append(extra.share, 1 - extra.share.sum())
    cells = rng.multinomial(number, share / share.sum())[:, :-1]
    for name, added in extra.adds.items():
        counts[name] += cells @ added


CASES = {
    "a >= 3 and (b >= 2 or c >= 1)": lambda x: (x["a"] >= 3) & ((x["b"] >= 2) | (x["c"] >= 1)),
    "at least 2 of (a >= 5, b >= 4, c >= 2)": lambda x: (x["a"] >= 5) * 1 + (x["b"] >= 4) + (x["c"] >= 2) >= 2,
    "6 <= count <= 14": lambda x: (x["count"] >= 6) & (x["count"] <= 14),
    "a > b + c": lambda x: x["a"] > x["b"] + x["c"],
    "not a == b or count >= 9": lambda x: (x["a"] != x["b"]) | (x["count"] >= 9),
    "a + a + b >= 8": lambda x: 2 * x["a"] + x["b"] >= 8,
}


@pytest.mark.parametrize("shape", [0.7, np.inf])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("text", CASES)
def test_samples_agree(text, exclusive, shape, rng):
    """Regions that overlap, outcomes that exclude each other, nodes, and extra lesions, all at once."""
    n, n_nodes = 24, 3
    trial = np.repeat(np.arange(n // 2), 2) if exclusive else None
    p = rng.random((n_nodes, n)) * np.array([[0.2], [0.5], [0.9]]) / (2 if exclusive else 1)
    adds = {
        "a": rng.random(n) < 0.4,
        "b": rng.random(n) < 0.3,
        "c": rng.random(n) < 0.1,
        "count": np.ones(n, dtype=bool),
    }
    cells = {"a": [True, True, False], "b": [False, True, False], "c": [False, False, True], "count": [True] * 3}
    extra = ExtraLesions(mean=[0.3, 1.0, 4.0], shape=shape, share=[0.5, 0.2, 0.1], adds=cells)
    trials = Trials(probability=p, adds=adds, weights=[1, 2, 1], trial=trial, extra=extra)
    share, error = sampled(rng, trials, CASES[text])
    assert probability_of(Question.parse(text), trials) == pytest.approx(share, abs=3 * error)


@pytest.mark.parametrize("k", [0, 1, 5, 12, 40])
@pytest.mark.parametrize(("spread", "shape"), [(0.0, np.inf), (0.8, 0.5), (1.5, np.inf)])
def test_answer_after_a_calibration_is_that_of_the_calibrated_count(k, spread, shape, rng):
    calibration = Calibration(0.8, -0.3, 0.5, 0.2, shape, spread)
    peaks = rng.random(30)
    p, weights, *_ = calibration.at_nodes(peaks)
    extra = ExtraLesions(mean=0.5 + 0.2 * p.sum(axis=1), shape=shape, share=[1.0], adds={"count": [True]})
    trials = Trials(probability=p, weights=weights, adds={"count": np.ones(30, dtype=bool)}, extra=extra)
    expected = calibration.distribution(peaks).sf(k - 1)
    assert probability_of(Question.parse(f"count >= {k}"), trials) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(("mean", "shape"), [(0.2, 0.05), (3.0, 1.0), (40.0, 0.3), (800.0, np.inf), (5000.0, 0.05)])
def test_extra_lesions_in_a_share_of_the_places_are_as_many_as_that_share(mean, shape):
    """A share q of a negative binomial number of mean m has the same shape and mean q·m."""
    extra = ExtraLesions(mean=mean, shape=shape, share=[0.25, 0.5], adds={"here": [True, False]})
    trials = Trials(probability=[0.5], adds={"here": [True]}, extra=extra)
    count = CountWithExtra(PoissonBinomial([0.5]), 0.25 * mean, shape)
    for k in (1, 2, 9):
        answer = probability_of(Question.parse(f"here >= {k}"), trials)
        assert answer == pytest.approx(count.sf(k - 1), abs=1e-9)


def test_extra_lesions_of_which_none_are_expected_change_nothing():
    alone = Trials(probability=[0.5, 0.3], adds={"count": [True, True]})
    extra = ExtraLesions(mean=0.0, share=[1.0], adds={"count": [True]})
    with_none = Trials(probability=[0.5, 0.3], adds={"count": [True, True]}, extra=extra)
    question = Question.parse("count >= 1")
    assert probability_of(question, with_none) == probability_of(question, alone) == pytest.approx(0.65)


def test_nodes_of_which_some_expect_no_extra_lesions():
    extra = ExtraLesions(mean=[0.0, 2.0], share=[1.0], adds={"count": [True]})
    trials = Trials(probability=np.zeros((2, 1)), adds={"count": [True]}, extra=extra)
    assert probability_of(Question.parse("count == 0"), trials) == pytest.approx((1 + np.exp(-2)) / 2, abs=1e-12)


def test_nodes_of_a_spread_scan_agree_with_the_mixture(rng):
    p, weights = rng.random((5, 20)), rng.random(5)
    mixture = MixtureOfCounts([PoissonBinomial(one) for one in p], weights=weights)
    trials = Trials(probability=p, weights=weights, adds={"count": np.ones(20, dtype=bool)})
    for k in (3, 10, 19):
        assert probability_of(Question.parse(f"count > {k}"), trials) == pytest.approx(mixture.sf(k), abs=1e-12)


def test_no_candidates_answer_as_zeros_do():
    nothing = Trials(probability=[], adds={"a": [], "b": []})
    assert probability_of(Question.parse("a >= 1 or b >= 1"), nothing) == 0
    assert probability_of(Question.parse("a == b and a + 1 > b and a >= 0"), nothing) == 1


@pytest.mark.parametrize("text", ["a >= 1", "a > 20", "count >= 700", "a > b", "a == 200 and b == 200"])
def test_many_candidates(text, rng):
    """Against a normal approximation where there is one, and against what is known of such numbers where not."""
    n = 5000
    where = rng.integers(0, 3, n)
    p = rng.random(n) * 0.3
    trials = Trials(probability=p, adds={"a": where == 0, "b": where == 1, "count": np.ones(n, dtype=bool)})
    a, b, count = PoissonBinomial(p[where == 0]), PoissonBinomial(p[where == 1]), PoissonBinomial(p)
    known = {
        "a >= 1": a.sf(0),
        "a > 20": a.sf(20),
        "count >= 700": count.sf(699),
        "a > b": sum(a.pmf(k) * b.cdf(k - 1) for k in range(1, len(a) + 1)),
        "a == 200 and b == 200": a.pmf(200) * b.pmf(200),
    }
    assert probability_of(Question.parse(text), trials) == pytest.approx(known[text], rel=1e-9, abs=1e-12)


def test_trials_with_several_outcomes_that_are_many(rng):
    """New or persisting, or neither: two counts that exclude each other have a trinomial distribution."""
    n, p_new, p_persisting = 60, 0.1, 0.3
    trials = Trials(
        probability=np.tile([p_new, p_persisting], n),
        adds={"new": np.tile([True, False], n), "persisting": np.tile([False, True], n)},
        trial=np.repeat(np.arange(n), 2),
    )
    drawn = rng.multinomial(n, [p_new, p_persisting, 1 - p_new - p_persisting], N_SAMPLES)
    for text, held in {
        "new >= 1 and persisting >= 1": (drawn[:, 0] >= 1) & (drawn[:, 1] >= 1),
        "new >= 5 and persisting < 17": (drawn[:, 0] >= 5) & (drawn[:, 1] < 17),
        "new + persisting >= 25": drawn[:, 0] + drawn[:, 1] >= 25,
        "new + new > persisting": 2 * drawn[:, 0] > drawn[:, 1],
    }.items():
        error = np.sqrt(held.mean() * (1 - held.mean()) / N_SAMPLES)
        assert probability_of(Question.parse(text), trials) == pytest.approx(held.mean(), abs=3 * error + 1e-6), text


def test_large_state_spaces_are_worked_through_node_by_node(rng):
    where = rng.integers(0, 3, 900)
    p = rng.random((3, 900))
    adds = {name: where == i for i, name in enumerate("abc")}
    trials = Trials(probability=p, adds=adds)
    answer = probability_of(Question.parse("a >= 80 and b >= 80 and c >= 80"), trials)
    known = [np.prod([PoissonBinomial(one[which]).sf(79) for which in adds.values()]) for one in p]
    assert answer == pytest.approx(np.mean(known), abs=1e-12)


def test_more_combinations_than_can_be_told_apart_are_refused():
    names = [f"r{i}" for i in range(30)]
    trials = Trials(probability=np.full(30, 0.5), adds={name: np.arange(30) == i for i, name in enumerate(names)})
    with pytest.raises(QuestionError, match=r"compares 30 sums at once, which makes 1\.07e\+09 states.*a \+ b >= 1"):
        probability_of(Question.parse(" or ".join(f"{name} >= 1" for name in names)), trials)
    any_of_them = Question.parse(f"{' + '.join(names)} >= 1")
    assert probability_of(any_of_them, trials) == pytest.approx(1 - 0.5**30, abs=1e-15)


def test_regions_without_candidates_make_no_states():
    names = [f"r{i}" for i in range(130)]
    trials = Trials(probability=[0.5, 0.25], adds={name: np.arange(2) == i for i, name in enumerate(names)})
    question = Question.parse(" or ".join(f"{name} >= 1" for name in names))
    assert probability_of(question, trials) == pytest.approx(1 - 0.5 * 0.75)


def test_names_that_are_not_counted_are_refused():
    trials = Trials(probability=[0.5], adds={"count": [True], "periventricular": [False]})
    with pytest.raises(
        QuestionError, match=r"asks for periventricula, which is not .* first: periventricular, count\."
    ):
        probability_of(Question.parse("periventricula >= 1 or count >= 1"), trials)

"""Questions about thousands of candidates take about as long as the distributions of their numbers."""

import time

import numpy as np
import pytest

from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.questions import ExtraLesions, Question, Trials, probability_of
from lesioncount.questions.over_time import trials_over_time

N = 20_000


def timed(work):
    """What some work gives, and the processor seconds that it took."""
    begin = time.process_time()
    given = work()
    return given, time.process_time() - begin


@pytest.fixture
def p(rng):
    return rng.random(N)


@pytest.fixture
def regions(rng):
    """Three that overlap."""
    return {name: rng.random(N) < 0.3 for name in "ABC"}


@pytest.fixture
def one_count(p):
    """Processor seconds of the distribution of the number of all candidates."""
    return min(timed(lambda: PoissonBinomial(p).pmf())[1] for _ in range(3))


def by_number_in_both(p, a, b, n_a, n_b):
    """P(A >= n_a and B >= n_b): the numbers in A alone and in B alone are independent."""
    alone_a, alone_b, both = (PoissonBinomial(p[which]) for which in (a & ~b, b & ~a, a & b))
    k = np.arange(len(both) + 1)
    return np.sum(both.pmf(k) * alone_a.sf(n_a - k - 1) * alone_b.sf(n_b - k - 1))


def test_two_regions_that_share_candidates_take_about_as_long_as_their_counts(p, regions, one_count):
    trials = Trials(probability=p, adds=regions)
    question = Question.parse("A >= 3000 and B >= 3000")
    expected = by_number_in_both(p, regions["A"], regions["B"], 3000, 3000)
    answer, took = timed(lambda: probability_of(question, trials))
    assert answer == pytest.approx(expected, abs=4e-15)
    assert took < 30 * one_count


@pytest.mark.parametrize(
    ("text", "times"),
    [("A >= 200 and B >= 200 and C >= 200", 0.06), ("not (A >= 900 and B >= 900 and count >= 3)", 0.3)],
)
def test_more_regions_take_a_few_hundred_times_as_long_as_a_count(text, times, p, regions, one_count):
    trials = Trials(probability=times * p, adds=regions | {"count": np.ones(N, dtype=bool)})
    answer, took = timed(lambda: probability_of(Question.parse(text), trials))
    assert 0 < answer < 1
    assert took < 1000 * one_count


def test_extra_lesions_take_a_few_hundred_times_as_long_as_a_count(p, regions, one_count):
    cells = {"A": [True, False, True], "B": [False, True, True]}
    extra = ExtraLesions(mean=50.0, shape=2.0, share=[0.2, 0.2, 0.1], adds=cells)
    trials = Trials(probability=p / 2, adds={name: regions[name] for name in "AB"}, extra=extra)
    question = Question.parse("A >= 1500 and B >= 1500")
    answer, took = timed(lambda: probability_of(question, trials))
    assert 0.5 < answer < 0.6
    assert took < 1000 * one_count


@pytest.mark.parametrize(("n_a", "n_b"), [(3000, 2990), (5000, 3000), (2, 2900)])
def test_two_regions_need_no_table_of_all_their_numbers(n_a, n_b, p, regions):
    trials = Trials(probability=p, adds=regions)
    expected = by_number_in_both(p, regions["A"], regions["B"], n_a, n_b)
    answer = probability_of(Question.parse(f"A >= {n_a} and B >= {n_b}"), trials)
    assert answer == pytest.approx(expected, rel=1e-12, abs=0)


def test_improbable_answers_keep_their_digits(p):
    apart = {"A": np.arange(N) < 4000, "B": np.arange(N) >= 16000}
    known = np.prod([PoissonBinomial(p[which]).sf(2400) for which in apart.values()])
    assert 1e-200 < known < 1e-100
    answer = probability_of(Question.parse("A > 2400 and B > 2400"), Trials(probability=p, adds=apart))
    assert answer == pytest.approx(known, rel=1e-11, abs=0)


def test_rounding_does_not_add_up_over_many_candidates_with_two_outcomes(p):
    """So many persist that only the new ones matter."""
    new = p / 1000
    trials = trials_over_time(["new", "persisting"], {"new": new, "persisting": (1 - p) / 10})
    expected = PoissonBinomial(new).sf(9)
    assert probability_of(Question.parse("new >= 10 and persisting >= 8"), trials) == pytest.approx(expected, abs=4e-15)

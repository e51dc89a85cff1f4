"""Questions about two scans: what is new, gone and persisting, and the count of the later one."""

import itertools

import numpy as np
import pytest

from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.distributions.sum_of_counts import SumOfCounts
from lesioncount.distributions.with_extra import CountWithExtra
from lesioncount.errors import DistributionError, QuestionError
from lesioncount.questions import ExtraLesions, Question, Trials, probability_of
from lesioncount.questions.over_time import asked_over_time, changes_asked_for, trials_over_time

NEW, PERSISTING, GONE = [0.6, 0.1, 0.3], [0.3, 0.85, 0.7], [0.2, 0.5]

# What a question asks, given the numbers of new, persisting and gone lesions.
QUESTIONS = {
    "new >= 1": lambda n: n["new"] >= 1,
    "gone = 0": lambda n: n["gone"] == 0,
    "count >= 2": lambda n: n["new"] + n["persisting"] >= 2,
    "new > gone": lambda n: n["new"] > n["gone"],
    "new >= 1 and persisting >= 1": lambda n: n["new"] >= 1 and n["persisting"] >= 1,
    "count = 2 and not (gone >= 1 or new = 2)": lambda n: (
        n["new"] + n["persisting"] == 2 and not (n["gone"] >= 1 or n["new"] == 2)
    ),
    "persisting + gone <= 1": lambda n: n["persisting"] + n["gone"] <= 1,
}


def by_hand(holds):
    """The sum over all combinations: a later candidate is new, persists or is none; an earlier one is gone or not."""
    later = [((new, 1, 0), (stay, 0, 1), (1 - new - stay, 0, 0)) for new, stay in zip(NEW, PERSISTING, strict=True)]
    total = 0.0
    for outcomes in itertools.product(*later):
        for lost in itertools.product((0, 1), repeat=len(GONE)):
            p = np.prod([one[0] for one in outcomes])
            p *= np.prod([q if is_gone else 1 - q for q, is_gone in zip(GONE, lost, strict=True)])
            new, persisting = (sum(one[place] for one in outcomes) for place in (1, 2))
            total += p * holds({"new": new, "persisting": persisting, "gone": sum(lost)})
    return total


@pytest.mark.parametrize("text", QUESTIONS)
def test_answers_are_sums_over_all_that_may_have_happened(text):
    question = asked_over_time(text)
    trials = trials_over_time(question.names, {"new": NEW, "persisting": PERSISTING, "gone": GONE})
    assert probability_of(question, trials) == pytest.approx(by_hand(QUESTIONS[text]), abs=1e-12)


def test_only_what_is_asked_for_is_needed():
    assert changes_asked_for(["gone", "new"]) == ("gone", "new")
    assert changes_asked_for(["new", "count", "count"]) == ("new", "persisting")
    trials = trials_over_time(["gone"], {"gone": GONE})
    assert trials.names == ("gone",)
    assert probability_of(Question.parse("gone = 2"), trials) == pytest.approx(0.1)


def test_two_scans_without_candidates():
    trials = trials_over_time(["new", "gone"], {"new": [], "gone": []})
    assert probability_of(Question.parse("new = 0 and gone = 0"), trials) == 1


@pytest.mark.parametrize("text", ["periventricular >= 1", "new >= 1 and left >= 1", "mcdonald2001-dis"])
def test_questions_about_anything_else_are_refused(text):
    with pytest.raises(QuestionError, match=r"not counted here\. Known names, nearest first: .*new"):
        asked_over_time(text)


def test_outcomes_of_a_candidate_are_at_most_one():
    with pytest.raises(DistributionError, match="at most 1 in all"):
        trials_over_time(["count"], {"new": [0.7], "persisting": [0.7]})


@pytest.mark.parametrize("k", [0, 1, 3, 7])
@pytest.mark.parametrize("shape", [np.inf, 0.4])
def test_changes_without_a_candidate_of_two_kinds_are_independent(k, shape):
    extra = {"new": (1.5, shape), "gone": ([0.5], 2.0)}
    trials = trials_over_time(["new", "gone"], {"new": NEW, "gone": GONE}, extra=extra)
    new = CountWithExtra(PoissonBinomial(NEW), 1.5, shape)
    gone = CountWithExtra(PoissonBinomial(GONE), 0.5, 2.0)
    both = probability_of(Question.parse(f"new >= {k} and gone <= 1"), trials)
    assert both == pytest.approx(new.sf(k - 1) * gone.cdf(1), abs=1e-10)
    together = probability_of(Question.parse(f"new + gone <= {k}"), trials)
    assert together == pytest.approx(SumOfCounts([new, gone]).cdf(k), abs=1e-10)


def test_each_node_has_its_own_numbers_without_a_candidate():
    """A mixture of two scans: one expects extra lesions of both kinds, the other none."""
    none, some = (
        trials_over_time(["new", "gone"], {"new": NEW, "gone": GONE}, extra={"new": (m, 1.0), "gone": (2 * m, 1.0)})
        for m in (0.0, 0.8)
    )
    p = {"new": np.array([NEW, NEW]), "gone": np.array([GONE, GONE])}
    extra = {"new": ([0.0, 0.8], 1.0), "gone": ([0.0, 1.6], 1.0)}
    mixed = trials_over_time(["new", "gone"], p, weights=[1, 3], extra=extra)
    question = Question.parse("new > gone or gone = 2")
    expected = 0.25 * probability_of(question, none) + 0.75 * probability_of(question, some)
    assert probability_of(question, mixed) == pytest.approx(expected, abs=1e-12)


def test_extra_lesions_of_each_kind_fit_the_trials():
    fits = ExtraLesions(mean=1.0, share=[1.0], adds={"new": [True]})
    with pytest.raises(DistributionError, match="Expected extra lesions to add to new, but they add to gone"):
        Trials(
            probability=[0.5],
            adds={"new": [True]},
            extra=[fits, ExtraLesions(mean=1.0, share=[1.0], adds={"gone": [True]})],
        )

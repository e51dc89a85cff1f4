"""Criteria by name, and scans that do not show all of what they ask for."""

from itertools import product

import numpy as np
import pytest

from lesioncount.errors import QuestionError
from lesioncount.questions import QUESTIONS, Question, Trials, probability_of

BRAIN = ["count", "periventricular", "juxtacortical", "infratentorial"]


def fulfilled(name, **counts):
    """Whether these counts fulfil a criterion: candidates that are certain."""
    question = Question.named(name)
    lesions = [one for one, n in counts.items() for _ in range(n)]
    adds = {one: np.array([lesion == one for lesion in lesions], dtype=bool) for one in question.names}
    if "count" not in counts:
        adds["count"] = np.ones(len(lesions), dtype=bool)
    return probability_of(question, Trials(probability=np.ones(len(lesions)), adds=adds))


@pytest.mark.parametrize("name", ["mcdonald2017-dis", "mcdonald2010-dis"])
def test_two_of_four_areas(name):
    for counts in product([0, 1, 2], repeat=4):
        areas = dict(zip(["periventricular", "juxtacortical", "infratentorial", "spinal_cord"], counts, strict=True))
        assert fulfilled(name, **areas) == (sum(n > 0 for n in counts) >= 2), areas


def test_three_of_four_of_2001():
    names = ["enhancing", "count", "infratentorial", "juxtacortical", "periventricular"]
    for counts in product([0, 1], [0, 8, 9], [0, 1], [0, 1], [0, 2, 3]):
        enhancing, count, infratentorial, juxtacortical, periventricular = counts
        met = [enhancing or count >= 9, infratentorial, juxtacortical, periventricular >= 3]
        assert fulfilled("mcdonald2001-dis", **dict(zip(names, counts, strict=True))) == (sum(map(bool, met)) >= 3)


@pytest.mark.parametrize("name", QUESTIONS)
def test_named_questions_can_only_gain_by_a_lesion(name):
    names = Question.named(name).names
    for counts in product([0, 2, 8], repeat=len(names)):
        before = fulfilled(name, **dict(zip(names, counts, strict=True)))
        for i in range(len(names)):
            more = [n + (i == j) for j, n in enumerate(counts)]
            assert fulfilled(name, **dict(zip(names, more, strict=True))) >= before


@pytest.mark.parametrize("name", QUESTIONS)
def test_named_questions_say_what_they_are_and_where_they_are_from(name):
    question, known = Question.named(name), QUESTIONS[name]
    assert (question.name, question.text, question.source) == (name, known.text, known.source)
    assert str(question) == known.text
    assert known.description.endswith(".")
    assert "et al." in known.source
    assert question == Question.asked(f" {name} ") == Question.asked(known.text)
    assert Question.asked(known.text).name is None


def test_names_that_are_none_are_refused_with_those_that_are():
    with pytest.raises(QuestionError, match=r"no question 'mcdonald2017'\. Known are mcdonald2017-dis, mcdonald20"):
        Question.named("mcdonald2017")
    with pytest.raises(QuestionError, match="There is no question"):
        Question.named(None)


def test_areas_that_a_scan_does_not_show_count_as_without_lesions():
    question, missing = Question.named("mcdonald2017-dis").given(BRAIN)
    assert missing == ("spinal_cord",)
    assert question.names == ("periventricular", "juxtacortical", "infratentorial")
    assert str(question).endswith("infratentorial >= 1, 0 >= 1)")
    assert question.name == "mcdonald2017-dis"
    assert Question.parse(str(question)) == question
    shown = {"count": [True] * 2, "periventricular": [True, False], "juxtacortical": [False, True]}
    shown["infratentorial"] = [False, False]
    in_brain = Trials(probability=[0.5, 0.8], adds=shown)
    assert probability_of(question, in_brain) == pytest.approx(0.4)
    with_cord = Trials(
        probability=[0.5, 0.8, 0.9],
        adds={name: [*which, name == "count"] for name, which in shown.items()} | {"spinal_cord": [False, False, True]},
    )
    assert probability_of(Question.named("mcdonald2017-dis"), with_cord) > 0.4  # what was asked before is a lower bound


def test_question_whose_names_are_all_known_stays_as_it_is():
    question = Question.parse("periventricular >= 1")
    assert question.given(BRAIN) == (question, ())
    assert question.given(BRAIN)[0] is question


def test_every_kind_of_condition_can_do_without_a_name():
    text = "not a >= 1 and (b + a >= 2 or exactly 1 of (a > 0, c == 1))"
    question = Question(Question.parse(text).condition, text, "a name", "a source")
    without, missing = question.given(["b", "c"])
    assert missing == ("a",)
    assert str(without) == "not 0 >= 1 and (b >= 2 or exactly 1 of (0 > 0, c == 1))"


def test_unknown_name_in_a_question_of_ones_own_is_refused_with_the_nearest_first():
    with pytest.raises(QuestionError, match=r"asks for juxtacortcal, which is not .* first: juxtacortical, "):
        Question.parse("juxtacortcal >= 1").given(BRAIN)
    with pytest.raises(QuestionError, match=r"first: Periventricular"):
        Question.parse("periventricular >= 1").given(["count", "Periventricular"])
    with pytest.raises(QuestionError, match=r'first: "ventricles<=3mm", count'):
        Question.parse("ventricles <= 3mm").given(["count", "ventricles<=3mm"])


def test_named_question_of_which_nothing_is_known_is_refused():
    with pytest.raises(QuestionError, match=r"periventricular, .* spinal_cord, which are not counted here"):
        Question.named("mcdonald2017-dis").given(["new", "gone"])
    with pytest.raises(QuestionError, match="there is nothing to ask for"):
        Question.named("mcdonald2017-dis").given([])


def test_long_lists_of_names_are_cut():
    with pytest.raises(QuestionError, match=r"r\d+ and 118 more\.$"):
        Question.parse("x >= 1").given([f"r{i}" for i in range(130)])
    with pytest.raises(QuestionError) as refusal:
        Question.parse(f"{'x' * 5000} >= 1").given(["y" * 5000])
    assert len(str(refusal.value)) < 250

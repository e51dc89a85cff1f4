"""Which texts are questions, how they are understood, and what is said of those that are none."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from questions.made_questions import questions

from lesioncount.errors import QuestionError
from lesioncount.questions import Question
from lesioncount.questions.conditions import quoted


@given(questions())
def test_plain_text_of_a_question_asks_the_same(made):
    question = Question.parse(made[0])
    again = Question.parse(str(question))
    assert again == question
    assert hash(again) == hash(question)
    assert str(again) == str(question)
    assert again.names == question.names


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("count>=9", "count >= 9"),
        ("  count\n>=\t9 ", "count >= 9"),
        ("NOT gone = 0", "not gone == 0"),
        ("not not a >= 1", "not not a >= 1"),
        ("not (a >= 1 and b >= 1)", "not (a >= 1 and b >= 1)"),
        ("2<=count≤5", "2 <= count <= 5"),
        ("a >= 1 and (b >= 1 and c ≠ 1)", "a >= 1 and b >= 1 and c != 1"),
        ("a >= 1 Or b >= 1 aNd c >= 1", "a >= 1 or (b >= 1 and c >= 1)"),
        ("(a >= 1 or b >= 1) and c >= 1", "(a >= 1 or b >= 1) and c >= 1"),
        ("((a + 1) + (b)) > (2)", "a + b + 1 > 2"),
        ("At Least 2 of (a >= 1, b >= 1 or c >= 1, d > 0)", "at least 2 of (a >= 1, b >= 1 or c >= 1, d > 0)"),
        ("at most 0 of (a >= 1) and exactly 1 of (b < 2)", "at most 0 of (a >= 1) and exactly 1 of (b < 2)"),
        ('"ventricles<=3mm" >= 1', '"ventricles<=3mm" >= 1'),
        ('"periventricular" >= 1', "periventricular >= 1"),
        ('"of" + "12" + "1.5" + "say ""a""" >= 1', '"of" + "12" + "1.5" + "say ""a""" >= 1'),
        ("Läsion_links-2.x >= 1", "Läsion_links-2.x >= 1"),
        ("3rd-ventricle > 0", "3rd-ventricle > 0"),
        ("new > gone", "new > gone"),
    ],
)
def test_text_is_understood(text, plain):
    question = Question.parse(text)
    assert str(question) == plain
    assert question.text == text
    assert Question.parse(plain) == question


def test_names_are_those_of_the_text_in_its_order_and_once():
    text = 'b + a >= 1 and not (at least 1 of (c > 0, a > b, "d e" == 2))'
    assert Question.parse(text).names == ("b", "a", "c", "d e")


def test_what_is_asked_matters_and_how_it_is_written_does_not():
    assert Question.parse("a >= 1") == Question.parse("(a)≥1")
    assert Question.parse("a >= 1") != Question.parse("a > 0")
    assert Question.parse("a >= 1 and b >= 1") != Question.parse("a >= 1 or b >= 1")


def test_questions_go_to_other_processes():
    question = Question.parse("at least 1 of (not a >= 1, b > c or 2 == d)")
    again = pickle.loads(pickle.dumps(question))  # noqa: S301 - our own
    assert (again, again.text, again.names) == (question, question.text, question.names)


@given(st.text(min_size=1, max_size=40))
def test_anything_can_be_a_name_in_quotes(name):
    question = Question.parse(f"{quoted(name)} >= 1")
    assert question.names == (name,)
    assert Question.parse(str(question)) == question


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("", "Expected a question, but got the end", 0),
        ("   ", "Expected a question, but got the end", 0),
        ("count", "Expected a comparison, such as `>= 1`, but got the end", 5),
        ("count and new >= 1", "Expected a comparison, such as `>= 1`, but got `and`", 6),
        ("count >=", "Expected a name or a number, but got the end", 8),
        ("count >= >= 1", "Expected a name or a number, but got `>=`", 9),
        ("count >= 1 new", "Expected `and`, `or` or the end, but got `new`", 11),
        ("count >= 1 and", "Expected a name or a number, but got the end", 14),
        ("count >= of", r"Expected a name or a number, but got `of`[\s\S]*in quotes: \"of\"", 9),
        ("(count >= 1", r"Expected `\)`, but got the end", 11),
        ("count >= 1)", r"Expected `and`, `or` or the end, but got `\)`", 10),
        ("(count >= 1) >= 2", r"Expected `and` or `or`, but got `>=`[\s\S]*true or false already", 13),
        ("(count >= 1) + 2 > 1", r"Expected `and` or `or`, but got `\+`", 13),
        ("1 + (count >= 1) > 1", r"Expected `and` or `or`, but got `>`", 17),
        ("not count", "Expected a comparison", 9),
        ("not (count)", "Expected a comparison", 11),
        ("at 2 of (a > 1)", "Expected `least` or `most` after `at`, but got `2`", 3),
        ("at least of (a > 1)", r"Expected a number, as in `at least 2 of \(…, …\)`, but got `of`", 9),
        ("at least 2 (a > 1)", "Expected `of`", 11),
        ("at least 2 of a > 1", "Expected conditions in brackets", 14),
        ("at least 1 of ()", r"Expected a name or a number, but got `\)`", 15),
        ("at least 1 of (a > 1, b)", "Expected a comparison", 23),
        ("at least 1 of (a > 1 b > 1)", r"Expected `,` or `\)`, but got `b`", 21),
        ("at least 3 of (a > 1, b > 1)", "Expected a number of at most 2, for there are 2 conditions, but got `3`", 9),
        ("3 >= 1", "Expected the name of something that is counted, but there are only numbers", 0),
        ("count >= 1.5", r"Expected a whole number, but got 1\.5[\s\S]*one by one", 9),
        ("count >= 1234567890", "Expected a number of at most 9 digits", 9),
        ("count >= -1", r"but got '-'[\s\S]*no negative numbers", 9),
        ("a * 2 >= 1", r"but got '\*'[\s\S]*added only", 2),
        ("a >= 1 && b >= 1", r"but got '&'[\s\S]*Write `and`", 7),
        ("a >= 1 || b >= 1", r"but got '\|'[\s\S]*Write `or`", 7),
        ("!a >= 1", r"but got '!'[\s\S]*Write `not`", 0),
        ("'a' >= 1", r"double quotes", 0),
        ("a >= 1; import os", "but got ';'", 6),
        ('"a >= 1', "Expected a closing double quote", 0),
        ('"" >= 1', "Expected a name between the quotes", 0),
    ],
)
def test_text_that_is_no_question_is_refused_and_its_place_shown(text, message, at):
    with pytest.raises(QuestionError, match=message) as refusal:
        Question.parse(text)
    lines = str(refusal.value).splitlines()
    assert lines[1].removeprefix("  ") == text
    assert lines[2].removeprefix("  ") == " " * at + "^"


def test_place_in_a_long_text_is_shown_with_what_is_around_it():
    text = " and ".join(["periventricular >= 1"] * 20 + ["oops"] + ["juxtacortical >= 1"] * 20)
    with pytest.raises(QuestionError) as refusal:
        Question.parse(text)
    _, line, pointer = str(refusal.value).splitlines()
    assert len(line) < 100
    assert line.startswith("  …")
    assert line.endswith("…")
    assert line[pointer.index("^") :].startswith("and juxtacortical")
    assert line[: pointer.index("^")].endswith("oops ")


def test_lines_of_a_text_are_shown_as_one():
    with pytest.raises(QuestionError) as refusal:
        Question.parse("a >= 1\nand\x1b[31m b >= 1")
    assert str(refusal.value).splitlines()[1:] == ["  a >= 1 and [31m b >= 1", "            ^"]


@pytest.mark.parametrize("text", ["(" * 1000 + "a", "(" * 41 + "a >= 1" + ")" * 41, "not " * 500 + "a >= 1"])
def test_deep_nesting_is_refused(text):
    with pytest.raises(QuestionError, match="at most 40 levels of brackets"):
        Question.parse(text)


def test_nesting_that_a_person_may_write_is_read():
    assert Question.parse("(" * 40 + "a >= 1" + ")" * 40) == Question.parse("a >= 1")
    assert Question.parse("not " * 40 + "a >= 1").names == ("a",)
    assert Question.parse(" and ".join(["(a >= 1)"] * 500)).names == ("a",)


def test_long_text_is_refused_before_it_is_read():
    with pytest.raises(QuestionError, match=r"at most 10000 characters, but it has 10005\. Ask several"):
        Question.parse("count" * 2001)


@pytest.mark.parametrize("text", [None, b"count >= 9", 9, ["count >= 9"]])
def test_what_is_no_text_is_refused(text):
    with pytest.raises(QuestionError, match="Expected a question as text"):
        Question.parse(text)
    with pytest.raises(QuestionError, match="Expected a question as text"):
        Question.asked(text)


_PIECES = [
    "and",
    "or",
    "not",
    "at",
    "least",
    "most",
    "exactly",
    "of",
    "a",
    "1",
    "(",
    ")",
    ",",
    "+",
    ">=",
    "=",
    '"',
    "\x00",
    "-",
    ".",
]


@given(st.text(max_size=60) | st.lists(st.sampled_from(_PIECES), max_size=30).map(" ".join))
def test_any_text_is_a_question_or_refused(text):
    try:
        question = Question.parse(text)
    except QuestionError:
        return
    assert Question.parse(str(question)) == question

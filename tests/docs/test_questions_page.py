"""The page about questions shows what is there."""

import re
from pathlib import Path

import pytest

from lesioncount.errors import QuestionError
from lesioncount.questions import QUESTIONS, Question

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "questions.md").read_text("utf-8")


def test_message_that_is_shown_is_the_one_that_is_given():
    shown = re.search(r"^```text\n(.*?)\n```", PAGE, re.MULTILINE | re.DOTALL)[1]
    with pytest.raises(QuestionError, match=rf"^{re.escape(shown)}$"):
        Question.parse(shown.splitlines()[1].strip())


@pytest.mark.parametrize("name", QUESTIONS)
def test_named_questions_are_listed_with_their_sources(name):
    known = QUESTIONS[name]
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
    assert f"`{known.text}`" in row or "| the same, " in row
    for issue in re.findall(r"\d{4};\d+:\d+–\d+", known.source):
        assert issue in row


def test_every_question_that_is_shown_can_be_asked():
    table = PAGE.partition("## How to ask")[2].partition("##")[0]
    shown = [text for text in re.findall(r"`([^`\n]+)`", table) if re.search(r"\w (>=|<=|>|<|=) ", text)]
    shown += re.findall(r"--ask '([^']+)'", PAGE)
    assert len(shown) >= 10
    for text in shown:
        assert Question.parse(text).names

"""Answers to questions, as ``lesioncount count`` and ``lesioncount compare`` print them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from lesioncount.results.answers import Answer

# Questions of more letters have a number as the head of their column.
_SHORT = 28


def print_answers(console: Console, answers: Mapping[str, Sequence[Answer]], *, shown: int) -> None:
    """A line for each scan or pair, by its name, with a column for each question; then what was missing."""
    if not answers:
        return
    asked = next(iter(answers.values()))
    for number, answer in enumerate(asked, start=1):
        if _head(answer, number) != answer.question:
            console.print(f"{_head(answer, number)}: {answer.question}", markup=False, highlight=False)
    console.print(_table(dict(islice(answers.items(), shown)), asked))
    for name, missing in _missing(answers.values()).items():
        console.print(
            f"note: {name} was asked without {', '.join(missing)}, which no region is called here: the probability is "
            "a lower bound.",
            markup=False,
            highlight=False,
        )


def _missing(answers: Iterable[Sequence[Answer]]) -> dict[str | None, dict[str, None]]:
    """What is missing in some scan, by the name of the question that asks for it."""
    found: dict[str | None, dict[str, None]] = {}
    for answer in (answer for of_scan in answers for answer in of_scan if answer.missing):
        found.setdefault(answer.name, {}).update(dict.fromkeys(answer.missing))
    return found


def _table(answers: Mapping[str, Sequence[Answer]], asked: Sequence[Answer]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    is_calibrated = all(answer.probability_calibrated is not None for answer in asked)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("calibrated probability of" if is_calibrated else "probability of", no_wrap=True)
    for number, answer in enumerate(asked, start=1):
        table.add_column(escape(_head(answer, number)), justify="right", no_wrap=True)
    for name, of_scan in answers.items():
        table.add_row(escape(name), *(_shown(answer.best) for answer in of_scan))
    return table


def _shown(probability: float) -> str:
    """Three digits, but 0 and 1 only where it is certain."""
    if 0 < probability < 0.0005:
        return "< 0.001"
    return "> 0.999" if 0.9995 <= probability < 1 else f"{probability:.3f}"


def _head(answer: Answer, number: int) -> str:
    if answer.name is not None:
        return answer.name
    return answer.question if len(answer.question) <= _SHORT else f"question {number}"

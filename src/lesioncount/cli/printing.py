"""What commands print when they are done: tables that fit their terminal, answers to questions, and notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from lesioncount.results.answers import Answer

# The least of a terminal's columns that is left to names.
_SHORTEST = 12

# Wider than any table: of a pipe, whose lines have no end.
_NO_LIMIT = 10_000

# Questions of more letters have a number as the head of their column.
_SHORT = 28


@dataclass(frozen=True)
class Summary:
    """What was found by a run.

    Attributes
    ----------
    columns : tuple of str
        Heads of the table: of names, and of numbers.
    width : int
        Columns of a terminal that the numbers take.
    rows : sequence of tuple of str
        A name and its numbers, of those that are shown.
    n_rows : int
        How many there are in all.
    last : str
        The line that says it all.
    heading : str
        What stands above the table; empty if nothing does.
    answers : mapping of str to sequence of Answer
        By the names of the rows.
    notes : sequence of str
    """

    columns: tuple[str, ...]
    width: int
    rows: Sequence[tuple[str, ...]]
    n_rows: int
    last: str
    heading: str = ""
    answers: Mapping[str, Sequence[Answer]] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def print(self) -> None:
        """Print it on standard output."""
        from rich.console import Console

        console = Console(soft_wrap=True)
        if self.rows:
            # On a terminal, long names are shortened. What reads from a pipe wants them whole, a row per line.
            wide = console if console.is_terminal else Console(width=_NO_LIMIT)
            if self.heading:
                wide.print(self.heading)
            wide.print(self.table(wide.width))
            _print_answers(wide, self.answers, shown=len(self.rows))
        if self.n_rows > len(self.rows):
            console.print(f"… and {self.n_rows - len(self.rows)} more (-v lists all)")
        for line in (*self.notes, self.last):
            console.print(line, markup=False, highlight=False)

    def table(self, width: int) -> Table:
        """The rows, in so many columns of a terminal."""
        names, *others = self.columns
        longest = max(width - self.width, _SHORTEST)
        return _table(names, others, [(shortened(name, longest), *numbers) for name, *numbers in self.rows])


def shortened(name: str, longest: int) -> str:
    """A name without its middle, where it is too long: names of a cohort differ at their ends."""
    half = (longest - 1) // 2
    return name if len(name) <= longest else f"{name[: longest - 1 - half]}…{name[-half:]}"


def _table(names: str, others: Iterable[str], rows: Iterable[Sequence[str]]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(names, no_wrap=True, overflow="ellipsis")
    for head in others:
        table.add_column(escape(head), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def _print_answers(console: Console, answers: Mapping[str, Sequence[Answer]], *, shown: int) -> None:
    """A line for each scan or pair, by its name, with a column for each question; then what was missing."""
    if not answers:
        return
    asked = next(iter(answers.values()))
    heads = [_head(answer, number) for number, answer in enumerate(asked, start=1)]
    for head, answer in zip(heads, asked, strict=True):
        if head != answer.question:
            console.print(f"{head}: {answer.question}", markup=False, highlight=False)
    is_calibrated = all(answer.probability_calibrated is not None for answer in asked)
    title = "calibrated probability of" if is_calibrated else "probability of"
    rows = [(name, *(_shown(answer.best) for answer in of)) for name, of in islice(answers.items(), shown)]
    console.print(_table(title, heads, rows))
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


def _shown(probability: float) -> str:
    """Three digits, but 0 and 1 only where it is certain."""
    if 0 < probability < 0.0005:
        return "< 0.001"
    return "> 0.999" if 0.9995 <= probability < 1 else f"{probability:.3f}"


def _head(answer: Answer, number: int) -> str:
    if answer.name is not None:
        return answer.name
    return answer.question if len(answer.question) <= _SHORT else f"question {number}"


def some(n: int, what: str) -> str:
    """So many of something: ``1 pair``, ``2 pairs``."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of a table as plain lines, which look the same in a terminal, a pipe and a file."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]

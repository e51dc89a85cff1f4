"""Rows → tables as text: tabs between columns, ``n/a`` for what is unknown, as BIDS has it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any

# What a cell begins with that spreadsheets compute, unless it is a number.
_FORMULA = ("=", "+", "-", "@")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?(?:e[+-]?\d+)?", re.IGNORECASE)


def filled_columns(
    columns: Iterable[str], rows: Sequence[Mapping[str, Any]], *, optional: Iterable[str]
) -> tuple[str, ...]:
    """The columns of a table, without the optional ones that no row fills."""
    empty = {name for name in optional if not any(name in row for row in rows)}
    return tuple(column for column in columns if column not in empty)


Rows = Callable[[], Iterable[Mapping[str, Any]]]


def write_tsv(file: IO[str], columns: Sequence[str], rows: Rows, *, optional: Iterable[str] = ()) -> None:
    """Write a table row by row, without the optional columns that no row fills.

    Parameters
    ----------
    file : text file
        Empty, and one that can be begun again.
    columns : sequence of str
    rows : callable
        Gives the rows, from the first one on, whenever it is called.
    optional : iterable of str
        Columns that are left out unless a row has them.
    """
    empty = set(optional)
    while True:
        kept = [column for column in columns if column not in empty]
        file.write("\t".join(kept) + "\n")
        for row in rows():
            if not empty.isdisjoint(row):  # mostly found in the first row: begin again
                break
            file.write("\t".join([_cell(row.get(column)) for column in kept]) + "\n")
        else:
            return
        empty.difference_update(row)
        file.seek(0)
        file.truncate()


def to_tsv(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A table as text."""
    columns = tuple(columns)
    lines = ["\t".join(columns)]
    lines += ["\t".join(_cell(row.get(column)) for column in columns) for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "n/a"
    if isinstance(value, float):
        return f"{value:.6g}"
    if type(value) is int:
        return str(value)
    return _harmless(" ".join(str(value).split())) or "n/a"


def _harmless(text: str) -> str:
    """A text that a spreadsheet would take for a formula, such as ``=1+1``, with an apostrophe before it."""
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


def without_apostrophe(text: str) -> str:
    """What was meant by a cell that was made harmless."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text

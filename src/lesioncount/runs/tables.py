"""Rows → tables as text: tabs between columns, ``n/a`` for what is unknown, as BIDS has it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def filled_columns(
    columns: Iterable[str], rows: Sequence[Mapping[str, Any]], *, optional: Iterable[str]
) -> tuple[str, ...]:
    """The columns of a table, without the optional ones that no row fills."""
    empty = {name for name in optional if not any(name in row for row in rows)}
    return tuple(column for column in columns if column not in empty)


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
    return " ".join(str(value).split()) or "n/a"

"""A table of pairs: which map is the baseline of which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lesioncount.cohort.tables import read_cells
from lesioncount.errors import MapFileError
from lesioncount.files.formats import map_ending
from lesioncount.folder.tables import without_apostrophe

_COLUMNS = ("baseline", "followup")


@dataclass(frozen=True)
class PairRow:
    """One row: two maps, and whose they are if the table says so."""

    baseline: Path
    followup: Path
    participant: str | None = None


def read_pairs(table: Path) -> list[PairRow]:
    """Read the pairs; paths are as they are, or begin at the folder of the table."""
    names, rows = read_cells(table)
    for column in _COLUMNS:
        if list(names).count(column) != 1:
            raise MapFileError(
                f"Expected a column {column!r} in {table}, once, but its columns are {', '.join(names) or 'none'}."
            )
    if not rows:
        raise MapFileError(f"{table} has no pairs.")
    return [
        PairRow(
            _existing(row, "baseline", table),
            _existing(row, "followup", table),
            _cell(row, "participant_id") or None,
        )
        for row in rows
    ]


def _cell(row: Mapping[str, str | None], column: str) -> str:
    """What is in a cell; nothing, if the row is too short for it."""
    return without_apostrophe((row.get(column) or "").strip())


def _existing(row: Mapping[str, str | None], column: str, table: Path) -> Path:
    text = _cell(row, column)
    if not text:
        raise MapFileError(f"{table}: a row has no {column}.")
    given = Path(text)
    path = next((one for one in (table.parent / given, given) if one.exists()), None)
    if path is None:
        raise MapFileError(f"{table}: the {column} {text} does not exist, neither as it is nor beside the table.")
    if path.is_dir() and map_ending(path) is None:
        raise MapFileError(f"{table}: the {column} {text} is a folder. Expected the path of one map.")
    return path

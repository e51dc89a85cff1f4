"""What the tables of a cohort's folder say: patients and their parts, scans and their counts."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path

from lesioncount.errors import CohortError, MapFileError, reason_of
from lesioncount.learning import layout
from lesioncount.learning.cohort import SPLITS, bids_name

_UNKNOWN = ("", "n/a")

# Columns that are read, of which there must be one.
_READ = ("participant_id", "session_id", "split", "count", "at_least", "at_most")

# Labels become names of files and folders: none may lead to another folder, or be too long for a file system.
_LABEL = re.compile(r"[\w.+-][\w.+ -]{0,63}")

_MOST_DIGITS = 9
_LONGEST_SHOWN = 80


@dataclass(frozen=True)
class Row:
    """What the tables say of a scan."""

    patient: str
    session: str
    split: str | None
    count: int | None
    at_least: int | None
    at_most: int | None

    @property
    def name(self) -> str:
        """How the names of its files begin."""
        return bids_name(self.patient, self.session)

    def allows(self, count: int) -> bool:
        """Whether a count agrees with the tables, as far as they say anything."""
        low, high = self.bounds
        return low <= count <= high and self.count in (None, count)

    @property
    def bounds(self) -> tuple[int, float]:
        """The bounds of the count, without regard to the count itself."""
        return self.at_least or 0, inf if self.at_most is None else self.at_most


def read_rows(folder: Path) -> tuple[Row, ...]:
    """The scans of a folder, in the order of its table."""
    path = folder / layout.SCANS
    splits = _splits(folder / layout.PARTICIPANTS)
    rows = tuple(_row(path, cells, splits) for cells in _table(path))
    names = set()
    for row in rows:
        if row.name in names:
            raise CohortError(f"{path}: {row.name} has more than one row.")
        names.add(row.name)
    return rows


def _table(path: Path) -> list[dict[str, str]]:
    """The rows of a tab-separated table, which must have a column ``participant_id``."""
    if path.exists() and not path.is_file():
        raise MapFileError(f"The table {path} cannot be read: it is no file.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream, delimiter="\t", restkey="", restval="")
            rows = list(reader)
            columns = reader.fieldnames or ()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise MapFileError(f"The table {path} cannot be read: {reason_of(error)}.") from None
    if "participant_id" not in columns:
        shown = ", ".join(map(str, columns))[:_LONGEST_SHOWN]
        raise CohortError(f"Expected a column participant_id in {path}, but its columns are {shown}.")
    twice = [name for name in _READ if list(columns).count(name) > 1]
    if twice:
        raise CohortError(f"{path} has more than one column {twice[0]}. Remove all but one.")
    return rows


def _splits(path: Path) -> dict[str, str]:
    """The part that each patient belongs to, if there is a table that says so."""
    if not path.exists():
        return {}
    splits: dict[str, str] = {}
    for row in _table(path):
        patient, split = row["participant_id"], row.get("split", "")
        if splits.setdefault(patient, split) != split:
            raise CohortError(f"{path}: {patient[:_LONGEST_SHOWN]} is in two parts, {splits[patient]!r} and {split!r}.")
        if split not in (*SPLITS, *_UNKNOWN):
            raise CohortError(
                f"{path}: expected {', '.join(SPLITS)} or n/a for {patient[:_LONGEST_SHOWN]}, but got "
                f"{split[:_LONGEST_SHOWN]!r}."
            )
    return {patient: split for patient, split in splits.items() if split in SPLITS}


def _row(path: Path, cells: Mapping[str, str], splits: Mapping[str, str]) -> Row:
    participant, session = cells["participant_id"], cells.get("session_id", "")
    row = Row(
        patient=participant.removeprefix("sub-"),
        session="" if session in _UNKNOWN else session.removeprefix("ses-"),
        split=splits.get(participant),
        count=_number(path, cells, "count"),
        at_least=_number(path, cells, "at_least"),
        at_most=_number(path, cells, "at_most"),
    )
    for label in (row.patient, row.session or "none"):
        _check_label(path, label)
    if not row.allows(row.bounds[0] if row.count is None else row.count):
        raise CohortError(f"{path}: count, at_least and at_most of {row.name} contradict each other.")
    return row


def _number(path: Path, cells: Mapping[str, str], column: str) -> int | None:
    text = (cells.get(column) or "").strip()
    if text in _UNKNOWN:
        return None
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise CohortError(
            f"{path}: expected a whole number below a billion or n/a as {column} of {cells['participant_id']} "
            f"{cells.get('session_id', '')}, but got {text[:_LONGEST_SHOWN]!r}."
        )
    return int(text)


def _check_label(path: Path, label: str) -> None:
    if _LABEL.fullmatch(label) is None:
        raise CohortError(
            f"{path}: expected labels of letters, digits and - . + _ as participant_id and session_id, at most 64 of "
            f"them, but got {label[:_LONGEST_SHOWN]!r}."
        )

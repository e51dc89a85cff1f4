"""A table with a row for each picture: how many lesions it has, whose it is, and which part it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lesioncount.cohort.tables import is_unknown, read_cells
from lesioncount.errors import CohortError
from lesioncount.learning.pictures import picture_ending
from lesioncount.learning.scans import MANY
from lesioncount.learning.split import SPLITS

# Columns that have one name only.
_AT_LEAST, _AT_MOST, _SPLIT, _PATIENT = "at_least", "at_most", "split", "patient"

_LONGEST_SHOWN = 80
_NAMED = 5


@dataclass(frozen=True)
class Label:
    """What a table says of a picture.

    Attributes
    ----------
    at_least, at_most : int or None
        Bounds of the count, equal where it is known; None where the table says nothing.
    patient, split : str
        Empty where the table says nothing.
    """

    at_least: int | None = None
    at_most: int | None = None
    patient: str = ""
    split: str = ""

    @property
    def count(self) -> int | None:
        """The count, where it is known exactly."""
        return self.at_least if self.at_least == self.at_most else None


class LabelTable:
    """The labels of pictures, by name.

    Parameters
    ----------
    path : Path
        Separated by tabs, commas or semicolons.
    scan_column, count_column : str
        Columns with the names of pictures, with or without their endings, and with counts. Other columns that are read:
        ``at_least`` and ``at_most``, ``patient``, and ``split`` (train, val, test).
    """

    def __init__(self, path: Path, *, scan_column: str = "scan", count_column: str = "count") -> None:
        self.path = path
        columns, rows = _table(path)
        if scan_column not in columns:
            raise CohortError(_missing_column(path, scan_column, columns, "scan_column"))
        if not {count_column, _AT_LEAST, _AT_MOST} & set(columns):
            raise CohortError(_missing_column(path, count_column, columns, "count_column"))
        self._count_column = count_column
        self._rows: dict[str, Mapping[str, str]] = {}
        for row in rows:
            name = _without_ending(_cell(row, scan_column))
            if name in self._rows:
                raise CohortError(f"{path}: {name!r} has more than one row.")
            self._rows[name] = row

    def label_of(self, name: str, /) -> Label | None:
        """The label of a picture, under its name or the last part of it; None if there is no row."""
        for known in (name, name.rpartition("/")[2]):
            if known in self._rows:
                return self._label(known, self._rows[known])
        return None

    def check_own_rows(self, names: Sequence[str]) -> None:
        """Raise if one row would serve two pictures, or none serves any."""
        serves: dict[str, str] = {}
        for name in names:
            last = name.rpartition("/")[2]
            key = name if name in self._rows else last
            if key in self._rows and key in serves:
                raise CohortError(
                    f"{self.path}: the row {key!r} would serve both {serves[key]} and {name}. Give each a row of "
                    f"its own, under its whole name, such as {name}."
                )
            serves[key] = name
        if not serves.keys() & self._rows.keys():
            theirs, ours = ", ".join(list(names)[:_NAMED]), ", ".join(list(self._rows)[:_NAMED]) or "nothing"
            raise CohortError(
                f"No row of {self.path} belongs to a picture. Pictures are called {theirs} …; the table has {ours} …"
            )

    def _label(self, name: str, row: Mapping[str, str]) -> Label:
        count = self._number(name, row, self._count_column)
        low, high = self._number(name, row, _AT_LEAST), self._number(name, row, _AT_MOST)
        split = _cell(row, _SPLIT)
        if is_unknown(split):
            split = ""
        elif split not in SPLITS:
            raise CohortError(
                f"{self.path}: expected {', '.join(SPLITS)} or n/a as split of {name}, but got {_short(split)}."
            )
        patient = _cell(row, _PATIENT)
        if count is not None:
            if not (low or 0) <= count <= (MANY if high is None else high):
                raise CohortError(f"{self.path}: count, at_least and at_most of {name} contradict each other.")
            return Label(count, count, patient, split)
        if low is None and high is None:
            return Label(patient=patient, split=split)
        if (low or 0) > (MANY if high is None else high):
            raise CohortError(f"{self.path}: at_least of {name} is above at_most.")
        return Label(low or 0, MANY if high is None else high, patient, split)

    def _number(self, name: str, row: Mapping[str, str], column: str) -> int | None:
        text = _cell(row, column)
        if is_unknown(text):
            return None
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 <= number < MANY or number != int(number):
            raise CohortError(
                f"{self.path}: expected a whole number of at least 0, or n/a, as {column} of {name}, but got "
                f"{_short(text)}."
            )
        return int(number)


def _table(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    columns, rows = read_cells(path)
    twice = [name for name in columns if name and columns.count(name) > 1]
    if twice:
        raise CohortError(f"{path} has more than one column {twice[0]!r}. Rename or remove all but one.")
    for row in rows:
        if None in row:
            raise CohortError(f"{path}: a row has more cells than the header: {_short(str(list(row.values())))}.")
    return columns, rows


def _cell(row: Mapping[str, str], column: str) -> str:
    """What is in a cell; nothing, if the row is too short for it."""
    return (row.get(column) or "").strip()


def _without_ending(cell: str) -> str:
    name = cell.replace("\\", "/").removeprefix("./")
    return name[: len(name) - len(picture_ending(Path(name)) or "")]


def _missing_column(path: Path, column: str, columns: Sequence[str], key: str) -> str:
    return (
        f"Expected a column {column!r} in {path}, but its columns are {', '.join(columns)[:400] or 'none'}. If one of "
        f'them is meant, name it in [data]: {key} = "…"'
    )


def _short(text: str) -> str:
    return repr(text[:_LONGEST_SHOWN])

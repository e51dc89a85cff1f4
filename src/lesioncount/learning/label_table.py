"""A table with a row for each picture: how many lesions it has, whose it is, and which part it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lesioncount.cohort.tables import Table, TableRow
from lesioncount.errors import CohortError
from lesioncount.learning.pictures import picture_ending
from lesioncount.learning.scans import MANY
from lesioncount.learning.split import SPLITS

# Columns that have one name only.
_AT_LEAST, _AT_MOST, _SPLIT, _PATIENT = "at_least", "at_most", "split", "patient"

_ADVICE = 'If one of them is meant, name it in [data]: {} = "…"'

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
        table = Table.read(path, CohortError)
        counts = [one for one in (count_column, _AT_LEAST, _AT_MOST) if one in table.columns]
        table.check(scan_column, advice=_ADVICE.format("scan_column"))
        table.check(*(counts[:1] or [count_column]), advice=_ADVICE.format("count_column"))
        for column in (_AT_LEAST, _AT_MOST, _SPLIT, _PATIENT):
            table.check_once(column)
        self.path, self._count_column = path, count_column
        self._rows = table.by_name(scan_column, name_of=_without_ending)

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

    def _label(self, name: str, row: TableRow) -> Label:
        columns = (self._count_column, _AT_LEAST, _AT_MOST)
        count, low, high = (row.whole_number(column, name) for column in columns)
        least, most = low or 0, MANY if high is None else high
        patient, split = row.get(_PATIENT) or "", row.get(_SPLIT) or ""
        if split and split not in SPLITS:
            expected = f"{', '.join(SPLITS)} or n/a as split of {name}"
            raise row.wrong(f"expected {expected}, but got {split[:_LONGEST_SHOWN]!r}.")
        if count is not None and not least <= count <= most:
            raise row.wrong(f"count, at_least and at_most of {name} contradict each other.")
        if least > most:
            raise row.wrong(f"at_least of {name} is above at_most.")
        if count is not None:
            return Label(count, count, patient, split)
        is_known = low is not None or high is not None
        return Label(least, most, patient, split) if is_known else Label(patient=patient, split=split)


def _without_ending(cell: str) -> str:
    name = cell.replace("\\", "/").removeprefix("./")
    return name[: len(name) - len(picture_ending(Path(name)) or "")]

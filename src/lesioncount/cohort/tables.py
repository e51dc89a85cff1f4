"""A table that somebody has made of scans or patients: a row for each, found by any of its names."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from lesioncount.errors import LesionCountError, MapFileError, TruthError, reason_of
from lesioncount.folder.tables import without_apostrophe

# How tables write an unknown value.
_UNKNOWN = ("", "n/a", "na", "nan", "none")

# How the names of pictures end, whose maps have the same names without: tables of counts are often made of these.
_PICTURES = (
    ".png",
    ".jpg",
    ".jpeg",
    ".bmp",
    ".tif",
    ".tiff",
    ".nii.gz",
    ".nii",
    ".PNG",
    ".JPG",
    ".JPEG",
    ".TIF",
    ".TIFF",
)


def is_unknown(cell: str) -> bool:
    """Whether a cell of a table says nothing."""
    return cell.strip().lower() in _UNKNOWN


@dataclass(frozen=True)
class ScanTable:
    """A table with a row per scan, or per patient.

    Attributes
    ----------
    path : Path
    rows : mapping of str to (mapping of str to str)
        By what is in the first column that matters: the name of a scan, or that of a patient.
    scan_column : str
        That column.
    columns : tuple of str
    """

    path: Path
    rows: Mapping[str, Mapping[str, str]]
    scan_column: str = "scan"
    columns: tuple[str, ...] = ()

    complaint: ClassVar[type[LesionCountError]] = TruthError

    @classmethod
    def read(cls, path: Path, *, scan_column: str, needed: Iterable[str] = (), advice: str = "") -> Self:
        """Read a table, separated by tabs, commas or semicolons.

        Parameters
        ----------
        path : Path
        scan_column : str
            With the names of scans or patients, each of which has one row.
        needed : iterable of str
            Other columns that must be there.
        advice : str
            What to do if one is not.
        """
        names, content = read_cells(path)
        for column in (scan_column, *needed):
            if column not in names:
                columns = ", ".join(names) or "none"
                raise cls.complaint(f"Expected a column {column!r} in {path}, but its columns are {columns}. {advice}")
            cls.check_once(column, names, path)
        rows: dict[str, dict[str, str]] = {}
        for row in content:
            if None in row or None in row.values():
                raise cls.complaint(
                    f"{path}: the row of {row.get(scan_column)!r} does not have as many cells as the header."
                )
            name = without_apostrophe(row[scan_column].strip())
            if name in rows:
                raise cls.complaint(f"{path}: {name!r} has more than one row.")
            rows[name] = row
        return cls(path, rows, scan_column, tuple(names))

    @classmethod
    def check_once(cls, column: str, columns: Sequence[str], path: Path) -> None:
        """Raise if there are two columns of this name."""
        if list(columns).count(column) > 1:
            raise cls.complaint(f"{path} has more than one column {column!r}. Rename or remove all but one.")

    def check_each_has_its_own(self, scans: Iterable[Sequence[str]]) -> None:
        """Raise if one row would serve two scans, such as ``map`` for ``a/map.nii`` and ``b/map.nii``."""
        owners: dict[str, str] = {}
        for names in scans:
            row = self._key(*names)
            if row is None:
                continue
            if row in owners:
                raise self.complaint(
                    f"{self.path}: the row {row!r} would serve both {owners[row]} and {names[0]}. Give each scan a row "
                    "of its own, under the name that it has in counts.tsv."
                )
            owners[row] = names[0]

    def cell(self, column: str, *names: str) -> str | None:
        """What a column says of a scan or a patient under one of these names; None if nothing."""
        cell = self.row(*names).get(column, "").strip()
        return None if is_unknown(cell) else cell

    def row(self, *names: str) -> Mapping[str, str]:
        """The row under one of these names; empty if there is none."""
        key = self._key(*names)
        return {} if key is None else self.rows[key]

    def _key(self, *names: str) -> str | None:
        """Under which of its names a scan is in the table, or under that of its picture."""
        keys = (*names, *(f"{name}{ending}" for name in names for ending in _PICTURES))
        return next((key for key in keys if key in self.rows), None)


def read_cells(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """The names of the columns of a table, and its rows that are not empty."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            first = stream.readline()
            stream.seek(0)
            reader = csv.DictReader(stream, delimiter="\t" if "\t" in first else ";" if ";" in first else ",")
            reader.fieldnames = names = [name.strip() for name in reader.fieldnames or ()]
            content = [
                row for row in reader if any(cell and cell.strip() for cell in row.values() if isinstance(cell, str))
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise MapFileError(f"The table {path} cannot be read: {reason_of(error)}.") from None
    return names, content

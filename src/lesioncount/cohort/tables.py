"""Tables that people write: of scans or patients, of pairs of scans, of names of regions."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from lesioncount.errors import LesionCountError, MapFileError, RegionError, TruthError, reason_of
from lesioncount.files.formats import map_ending
from lesioncount.folder.tables import without_apostrophe
from lesioncount.regions.region_names import checked_name

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


# What the columns may be called, in lower case: first as BIDS has it.
_INDEX, _NAME = ("index", "label", "id"), ("name", "region")

# Larger labels than any atlas has; arrays can hold them.
_LARGEST, _LONGEST = (1 << 31) - 1, 12


def read_region_names(path: Path) -> dict[int, str]:
    """The names of labels in a table separated by tabs, commas or semicolons; several labels may share a name.

    Parameters
    ----------
    path : Path
        A table with the columns ``index`` and ``name``, as ``dseg.tsv`` in BIDS; ``label`` or ``id`` and ``region``
        will do. What label 0 is called does not matter.
    """
    header, rows = _read(path)
    index, name = (_column(path, header, names) for names in (_INDEX, _NAME))
    names: dict[int, str] = {}
    for row in rows:
        if len(row) <= max(index, name):
            raise RegionError(f"{path}: the row {row[0]!r:.60} … does not have as many cells as the header.")
        label = _label(path, row[index])
        if label in names:
            raise RegionError(f"{path}: label {label} has more than one row. Remove all but one.")
        names[label] = _name(path, row[name], label)
    if not names:
        raise RegionError(f"Expected the names of regions in {path}, but it has no rows.")
    return {label: text for label, text in names.items() if label != 0}


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            first = stream.readline()
            stream.seek(0)
            reader = csv.reader(stream, delimiter="\t" if "\t" in first else ";" if ";" in first else ",")
            rows = [row for row in reader if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RegionError(f"The table of regions {path} cannot be read: {reason_of(error)}.") from None
    return ([cell.strip().lower() for cell in rows[0]], rows[1:]) if rows else ([], [])


def _column(path: Path, header: Sequence[str], names: Sequence[str]) -> int:
    """Which column has one of these names: the first of them that there is."""
    for name in names:
        if list(header).count(name) > 1:
            raise RegionError(f"{path} has more than one column {name!r}. Rename or remove all but one.")
        if name in header:
            return header.index(name)
    raise RegionError(
        f"Expected a column {names[0]!r} in {path}, but its columns are {', '.join(header)[:200] or 'none'}. It must "
        f"have {_INDEX[0]!r}, the label in the map, and {_NAME[0]!r}."
    )


def _label(path: Path, cell: str) -> int:
    text = cell.strip()
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > _LONGEST or int(digits) > _LARGEST:
        raise RegionError(f"{path}: expected the label of a region, a whole number, but got {text!r:.60}.")
    return int(text)


def _name(path: Path, cell: str, label: int) -> str:
    if label == 0:
        return cell
    try:
        return checked_name(without_apostrophe(cell.strip()))
    except RegionError as error:
        raise RegionError(f"{path}, label {label}: {error}") from None

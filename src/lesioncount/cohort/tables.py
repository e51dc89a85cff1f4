"""Tables that people write: one reader for all of them, and those of scans, of pairs of scans, of names of regions."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from lesioncount.checks import MOST_LESIONS
from lesioncount.errors import LesionCountError, MapFileError, RegionError, reason_of
from lesioncount.files.formats import map_ending
from lesioncount.folder.tables import without_apostrophe
from lesioncount.regions.region_names import checked_name

# How tables write an unknown value.
_UNKNOWN = ("", "n/a", "na", "nan", "none")

# Of a cell, and of the names of columns, that a message repeats.
_LONGEST_SHOWN, _LONGEST_HEADER = 80, 400

# As people and spreadsheets write numbers: 12, 12.0, 1E+3. Python reads more, such as 1_000 and digits of any script.
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)

# How the names of pictures end, whose maps have the same names without: tables of counts are often made of these.
PICTURES = (
    ".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".nii.gz", ".nii", ".PNG", ".JPG", ".JPEG", ".TIF", ".TIFF",
)  # fmt: skip


@dataclass(frozen=True)
class TableRow:
    """One row of a table.

    Attributes
    ----------
    path : Path
        Of the table.
    line : int
        Where the row begins in the file, counted from 1.
    cells : mapping of str to str
        By column, without blanks around them. A row that is too short lacks its last columns.
    error : type
        What is raised if a cell is not what it should be.
    """

    path: Path
    line: int
    cells: Mapping[str, str]
    error: type[LesionCountError]

    def get(self, column: str) -> str | None:
        """What a cell says; None if nothing: it is empty, ``n/a``, ``nan`` or ``none``, or not there."""
        cell = self.cells.get(column, "")
        return None if cell.lower() in _UNKNOWN else cell

    def needed(self, column: str) -> str:
        """What a cell says that must say something."""
        cell = self.get(column)
        if cell is None:
            raise self.wrong(f"the row has no {column}.")
        return cell

    def whole_number(self, column: str, name: str) -> int | None:
        """The count in a cell of what is called by this name; None if it says nothing."""
        text = self.get(column)
        if text is None:
            return None
        number = float(text) if _NUMBER.fullmatch(text) else -1.0
        if not 0 <= number <= MOST_LESIONS or number != int(number):
            expected = f"at most {MOST_LESIONS:,}" if number > MOST_LESIONS else "at least 0, or n/a,"
            raise self.wrong(
                f"expected a whole number of {expected} as {column} of {name}, but got {text[:_LONGEST_SHOWN]!r}."
            )
        return int(number)

    def wrong(self, what: str) -> LesionCountError:
        """The error to raise, which says where in the table something is wrong."""
        return self.error(f"{self.path}, line {self.line}: {what}")


@dataclass(frozen=True)
class Table:
    """A table with a header: separated by tabs, semicolons or commas, and perhaps quoted, as spreadsheets write them.

    Attributes
    ----------
    path : Path
    columns : tuple of str
    rows : tuple of TableRow
        Those that are not empty.
    error : type
        What is raised if the table is not what it should be.
    """

    path: Path
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    error: type[LesionCountError]

    @classmethod
    def read(cls, path: Path, error: type[LesionCountError], /, *, lower: bool = False) -> Self:
        """Read a table; a `MapFileError` if the file cannot be read. With ``lower``, names of columns in lower case."""
        try:
            lines = list(_lines(_text(path.read_bytes())))
        except (OSError, UnicodeDecodeError, csv.Error) as problem:
            raise MapFileError(f"The table {path} cannot be read: {reason_of(problem)}.") from None
        header = lines[0][1] if lines else []
        columns = tuple(name.lower() if lower else name for name in header)
        rows = []
        for line, cells in lines[1:]:
            row = TableRow(path, line, dict(zip(columns, cells, strict=False)), error)
            if any(cells[len(columns) :]):
                raise row.wrong(f"a row has more cells than the header: {str(cells)[:_LONGEST_SHOWN]}.")
            rows.append(row)
        return cls(path, columns, tuple(rows), error)

    def check(self, *needed: str, advice: str = "") -> None:
        """Raise unless there is one column of each of these names, and each row reaches it."""
        for column in needed:
            if column not in self.columns:
                shown = ", ".join(self.columns)[:_LONGEST_HEADER] or "none"
                raise self.error(
                    f"Expected a column {column!r} in {self.path}, but its columns are {shown}. {advice}".rstrip()
                )
            self.check_once(column)
            for row in self.rows:
                if column not in row.cells:
                    raise row.wrong(f"the row has no {column}: it does not have as many cells as the header.")

    def check_once(self, column: str) -> None:
        """Raise if there are two columns of this name."""
        if self.columns.count(column) > 1:
            raise self.error(f"{self.path} has more than one column {column!r}. Rename or remove all but one.")

    def by_reader(self, scans: str, readers: str, counts: str) -> tuple[Self, tuple[str, ...]]:
        """One row per scan from one row per scan and reader, and the columns that hold the counts of the readers.

        Parameters
        ----------
        scans, readers, counts : str
            The columns with the names of scans and of readers, and with what was counted.
        """
        self.check(scans, readers, counts)
        columns = {name: f"{counts} by {name}" for row in self.rows if (name := row.get(readers)) is not None}
        first: dict[str, TableRow] = {}
        cells: dict[str, dict[str, str]] = {}
        for row in self.rows:
            scan, column = row.cells[scans], columns[row.needed(readers)]
            of_scan = cells.setdefault(scan, {**first.setdefault(scan, row).cells})
            if column in of_scan:
                raise row.wrong(f"{scan!r} has more than one row of the reader {row.cells[readers]!r}.")
            of_scan[column] = row.cells[counts]
        rows = tuple(replace(row, cells=cells[scan]) for scan, row in first.items())
        return replace(self, columns=(*self.columns, *columns.values()), rows=rows), tuple(columns.values())

    def by_name(self, column: str, /, *, name_of: Callable[[str], str] = str) -> dict[str, TableRow]:
        """The rows by the name in a column, of which each has one row."""
        rows: dict[str, TableRow] = {}
        for row in self.rows:
            name = name_of(row.cells[column])
            if not name:
                raise row.wrong(f"the row has no {column}.")
            if name in rows:
                raise row.wrong(f"{name!r} has more than one row; the first is in line {rows[name].line}.")
            rows[name] = row
        return rows


def _text(content: bytes) -> str:
    """UTF-8; or UTF-16 with a mark that says so, as spreadsheets write "Unicode text"."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = content.decode("utf-16")
        if "\n" in text or "\r" in text:  # a table has lines
            return text
    return content.decode("utf-8-sig")


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Where each line that is not empty begins, and its cells."""
    header = re.sub(r'"[^"]*"', "", next((line for line in io.StringIO(text) if line.strip()), ""))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=next((one for one in "\t;" if one in header), ","))
    begin = 1
    for cells in reader:
        plain = [without_apostrophe(cell.strip()) for cell in cells]
        if any(plain):
            yield begin, plain
        begin = reader.line_num + 1


@dataclass(frozen=True)
class ScanTable:
    """A table with a row per scan, or per patient.

    Attributes
    ----------
    table : Table
    scan_column : str
        The column with the name of the scan, or that of the patient.
    rows : mapping of str to TableRow
        By what is in that column.
    keys : mapping of str to str
        What scans are called there whose names differ in their ends (`table_names.named_rows`), by the first name.
    """

    table: Table
    scan_column: str
    rows: Mapping[str, TableRow]
    keys: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table, scan_column: str, *needed: str, advice: str = "") -> Self:
        """From a table in which each scan or patient has one row.

        Parameters
        ----------
        table : Table
        scan_column : str
            With the names of scans or patients.
        *needed : str
            Other columns that must be there.
        advice : str
            What to do if one is not.
        """
        table.check(scan_column, *needed, advice=advice)
        return cls(table, scan_column, table.by_name(scan_column))

    @property
    def path(self) -> Path:
        """The file that it was read from."""
        return self.table.path

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return self.table.columns

    def check_each_has_its_own(self, scans: Iterable[Sequence[str]]) -> None:
        """Raise if one row would serve two scans, such as ``map`` for ``a/map.nii`` and ``b/map.nii``."""
        owners: dict[str, str] = {}
        for names in scans:
            key = self._key(*names)
            if key is None:
                continue
            if key in owners:
                raise self.rows[key].wrong(
                    f"the row {key!r} would serve both {owners[key]} and {names[0]}. Give each scan a row of its own, "
                    "under the name that it has in counts.tsv."
                )
            owners[key] = names[0]

    def cell(self, column: str, *names: str) -> str | None:
        """What a column says of a scan or a patient under one of these names; None if nothing."""
        row = self.row(*names)
        return None if row is None else row.get(column)

    def row(self, *names: str) -> TableRow | None:
        """The row under one of these names."""
        key = self._key(*names)
        return None if key is None else self.rows[key]

    def _key(self, *names: str) -> str | None:
        """Under which of its names a scan is in the table, or under that of its picture."""
        if names and names[0] in self.keys:
            return self.keys[names[0]]
        keys = (*names, *(f"{name}{ending}" for name in names for ending in PICTURES))
        return next((key for key in keys if key in self.rows), None)


@dataclass(frozen=True)
class PairRow:
    """One row: two maps, and whose they are if the table says so."""

    baseline: Path
    followup: Path
    participant: str | None = None


def read_pairs(path: Path) -> list[PairRow]:
    """Read the pairs; paths are as they are, or begin at the folder of the table."""
    table = Table.read(path, MapFileError)
    table.check("baseline", "followup")
    table.check_once("participant_id")
    if not table.rows:
        raise MapFileError(f"{path} has no pairs.")
    return [
        PairRow(_existing(row, "baseline"), _existing(row, "followup"), row.get("participant_id")) for row in table.rows
    ]


def _existing(row: TableRow, column: str) -> Path:
    given = Path(row.needed(column))
    path = next((one for one in (row.path.parent / given, given) if one.exists()), None)
    if path is None:
        raise row.wrong(f"the {column} {given} does not exist, neither as it is nor beside the table.")
    if path.is_dir() and map_ending(path) is None:
        raise row.wrong(f"the {column} {given} is a folder. Expected the path of one map.")
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
    table = Table.read(path, RegionError, lower=True)
    index, name = (next((one for one in names if one in table.columns), names[0]) for names in (_INDEX, _NAME))
    table.check(index, name, advice=f"It must have {_INDEX[0]!r}, the label in the map, and {_NAME[0]!r}.")
    names: dict[int, str] = {}
    for row in table.rows:
        label = _label(row, index)
        if label in names:
            raise row.wrong(f"label {label} has more than one row. Remove all but one.")
        names[label] = _name(row, name, label)
    if not names:
        raise RegionError(f"Expected the names of regions in {path}, but it has no rows.")
    return {label: text for label, text in names.items() if label != 0}


def _label(row: TableRow, column: str) -> int:
    text = row.cells[column]
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > _LONGEST or int(digits) > _LARGEST:
        raise row.wrong(f"expected the label of a region, a whole number, but got {text!r:.60}.")
    return int(text)


def _name(row: TableRow, column: str, label: int) -> str:
    if label == 0:
        return row.cells[column]
    text = row.needed(column)
    try:
        return checked_name(text)
    except RegionError as error:
        raise row.wrong(f"label {label}: {error}") from None

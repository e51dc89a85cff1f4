"""A table of regions, as beside a segmentation in BIDS → the names of labels."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from lesioncount.errors import RegionError, reason_of
from lesioncount.folder.tables import without_apostrophe
from lesioncount.regions.region_names import checked_name

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

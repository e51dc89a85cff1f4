"""Which column of a table names the scans, and which row is whose, also where names differ in their ends."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath, PurePosixPath

from lesioncount.cohort.names import name_of, shown_name
from lesioncount.cohort.tables import PICTURES, Table
from lesioncount.errors import LesionCountError
from lesioncount.files.formats import scan_name

# What columns are called where nobody says it.
SCAN, COUNT, PAIR, READER = "scan", "count", "pair", "reader"
_COUNTS = (COUNT, "counts", "n", "number", "n_lesions", "lesions", "cells", "nuclei", "objects")

# Columns of the two sessions of a pair, of a participant, in the tables of changes that this package writes.
_PARTICIPANT, _SESSIONS = "participant_id", (("baseline", "followup"), ("before", "after"))

# The ending of any file.
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}$")

# A digit or a letter is inside a name; names end before anything else.
_END = re.compile(r"[^A-Za-z0-9]")

# Names that a message repeats.
_SHOWN = 3


def names_in_tables(name: str, path: PurePath, relative: str | None, ids: Sequence[str]) -> tuple[str, ...]:
    """Names that a scan may have in a table.

    Parameters
    ----------
    name : str
        In results.
    path : path
        Of its map.
    relative : str or None
        The same below the folder that was given.
    ids : sequence of str
        Participant and session, as far as they are known.
    """
    of_whom = ["_".join(ids), ids[0]] if ids else []
    names = (name, scan_name(path), shown_name(name), *([] if relative is None else [relative]), *of_whom)
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True)
class NamedRows:
    """The column of a table that names scans, and what each is called there.

    Attributes
    ----------
    column : str
    keys : mapping of str to str
        By the name of a scan in results, what its row has in that column.
    more, instead : str
        What the names of all maps end in, and those in the table in its place.
    """

    column: str
    keys: Mapping[str, str] = field(default_factory=dict)
    more: str = ""
    instead: str = ""

    @property
    def in_words(self) -> str:
        """How names were found."""
        ends = ""
        if self.more or self.instead:
            ends = f" (there they end in {self.instead!r}, not in {self.more!r})" if self.instead else ""
            ends = ends or f" (there without {self.more!r})"
        return f"the column {self.column!r}{ends}"


def with_pairs(table: Table) -> Table:
    """The same table; if it has participants and two sessions of each, also with a column of what pairs are called."""
    both = next((pair for pair in _SESSIONS if {_PARTICIPANT, *pair} <= {*table.columns}), None)
    if both is None or PAIR in table.columns:
        return table
    rows = []
    for row in table.rows:
        names = [row.get(column) for column in (_PARTICIPANT, *both)]
        called = "" if None in names else "__".join(name_of(PurePosixPath(str(name))) for name in names)
        rows.append(replace(row, cells={**row.cells, PAIR: called}))
    return replace(table, columns=(*table.columns, PAIR), rows=tuple(rows))


def named_rows(
    table: Table, scans: Sequence[Sequence[str]], *, column: str | None = None, suffix: str = ""
) -> NamedRows:
    """Find the column that names most of some scans.

    Parameters
    ----------
    table : Table
    scans : sequence of sequence of str
        What each may be called, first its name in results, then that of its file (`names_in_tables`).
    column : str, optional
        Default: the best one, with one called ``scan`` or ``pair`` before others that are as good.
    suffix : str
        What names in the table end in that those of maps do not have, or have in place of their last part.
    """
    if column is not None:
        table.check(column, advice="Name it with --scan-column.")
    tried = (
        [column]
        if column is not None
        else sorted(dict.fromkeys(table.columns), key=lambda one: (one != SCAN, one != PAIR))
    )
    found = [_rows_by(table, one, scans, suffix) for one in tried]
    best = max(found, key=lambda one: len(one.keys), default=NamedRows(SCAN))
    if column is None and not best.keys and SCAN not in table.columns:
        raise _nowhere(table, scans)
    return best


def count_columns(table: Table, names: str, column: str | None = None, *, of: str = "lesions") -> tuple[str, ...]:
    """The columns of counts, one for each reader.

    The one that is named, or several with commas between them; the one that is called so; those of whole numbers that
    begin with ``reader``; or the only one of whole numbers. The number of new lesions (``of="new"``) may also be called
    ``n_new`` or ``new``.
    """
    advice = "Name them with --scan-column and --count-column."
    if column is not None:
        named = (column,) if column in table.columns else tuple(one.strip() for one in column.split(","))
        table.check(*named, advice=advice)
        return named
    others = [one for one in dict.fromkeys(table.columns) if one and one != names]
    usual = _COUNTS if of == "lesions" else (f"n_{of}", of, *_COUNTS)
    called = [one for one in others if one.lower() in usual]
    if called:
        best = min(called, key=lambda one: usual.index(one.lower()))
        table.check(best)
        return (best,)
    numbers = [one for one in others if _are_counts(row.get(one) for row in table.rows)]
    of_readers = tuple(one for one in numbers if one.lower().startswith(READER))
    if len(numbers) == 1 or len(of_readers) > 1:
        found = of_readers if len(of_readers) > 1 else tuple(numbers)
        table.check(*found)
        return found
    if not numbers:
        table.check(COUNT, advice=advice)
    raise table.error(
        f"Which column of {table.path} has the counts? {', '.join(numbers)} have whole numbers. Name it with "
        "--count-column, or those of several readers: --count-column A,B."
    )


def _are_counts(cells: Iterable[str | None]) -> bool:
    known = [cell for cell in cells if cell is not None]
    return bool(known) and all(cell.isascii() and cell.isdecimal() for cell in known)


def _rows_by(table: Table, column: str, scans: Sequence[Sequence[str]], suffix: str) -> NamedRows:
    cells = list(dict.fromkeys(cell for row in table.rows if (cell := row.get(column)) is not None))
    by_name: dict[str, str | None] = {}
    for cell in cells:
        for name in _names_of(cell):
            by_name[name] = cell if name not in by_name or name == cell else None  # two of one name are none
    exact = {names[0]: key for names in scans if (key := _first(by_name, names)) is not None}
    best = NamedRows(column, exact)
    stems = {names[0]: names[min(1, len(names) - 1)] for names in scans}
    short = {cell: [*_names_of(cell)][-1] for cell in cells}
    for instead in [suffix] if suffix else _tails(list(short.values())):
        by_stem: dict[str, list[str]] = {}
        for cell, stem in short.items():
            if stem.endswith(instead):
                by_stem.setdefault(stem.removesuffix(instead), []).append(cell)
        for more in _tails(list(stems.values())):
            cut = {name: stem.removesuffix(more) for name, stem in stems.items()}
            keys = {name: of[0] for name, stem in cut.items() if len(of := by_stem.get(stem, [])) == 1}
            if len(keys) > len(best.keys):
                best = NamedRows(column, keys, more, instead)
    return best


def _first(by_name: Mapping[str, str | None], names: Sequence[str]) -> str | None:
    keys = (*names, *(f"{name}{ending}" for name in names for ending in PICTURES))
    return next((found for key in keys if (found := by_name.get(key)) is not None), None)


def _names_of(cell: str) -> dict[str, None]:
    """A cell as it is, without folders, and without its ending."""
    file = cell.replace("\\", "/").rpartition("/")[2]
    stem = scan_name(PurePosixPath(file or cell))
    return dict.fromkeys((cell, file or cell, _ENDING.sub("", stem) or cell))


def _tails(names: Sequence[str]) -> list[str]:
    """What all names end in, from where a word begins, and nothing: the shortest first."""
    if len(names) < 2:
        return [""]
    common = os.path.commonprefix([name[::-1] for name in names])[::-1]  # noqa: RUF071 - texts, letter by letter
    return ["", *(common[found.start() :] for found in reversed([*_END.finditer(common)]))]


def _nowhere(table: Table, scans: Sequence[Sequence[str]]) -> LesionCountError:
    """What to say if no column names any scan."""
    shown = ", ".join(table.columns)[:400] or "none"
    names = ", ".join(names[:2][-1] for names in scans[:_SHOWN])
    cells = ", ".join(list(table.rows[0].cells.values())[:_SHOWN]) if table.rows else "no row"
    return table.error(
        f"Expected a column {SCAN!r} in {table.path}, but its columns are {shown}, and none of them names any of the "
        f"scans ({names}, …); its first row is {cells}. Name the column with --scan-column."
    )

"""Scans and a table, named or found beside the maps → groups: who belongs to which, and how long each was followed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.truth import some
from lesioncount.cohort.tables import ScanTable, Table
from lesioncount.cohort.whose import label_of
from lesioncount.errors import GroupError
from lesioncount.results.counts_of import CountedSubject

# A column with more values than this is no group: an age, or a name.
_MOST_GROUPS = 50

# Columns of our own tables.
_TAKEN = ("imputation", "scan", "pair", "participant_id", "count", "exposure")


@dataclass(frozen=True)
class GroupOptions:
    """How groups are made.

    Attributes
    ----------
    by : tuple of str
        Columns whose values make the groups; of several, their combinations do.
    participants : Path, optional
        The table. Default: the ``participants.tsv`` in or above the folders of the maps, if there is one.
    exposure : str, optional
        Column of what rates are per, such as years of follow-up.
    reference : tuple of str, optional
        The group that others are divided by: a value for each column. Default: the first in alphabetical order.
    skip_missing : bool
        Leave out scans that have no group or exposure. Otherwise they are an error.
    """

    by: tuple[str, ...]
    participants: Path | None = None
    exposure: str | None = None
    reference: tuple[str, ...] | None = None
    skip_missing: bool = False

    def __post_init__(self) -> None:
        if not self.by:
            raise GroupError("Expected at least one column to group by (--by).")
        for column in self.by:
            if column in _TAKEN or self.by.count(column) > 1:
                why = "a column of our own tables" if column in _TAKEN else "there more than once"
                raise GroupError(f"{column!r} cannot be grouped by: it is {why}. Choose or rename another (--by).")
        if self.reference is not None and len(self.reference) != len(self.by):
            raise GroupError(
                f"Expected a reference with a value for each of {', '.join(self.by)} (--reference), but got "
                f"{' '.join(self.reference) or 'none'}."
            )


@dataclass(frozen=True, eq=False)
class Grouped:
    """Scans, each in its group.

    Attributes
    ----------
    subjects : tuple of CountedSubject
    levels : tuple of (tuple of str)
        Values of the columns that make each group; the reference is first.
    group : array of int
        Of each scan, the place of its group among the levels.
    patients : tuple of str
        Whose scan each is.
    exposure : array of float or None
    table : Path or None
    n_skipped : int
        Scans that have no group, and were left out.
    n_nobodys : int
        Scans of which it is not known whose they are: each counts as a patient of its own.
    """

    subjects: tuple[CountedSubject, ...]
    levels: tuple[tuple[str, ...], ...]
    group: NDArray[np.intp]
    patients: tuple[str, ...]
    exposure: NDArray[np.float64] | None = None
    table: Path | None = None
    n_skipped: int = 0
    n_nobodys: int = 0


def grouped(subjects: Sequence[CountedSubject], options: GroupOptions) -> Grouped:
    """Find the group of each scan."""
    asked = (*options.by, *(() if options.exposure is None else (options.exposure,)))
    table = group_table(subjects, asked, options.participants)
    known, levels, exposure = _known(subjects, table, options)
    order = _ordered(set(levels), options)
    owners = [_owner(subject, table) for subject in known]
    return Grouped(
        tuple(known),
        order,
        np.array([order.index(level) for level in levels], dtype=np.intp),
        tuple(subject.name if owner is None else owner for subject, owner in zip(known, owners, strict=True)),
        None if options.exposure is None else np.array(exposure),
        None if table is None else table.path,
        len(subjects) - len(known),
        owners.count(None),
    )


def _known(
    subjects: Sequence[CountedSubject], table: GroupTable | None, options: GroupOptions
) -> tuple[list[CountedSubject], list[tuple[str, ...]], list[float]]:
    """The scans of which all is known that was asked for, with their groups and exposures."""
    known, levels, exposures = [], [], []
    missing: list[str] = []
    for subject in subjects:
        level = [_value(column, subject, table) for column in options.by]
        exposure = 1.0 if options.exposure is None else _exposure(subject, table, options.exposure)
        if None in level or exposure is None:
            missing.append(subject.name)
            continue
        known.append(subject)
        levels.append(tuple(str(value) for value in level))
        exposures.append(exposure)
    if missing and (not options.skip_missing or not known):
        _complain(missing, table, options)
    if options.exposure is not None and table is not None and not table.is_of_scans:
        _check_once_each(known, table, options.exposure)
    return known, levels, exposures


def _value(column: str, subject: CountedSubject, table: GroupTable | None) -> str | None:
    if table is not None and column in table.columns:
        return table.value(column, subject)
    return subject.session  # the only column that a table need not have


def _exposure(subject: CountedSubject, table: GroupTable | None, column: str) -> float | None:
    text = None if table is None else table.value(column, subject)
    if text is None or table is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise GroupError(f"{table.path}: expected {column!r} of {subject.name} to be above 0, but got {text!r}.")
    return value


def _complain(missing: Sequence[str], table: GroupTable | None, options: GroupOptions) -> None:
    columns = ", ".join([*options.by, *([] if options.exposure is None else [options.exposure])])
    n, where = len(missing), "their names" if table is None else str(table.path)
    there = "" if table is None else f" It holds: {some(sorted(table.rows))}."
    raise GroupError(
        f"There is no {columns} for {n} scan{'' if n == 1 else 's'} in {where}: {some(missing)}.{there} Add them, or "
        "leave them out (--skip-missing)."
    )


def _check_once_each(subjects: Iterable[CountedSubject], table: GroupTable, column: str) -> None:
    """Raise if an exposure of a patient would be that of several scans: it would count several times."""
    seen: set[str | None] = set()
    for subject in subjects:
        who = label_of(subject.participant)
        if who is not None and who in seen:
            raise GroupError(
                f"{subject.participant} has several scans, but {table.path} has one {column!r} for all of them. Give a "
                "table with a row per scan (column 'scan') that says how long each was the follow-up of."
            )
        seen.add(who)


def _ordered(levels: set[tuple[str, ...]], options: GroupOptions) -> tuple[tuple[str, ...], ...]:
    """All groups in alphabetical order, but the reference first."""
    order = sorted(levels)
    names = some([" ".join(level) for level in order])
    if len(order) > _MOST_GROUPS:
        raise GroupError(
            f"{', '.join(options.by)} would make {len(order)} groups: {names}. Expected at most {_MOST_GROUPS}: group "
            "by a column with few values."
        )
    first = options.reference
    if first is None:
        return tuple(order)
    if first not in levels:
        raise GroupError(f"There is no group {' '.join(first)!r} to be the reference; the groups are {names}.")
    return (first, *(one for one in order if one != first))


def _owner(subject: CountedSubject, table: GroupTable | None) -> str | None:
    """Whose scan it is: as the table says it or, where that has no such column, as names say."""
    of_table = None if table is None or not table.is_of_scans else table.value("participant_id", subject)
    return of_table or subject.participant


# The column that a table need not have: names of scans may say it.
_SESSION = "session_id"

# Columns that make each row that of a scan, or of a pair.
_OF_SCANS = ("scan", "pair")

# The table of a BIDS dataset.
_NAME = "participants.tsv"


class GroupTable(ScanTable):
    """A table with a row per scan (column ``scan``), per pair (``pair``) or per patient (``participant_id``)."""

    @property
    def is_of_scans(self) -> bool:
        """Whether each row is a scan or a pair of them, and not a patient."""
        return self.scan_column in _OF_SCANS

    def value(self, column: str, subject: CountedSubject) -> str | None:
        """What it says of a scan, or of its patient."""
        names = subject.names if self.is_of_scans else (*subject.participant_names, *subject.names)
        return self.cell(column, *names)


def group_table(
    subjects: Sequence[CountedSubject], asked: Sequence[str], participants: Path | None
) -> GroupTable | None:
    """The table that the columns are in; none is needed to group by sessions, which names of scans say."""
    from_names = {_SESSION} if all(subject.session for subject in subjects) else set()
    if participants is None and set(asked) <= from_names:
        return None
    path = participants or _find(subjects)
    read = Table.read(path, GroupError)
    key = next((name for name in (*_OF_SCANS, "participant_id") if name in read.columns), None)
    if key is None:
        raise GroupError(
            f"Expected a column 'scan', 'pair' or 'participant_id' in {path}, but its columns are "
            f"{', '.join(read.columns) or 'none'}."
        )
    needed = [column for column in asked if column in read.columns or column not in from_names]
    advice = "Name columns of this table (--by, --exposure), or another table (--participants)."
    table = GroupTable.of(read, key, *needed, advice=advice)
    if table.is_of_scans:
        table.check_each_has_its_own(subject.names for subject in subjects)
    return table


def _find(subjects: Iterable[CountedSubject]) -> Path:
    """The only ``participants.tsv`` in or above the folders of the maps; an error if there is none, or several."""
    folders = {subject.folder for subject in subjects if subject.folder is not None}
    around = {above for folder in folders for above in (folder, *folder.parents)}
    found = sorted(folder / _NAME for folder in around if (folder / _NAME).is_file())
    if len(found) == 1:
        return found[0]
    what = (
        "are several: " + ", ".join(map(str, found)) if found else f"is no {_NAME} in or above the folders of the maps"
    )
    raise GroupError(
        f"Where are the groups? There {what}. Name the table, which has a column participant_id or scan: "
        "--participants FILE."
    )

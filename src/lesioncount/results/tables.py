"""The tables of a run and their rows: of however many scans or patients, no more than one record is at hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lesioncount.folder.plain import cells
from lesioncount.folder.tables import Rows
from lesioncount.results.answers import ANSWER_COLUMNS, OPTIONAL_ANSWER_COLUMNS
from lesioncount.results.count_warnings import void_notes
from lesioncount.results.lesion_rows import LESION_COLUMNS, OPTIONAL_LESION_COLUMNS, LesionRow
from lesioncount.results.record import Record
from lesioncount.results.record_parts import Count, SessionRecord
from lesioncount.results.recorded import KINDS
from lesioncount.results.region_numbers import OPTIONAL_REGION_COLUMNS, REGION_COLUMNS
from lesioncount.results.scan_numbers import (
    CALIBRATED,
    COUNT_COLUMNS,
    MEMBER_COLUMNS,
    OPTIONAL_COUNT_COLUMNS,
    WHOSE_COLUMNS,
    CountNumbers,
)

if TYPE_CHECKING:
    from lesioncount.results.results import Results  # which takes rows from here

Row = dict[str, Any]


@dataclass(frozen=True)
class RunTable:
    """A table of a run.

    Attributes
    ----------
    name : str
        Of its file.
    columns, optional : tuple of str
        All its columns, and those that are left out unless a row fills them.
    rows_of : callable
        Gives the rows of a record.
    needs_candidates : bool
        Whether they are made from single candidates, for which records are read once more.
    may_be_empty : bool
        Whether it is written without any row, too.
    """

    name: str
    columns: tuple[str, ...]
    optional: tuple[str, ...]
    rows_of: Callable[[Record], Iterable[Row]]
    needs_candidates: bool = False
    may_be_empty: bool = False

    def rows(self, results: Results) -> Rows:
        """What gives its rows, whenever it is called."""
        return lambda: (
            row
            for record in (results.records() if self.needs_candidates else results.entries)
            for row in self.rows_of(record)
        )

    def is_written(self, results: Results) -> bool:
        """Whether it has rows, or is written without."""
        return self.may_be_empty or next(iter(self.rows(results)()), None) is not None


def count_row(record: Record) -> Row:
    """The row of a scan in ``counts.tsv``; one that failed says why."""
    path = None if record.input is None else record.input.relative
    numbers = {} if record.count is None else cells(record.count)
    begin = {"scan": record.name, **record.whose, "path": path, "status": record.status}
    return {**begin, **numbers, **_noted(void_notes(record.warnings)), "error": record.error}


def lesion_rows_of(record: Record) -> Iterator[Row]:
    """A row for each candidate of a scan."""
    whose = {"scan": record.name, **record.whose}
    return ({**whose, **cells(lesion)} for lesion in record.lesions)


def member_rows(record: Record) -> Iterator[Row]:
    """A row for each member of an ensemble."""
    return ({"scan": record.name, **record.whose, **cells(member)} for member in record.members)


def region_rows(record: Record) -> Iterator[Row]:
    """A row for each region of a scan."""
    return ({"scan": record.name, **record.whose, **cells(region)} for region in record.regions)


def answer_rows(record: Record) -> Iterator[Row]:
    """A row for each question that was asked of a scan, or of each pair of sessions."""
    asked = [({"scan": record.name, **record.whose}, record.answers)]
    if record.is_of_changes:
        asked = [({"pair": pair.name, "patient": record.name, **record.whose}, pair.answers) for pair in record.pairs]
    return ({**whose, **answer.row()} for whose, answers in asked for answer in answers)


_SUMMARY = ("mode", "median", "mean", "sd", "interval90_low", "interval90_high", "p_any")
_GUARANTEED = ("interval90_low_conformal", "interval90_high_conformal")
_OPTIONAL_SUMMARY = (*(f"{name}{CALIBRATED}" for name in _SUMMARY), *_GUARANTEED)


def change_rows(record: Record) -> Iterator[Row]:
    """A row for each pair of sessions; one with the error, if the patient could not be compared."""
    whose = {"patient": record.name, **record.whose, "status": record.status}
    if not record.is_ok:
        yield {"pair": record.name, **whose, "error": record.error}
    for pair in record.pairs:
        before, after = record.sessions[pair.before], record.sessions[pair.after]
        counts = (_of_kind(kind, count) for kind, count in pair.counts.items())
        yield {
            "pair": pair.name,
            **whose,
            "before": before.session,
            "after": after.session,
            "n_candidates_before": pair.gone.count.n_candidates,
            "n_candidates_after": pair.new.count.n_candidates,
            **{name: value for count in counts for name, value in count.items()},
            "tolerance_mm": pair.tolerance_mm,
            "path_before": before.files.path,
            "path_after": after.files.path,
            **_noted([*record.notes, *_warned(before), *_warned(after)]),
        }


def _warned(session: SessionRecord) -> Iterator[str]:
    return (f"Session {session.session}: {note}" for note in void_notes(session.warnings))


def _noted(notes: Sequence[str]) -> Row:
    """A cell with sentences, where there are any."""
    return {"notes": " ".join(notes)} if notes else {}


def _of_kind(kind: str, count: Count) -> Row:
    numbers, guaranteed = count.numbers, count.numbers.guaranteed
    row = summary_cells(numbers.raw) | {"components": numbers.cc_count}
    if numbers.calibrated is not None:
        row |= {f"{name}{CALIBRATED}": value for name, value in summary_cells(numbers.calibrated).items()}
    if guaranteed is not None:
        row |= dict(zip(_GUARANTEED, guaranteed, strict=True))
    return {f"{kind}_{name}": value for name, value in row.items()}


def summary_cells(numbers: CountNumbers) -> Row:
    """A distribution in a few numbers, with the probability that there is any."""
    return {
        "mode": numbers.count_mode,
        "median": numbers.count_median,
        "mean": numbers.count_mean,
        "sd": numbers.count_sd,
        "interval90_low": numbers.interval90_low,
        "interval90_high": numbers.interval90_high,
        "p_any": 1 - numbers.p_0,
    }


def lineage_rows(record: Record) -> Iterator[Row]:
    """A row for each lineage and session: what is there of a lesion, also where there is nothing."""
    whose = {"patient": record.name, **record.whose}
    for lineage, by_session in lineages_of(record).items():
        for place, session in enumerate(record.sessions):
            change = None if place == 0 else change_in_words(len(by_session[place - 1]), len(by_session[place]))
            known = {"lineage": lineage, "session": session.session, "change": change}
            yield {**whose, **known, **_lineage_cells(by_session[place])}


def lineages_of(record: Record) -> dict[int, list[list[LesionRow]]]:
    """The candidates of each lesion, session by session."""
    members: dict[int, list[list[LesionRow]]] = defaultdict(lambda: [[] for _ in record.sessions])
    for place, session in enumerate(record.sessions):
        for lesion in session.lesions:
            members[lesion.lineage][place].append(lesion)
    return {lineage: members[lineage] for lineage in sorted(members)}


def change_in_words(n_before: int, n_after: int) -> str:
    """What has become of a lesion, given the number of its candidates before and after."""
    if n_before == 0 or n_after == 0:
        return {(False, False): "absent", (False, True): "new", (True, False): "gone"}[n_before > 0, n_after > 0]
    if n_before == 1:
        return "persisting" if n_after == 1 else "split"
    return "merged" if n_after == 1 else "rearranged"


def _lineage_cells(lesions: Sequence[LesionRow]) -> Row:
    row: Row = {
        "n_candidates": len(lesions),
        "labels": " ".join(str(one.label) for one in lesions),
        "existence": any_of([one.existence for one in lesions]),
        "expected": float(sum(one.existence for one in lesions)),
        "n_voxels": sum(one.n_voxels for one in lesions),
        "volume_mm3": total_of([one.volume_mm3 for one in lesions]),
    }
    if lesions:
        highest = max(lesions, key=lambda one: one.height)
        row |= {name: getattr(highest, name) for name in ("peak_x_mm", "peak_y_mm", "peak_z_mm")}
    for name in ("p_new", "p_persisting", "p_gone"):
        known = [value for one in lesions if (value := getattr(one, name)) is not None]
        row[name] = any_of(known) if known else None
    return row


def any_of(probabilities: Sequence[float]) -> float:
    """That at least one of several is true."""
    return float(1 - np.prod([1 - p for p in probabilities]))


def total_of(volumes: Sequence[float | None]) -> float | None:
    """The sum of volumes; None if one is not known."""
    return None if None in volumes else float(sum(one for one in volumes if one is not None))


# What a run of counts writes beside the records of its scans.
COUNT_TABLES = (
    RunTable("counts.tsv", COUNT_COLUMNS, OPTIONAL_COUNT_COLUMNS, lambda one: (count_row(one),), may_be_empty=True),
    RunTable(
        "lesions.tsv",
        ("scan", *WHOSE_COLUMNS, *LESION_COLUMNS),
        (*WHOSE_COLUMNS, *OPTIONAL_LESION_COLUMNS),
        lesion_rows_of,
        needs_candidates=True,
        may_be_empty=True,
    ),
    RunTable("members.tsv", MEMBER_COLUMNS, WHOSE_COLUMNS, member_rows),
    RunTable("regions.tsv", REGION_COLUMNS, OPTIONAL_REGION_COLUMNS, region_rows),
    RunTable(
        "answers.tsv",
        ("scan", *WHOSE_COLUMNS, *ANSWER_COLUMNS),
        (*WHOSE_COLUMNS, *OPTIONAL_ANSWER_COLUMNS),
        answer_rows,
    ),
)

# What a comparison writes beside the records of its patients.
_WHOSE = "participant_id"
CHANGE_TABLES = (
    RunTable(
        "changes.tsv",
        (
            "pair", "patient", _WHOSE, "before", "after", "status", "n_candidates_before", "n_candidates_after",
            *(f"{kind}_{name}" for kind in KINDS for name in (*_SUMMARY, *_OPTIONAL_SUMMARY, "components")),
            "tolerance_mm", "path_before", "path_after", "notes", "error",
        ),
        (_WHOSE, "notes", "error", *(f"{kind}_{name}" for kind in KINDS for name in _OPTIONAL_SUMMARY)),
        change_rows,
        may_be_empty=True,
    ),
    RunTable(
        "lineages.tsv",
        (
            "patient", _WHOSE, "lineage", "session", "change", "n_candidates", "labels", "existence", "expected",
            "n_voxels", "volume_mm3", "peak_x_mm", "peak_y_mm", "peak_z_mm", "p_new", "p_persisting", "p_gone",
        ),
        (_WHOSE,),
        lineage_rows,
        needs_candidates=True,
        may_be_empty=True,
    ),
    RunTable(
        "answers.tsv", ("pair", "patient", _WHOSE, *ANSWER_COLUMNS), (_WHOSE, *OPTIONAL_ANSWER_COLUMNS), answer_rows
    ),
)  # fmt: skip

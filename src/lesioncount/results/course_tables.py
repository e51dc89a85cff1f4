"""Records of courses → the rows of ``changes.tsv``, ``lineages.tsv`` and ``answers.tsv``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lesioncount.results.course_record import ChangeCount, CourseRecord, PairRecord
from lesioncount.results.course_settings import KINDS
from lesioncount.results.scan_numbers import CountNumbers
from lesioncount.results.session_rows import FollowedLesion
from lesioncount.results.tables import RunTable

if TYPE_CHECKING:
    from lesioncount.results.course_results import ChangeResults  # which takes rows from here

_SUMMARY = ("mode", "median", "mean", "sd", "interval90_low", "interval90_high", "p_any")
_OF_CALIBRATION = tuple(f"{name}_calibrated" for name in _SUMMARY)
_GUARANTEED = ("interval90_low_conformal", "interval90_high_conformal")

_BEGIN = ("pair", "patient", "participant_id", "before", "after", "status", "n_candidates_before", "n_candidates_after")
_OPTIONAL = tuple(f"{kind}_{name}" for kind in KINDS for name in (*_OF_CALIBRATION, *_GUARANTEED))
CHANGE_COLUMNS = (
    *_BEGIN,
    *(f"{kind}_{name}" for kind in KINDS for name in (*_SUMMARY, *_OF_CALIBRATION, *_GUARANTEED, "components")),
    "tolerance_mm", "path_before", "path_after", "notes", "error",
)  # fmt: skip
OPTIONAL_CHANGE_COLUMNS = ("participant_id", "notes", "error", *_OPTIONAL)

LINEAGE_COLUMNS = (
    "patient", "participant_id", "lineage", "session", "change", "n_candidates", "labels", "existence", "expected",
    "n_voxels", "volume_mm3", "peak_x_mm", "peak_y_mm", "peak_z_mm", "p_new", "p_persisting", "p_gone",
)  # fmt: skip
OPTIONAL_LINEAGE_COLUMNS = ("participant_id",)

ANSWER_COLUMNS = ("pair", "patient", "participant_id", "question", "name", "probability", "probability_calibrated")
OPTIONAL_ANSWER_COLUMNS = ("participant_id", "name", "probability_calibrated")


TABLES = ("changes.tsv", "lineages.tsv", "answers.tsv")


def tables_of(results: ChangeResults) -> tuple[RunTable, ...]:
    """The tables that a comparison may have."""

    def lineages() -> Iterator[dict[str, Any]]:
        return (row for record in results.records() for row in lineage_rows(record))

    def rows(of: Callable[[CourseRecord], Iterable[dict[str, Any]]]) -> Callable[[], Iterator[dict[str, Any]]]:
        return lambda: (row for course in results.courses for row in of(course))

    changes, lineage, answers = TABLES
    return (
        RunTable(changes, CHANGE_COLUMNS, OPTIONAL_CHANGE_COLUMNS, rows(change_rows), may_be_empty=True),
        RunTable(lineage, LINEAGE_COLUMNS, OPTIONAL_LINEAGE_COLUMNS, lineages, may_be_empty=True),
        RunTable(answers, ANSWER_COLUMNS, OPTIONAL_ANSWER_COLUMNS, rows(answer_rows)),
    )


def change_rows(record: CourseRecord) -> Iterator[dict[str, Any]]:
    """A row for each pair of sessions; one with the error, if the course could not be compared."""
    whose = _whose(record)
    if not record.is_compared:
        yield {"pair": record.name, **whose, "status": record.status, "error": record.error}
    for pair in record.pairs:
        before, after = record.sessions[pair.before], record.sessions[pair.after]
        yield {
            "pair": pair.name,
            **whose,
            "before": before.session,
            "after": after.session,
            "status": record.status,
            "n_candidates_before": pair.counts["gone"].numbers.candidates.n_candidates,
            "n_candidates_after": pair.counts["new"].numbers.candidates.n_candidates,
            **_cells(pair),
            "tolerance_mm": pair.tolerance_mm,
            "path_before": before.files.path,
            "path_after": after.files.path,
            **({"notes": " ".join(record.notes)} if record.notes else {}),
        }


def _cells(pair: PairRecord) -> dict[str, Any]:
    return {f"{kind}_{name}": value for kind in KINDS for name, value in _of_kind(pair.counts[kind]).items()}


def _of_kind(count: ChangeCount) -> dict[str, Any]:
    numbers = count.numbers
    cells = summary_cells(numbers.raw) | {"components": numbers.candidates.cc_count}
    if numbers.calibrated is not None:
        corrected = summary_cells(numbers.calibrated)
        cells |= {f"{name}_calibrated": value for name, value in corrected.items()}
    if numbers.guaranteed is not None:
        cells |= dict(zip(_GUARANTEED, numbers.guaranteed, strict=True))
    return cells


def summary_cells(numbers: CountNumbers) -> dict[str, Any]:
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


def answer_rows(record: CourseRecord) -> Iterator[dict[str, Any]]:
    """A row for each pair of sessions and question."""
    for pair in record.pairs:
        for answer in pair.answers:
            yield {"pair": pair.name, **_whose(record), **answer.row()}


def _whose(record: CourseRecord) -> dict[str, Any]:
    return {"patient": record.name, **({"participant_id": record.participant} if record.participant else {})}


def lineage_rows(record: CourseRecord) -> Iterator[dict[str, Any]]:
    """A row for each lineage and session: what is there of a lesion, also where there is nothing."""
    whose = _whose(record)
    members: dict[int, list[list[FollowedLesion]]] = defaultdict(lambda: [[] for _ in record.sessions])
    for place, session in enumerate(record.sessions):
        for lesion in session.lesions:
            members[lesion.lineage][place].append(lesion)
    for lineage in sorted(members):
        by_session = members[lineage]
        for place, session in enumerate(record.sessions):
            change = None if place == 0 else change_in_words(len(by_session[place - 1]), len(by_session[place]))
            known = {"lineage": lineage, "session": session.session, "change": change}
            yield {**whose, **known, **_lineage_cells(by_session[place])}


def change_in_words(n_before: int, n_after: int) -> str:
    """What has become of a lesion, given the number of its candidates before and after."""
    if n_before == 0 or n_after == 0:
        return {(False, False): "absent", (False, True): "new", (True, False): "gone"}[n_before > 0, n_after > 0]
    if n_before == 1:
        return "persisting" if n_after == 1 else "split"
    return "merged" if n_after == 1 else "rearranged"


def _lineage_cells(lesions: Sequence[FollowedLesion]) -> dict[str, Any]:
    cells: dict[str, Any] = {
        "n_candidates": len(lesions),
        "labels": " ".join(str(one.label) for one in lesions),
        "existence": any_of([one.existence for one in lesions]),
        "expected": float(sum(one.existence for one in lesions)),
        "n_voxels": sum(one.n_voxels for one in lesions),
        "volume_mm3": total_of([one.volume_mm3 for one in lesions]),
    }
    if lesions:
        highest = max(lesions, key=lambda one: one.height)
        cells |= {name: getattr(highest, name) for name in ("peak_x_mm", "peak_y_mm", "peak_z_mm")}
    for name in ("p_new", "p_persisting", "p_gone"):
        known = [value for one in lesions if (value := getattr(one, name)) is not None]
        cells[name] = any_of(known) if known else None
    return cells


def any_of(probabilities: Sequence[float]) -> float:
    """That at least one of several is true."""
    return float(1 - np.prod([1 - p for p in probabilities]))


def total_of(volumes: Sequence[float | None]) -> float | None:
    """The sum of volumes; None if one is not known."""
    return None if None in volumes else float(sum(one for one in volumes if one is not None))

"""A folder of comparisons → what is known of all its patients together; and as counts, to evaluate and calibrate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from lesioncount.cohort.courses import Course
from lesioncount.cohort.item import Known
from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.tabulated import TabulatedCount
from lesioncount.errors import MapFileError
from lesioncount.files.remote_path import without_secrets
from lesioncount.folder.plain import read_json, to_json, typed
from lesioncount.optional import optional
from lesioncount.results.course_record import KIND, CourseRecord, read_course
from lesioncount.results.course_settings import ComparedWith
from lesioncount.results.course_tables import change_rows, lineage_rows
from lesioncount.results.earlier import RUN_FILE, WAITING
from lesioncount.results.record_files import no_record
from lesioncount.results.run_file import Status, time_now, versions_now
from lesioncount.trust.candidate_table import Counted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ChangeRun:
    """A run of ``lesioncount compare``: what its ``run.json`` holds.

    Attributes
    ----------
    compared_with : ComparedWith
    jobs : int
    status : {"running", "finished", "interrupted"}
    versions : mapping of str to str
    started : str
    courses : mapping of str to (error or None)
        In the order of the inputs.
    paths : mapping of str to tuple of str
        Of the maps of each course.
    alone : tuple of str
        Patients with one map only.
    cluster : str or None
    command : str or None
        What was typed; None from Python.
    given : tuple of str or None
        What maps were given with: a mask. None if that is not known.
    waiting : frozenset of str
        The courses that it has not come to.
    compared : tuple of str
        The courses that have a result, and so a record of it.
    """

    compared_with: ComparedWith
    jobs: int = 1
    status: Status = "running"
    versions: Mapping[str, str] = field(default_factory=versions_now)
    started: str = field(default_factory=time_now)
    courses: Mapping[str, str | None] = field(default_factory=dict)
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    alone: tuple[str, ...] = ()
    cluster: str | None = None
    command: str | None = None
    given: tuple[str, ...] | None = None
    waiting: frozenset[str] = frozenset()
    compared: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """How it compared, as plain values."""
        return self.compared_with.to_dict()

    @property
    def known(self) -> dict[str, Known]:
        """The names of its courses, and whose they are."""
        return {name: Known(paths) for name, paths in self.paths.items() if paths}

    def to_json(
        self,
        records: Sequence[CourseRecord] = (),
        waiting: Sequence[Course] = (),
        *,
        seconds: float = 0.0,
        files: Mapping[str, str] | None = None,
    ) -> str:
        """As text, with the courses it has come to, those that wait, and the SHA-256 of the files it has written."""
        n_ok = sum(record.is_compared for record in records)
        return to_json(
            {
                "kind": KIND,
                "settings": self.settings,
                "run": {
                    "jobs": self.jobs,
                    "cluster": None if self.cluster is None else without_secrets(self.cluster),
                    "status": self.status,
                    "command": self.command,
                    "given": self.given,
                },
                "versions": self.versions,
                "started": self.started,
                "seconds": round(seconds, 3),
                "n_ok": n_ok,
                "n_failed": len(records) - n_ok,
                "alone": self.alone,
                "patients": [
                    *(_entry(one.name, one.status, one.error, one.paths) for one in records),
                    *(_entry(one.name, WAITING, None, one.paths) for one in waiting),
                ],
                "files": files or {},
            }
        )

    @classmethod
    def from_plain(cls, content: Any) -> Self:
        """From what its file holds; ValueError, KeyError, TypeError or one of our errors if it is no such run."""
        content = typed(content, dict[str, Any])
        if content["kind"] != KIND:
            raise ValueError("expected a run of lesioncount compare")
        how = typed(content["run"], dict[str, Any])
        patients = typed(content["patients"], tuple[dict[str, Any], ...])
        return cls(
            ComparedWith.from_dict(typed(content["settings"], dict[str, Any])),
            typed(how["jobs"], int),
            typed(how["status"], Status),
            typed(content["versions"], dict[str, str]),
            typed(content["started"], str),
            {typed(one["patient"], str): typed(one["error"], str | None) for one in patients},
            {one["patient"]: typed(one["paths"], tuple[str, ...]) for one in patients},
            typed(content["alone"], tuple[str, ...]),
            typed(how.get("cluster"), str | None),
            typed(how.get("command"), str | None),
            typed(how.get("given"), tuple[str, ...] | None),
            frozenset(one["patient"] for one in patients if one["status"] == WAITING),
            tuple(one["patient"] for one in patients if one["status"] == "ok"),
        )


def _entry(name: str, status: str, error: str | None, paths: Sequence[str]) -> dict[str, Any]:
    return {"patient": name, "status": status, "error": error, "paths": paths}


def find_change_run(out: Path) -> ChangeRun | None:
    """The comparison whose results are in a folder; None when there is none."""
    try:
        return ChangeRun.from_plain(read_json(out / RUN_FILE))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None


@dataclass(frozen=True, eq=False)
class ChangeResults:
    """What a comparison found: a record for each patient, without single candidates, in the order of the inputs.

    Attributes
    ----------
    out : Path
        The folder.
    run : ChangeRun
    courses : tuple of CourseRecord
    """

    out: Path
    run: ChangeRun
    courses: tuple[CourseRecord, ...]

    @cached_property
    def compared(self) -> tuple[CourseRecord, ...]:
        """The patients that were compared."""
        return tuple(one for one in self.courses if one.is_compared)

    @cached_property
    def failed(self) -> tuple[CourseRecord, ...]:
        """The patients that could not be compared."""
        return tuple(one for one in self.courses if not one.is_compared)

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before it had come to all patients."""
        return self.run.status == "interrupted"

    def distributions(self, kind: Counted, *, calibrated: bool = True) -> dict[str, CountDistribution]:
        """The number of new, gone or persisting lesions of each pair, by its name; calibrated where it was."""
        counts = {pair.name: pair.counts[kind] for course in self.compared for pair in course.pairs}
        tables = {name: (calibrated and count.pmf_calibrated) or count.pmf for name, count in counts.items()}
        return {name: TabulatedCount(np.array(table)) for name, table in tables.items()}

    def records(self) -> Iterator[CourseRecord]:
        """The whole records of the patients that were compared, read one after the other."""
        for course in self.compared:
            yield self.record(course.name)

    def record(self, name: str) -> CourseRecord:
        """The whole record of a patient."""
        record = read_course(self.out, name)
        if record is None:
            raise no_record(self.out, name)
        return record

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each pair, with the columns of ``changes.tsv``."""
        return _frame([row for course in self.courses for row in change_rows(course)])

    def lineages_to_dataframe(self) -> pd.DataFrame:
        """A row for each lineage and session, with the columns of ``lineages.tsv``."""
        return _frame([row for record in self.records() for row in lineage_rows(record)])


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    frame: pd.DataFrame = optional("pandas", "notebook", "to_dataframe()").DataFrame(rows)
    return frame


def read_changes(out: str | Path, /) -> ChangeResults:
    """Read what ``lesioncount compare`` has left in a folder."""
    out = Path(out)
    run = find_change_run(out)
    if run is None:
        raise MapFileError(
            f"Expected the results of a comparison in {out}, but its run.json is not there or is not one. Compare "
            f"first: lesioncount compare BASELINE FOLLOWUP -o {out}"
        )
    courses = (_course(out, name, error, run) for name, error in run.courses.items())
    return ChangeResults(out, run, tuple(one for one in courses if one is not None))


def _course(out: Path, name: str, error: str | None, run: ChangeRun) -> CourseRecord | None:
    """What is known of a patient; None of one that a run which was stopped has not come to."""
    record = None if error else read_course(out, name)
    if record is not None and record.is_compared:
        return record.without_lesions
    if record is None and name in run.waiting:
        return None
    why = error or (record.error if record else None)
    return CourseRecord(name, error=why or str(no_record(out, name)))

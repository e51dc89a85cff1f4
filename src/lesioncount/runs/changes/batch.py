"""Maps of many patients at several times → one folder of results: compared side by side, resumed where it stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from lesioncount.errors import MapFileError
from lesioncount.files.output import OutputFolder
from lesioncount.files.remote_path import to_path
from lesioncount.runs.batch import why_failed
from lesioncount.runs.changes.course_comparing import ShowCourse, compare_course, compared_before, failed
from lesioncount.runs.changes.courses import Course, CourseSelection
from lesioncount.runs.changes.outputs import LABEL_ENDINGS, label_names
from lesioncount.runs.changes.records import CourseRecord, read_course
from lesioncount.runs.changes.results import ChangeResults, ChangeRun, find_change_run
from lesioncount.runs.changes.settings import ChangeSettings
from lesioncount.runs.changes.tables import (
    ANSWER_COLUMNS,
    CHANGE_COLUMNS,
    LINEAGE_COLUMNS,
    OPTIONAL_ANSWER_COLUMNS,
    OPTIONAL_CHANGE_COLUMNS,
    OPTIONAL_LINEAGE_COLUMNS,
    answer_rows,
    change_rows,
    lineage_rows,
)
from lesioncount.runs.names import check_case
from lesioncount.runs.record_files import record_name
from lesioncount.runs.run_file import RUN_FILE
from lesioncount.runs.scan_files import fingerprint
from lesioncount.runs.tables import filled_columns, to_tsv
from lesioncount.runs.workers import results_of

Progress = Callable[[CourseRecord, int, int], None]

TABLES = ("changes.tsv", "lineages.tsv", "answers.tsv")

# The page that shows a comparison, and the folder of its parts.
PAGE, SECTIONS = "changes.html", "changes"


def compare_batch(
    inputs: Sequence[str | Path],
    out: str | Path,
    /,
    *,
    settings: ChangeSettings | None = None,
    selection: CourseSelection | None = None,
    mask: str | Path | None = None,
    jobs: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    show: ShowCourse | None = None,
) -> ChangeResults:
    """Compare the maps of patients at several times, and write tables and records into a folder.

    Parameters
    ----------
    inputs : sequence of path
        One folder with the sessions of participants; or for each time a folder or a file, the first before the second.
        None with a table of pairs (`CourseSelection`).
    out : path
        Folder of the results; made if it is not there.
    settings : ChangeSettings, optional
        Protocol, tolerance, coupling, calibrations, questions, and whether to write label maps.
    selection : CourseSelection, optional
        How maps are paired.
    mask : path, optional
        A mask for all maps, a folder with one for each, or a pattern. What lies outside of the mask of any session of a
        patient is not compared.
    jobs : int, default 1
        Number of processes.
    resume : bool, default False
        Keep what is there and still right: same files, same settings, no error.
    overwrite : bool, default False
        Do everything again, and replace what is there.
    progress : callable, optional
        Called with the record of a patient, the number of patients done, and the number of all.
    show : callable, optional
        Called, in the process that compared it, with the folder, the course, its record and its maps:
        `lesioncount.report.CourseSectionWriter` makes pictures for the page while the maps are at hand.
    """
    settings, folder = settings or ChangeSettings(), OutputFolder(out)
    before = _earlier(folder, may_be=resume or overwrite)
    settings.check()
    found = (selection or CourseSelection()).find(inputs, folder.path, mask=None if mask is None else to_path(mask))
    check_case([course.name for course in found.courses], folder.path)
    courses = [_known(course, before, folder, resume=resume) for course in found.courses]
    _check(folder, courses, settings, resume=resume)
    with folder.alone(listed_in=RUN_FILE):
        began, run = time.monotonic(), ChangeRun(settings.recorded, jobs, alone=found.alone)
        folder.write_text(RUN_FILE, run.to_json(files=folder.listed()))
        if overwrite:  # also if this run is interrupted, what the page shows is no longer what is there
            _remove_page(folder)
        done: dict[str, CourseRecord] = {}

        def tell(record: CourseRecord) -> None:
            done[record.name] = record
            if progress is not None:
                progress(record, len(done), len(courses))

        try:
            compare = partial(compare_course, settings=settings, out=folder.path, show=show)
            _compare_all(courses, settings, folder.path, compare, jobs=jobs, resume=resume, tell=tell)
            run = replace(run, status="finished")
        except KeyboardInterrupt:
            run = replace(run, status="interrupted")
        results = ChangeResults(folder.path, run, tuple(done[one.name] for one in courses if one.name in done))
        _write_tables(folder, results)
        if overwrite and not results.interrupted:
            _remove_stale(folder, before, courses)
        seconds = time.monotonic() - began
        folder.write_text(RUN_FILE, run.to_json(results.courses, seconds=seconds, files=folder.listed()))
    return results


def _compare_all(
    courses: Sequence[Course],
    settings: ChangeSettings,
    out: Path,
    compare: Callable[[Course], CourseRecord],
    *,
    jobs: int,
    resume: bool,
    tell: Callable[[CourseRecord], None],
) -> None:
    """Compare courses, but for those that need not be compared again."""
    todo = []
    for course in courses:
        before = compared_before(course, settings, out) if resume else None
        if before is None:
            todo.append(course)
        else:
            tell(before)
    for place, future in results_of(compare, todo, jobs=jobs):
        try:
            record = future.result()
        except Exception as error:  # noqa: BLE001 - a process that died: the others are none the worse
            record = failed(todo[place], why_failed(error, done="compared"))
        tell(record)


def _earlier(folder: OutputFolder, *, may_be: bool) -> ChangeRun | None:
    """The comparison that is in the folder; it may be there only if it goes on or is replaced."""
    if not folder.is_ours(RUN_FILE):
        return None
    run = find_change_run(folder.path)
    if run is None:
        raise MapFileError(
            f"{folder.path} holds other results, not those of lesioncount compare. Choose another folder."
        )
    if not may_be:
        raise MapFileError(
            f"{folder.path} holds the results of an earlier run. Choose another folder, continue that run (--resume), "
            "or replace its results (--overwrite)."
        )
    return run


def _known(course: Course, before: ChangeRun | None, folder: OutputFolder, *, resume: bool) -> Course:
    """A course, and whether it was compared before; raise if its name belongs to other maps."""
    paths = None if before is None else before.paths.get(course.name)
    if paths is None:
        return course
    if resume and paths != tuple(str(scan.path.absolute()) for scan in course.scans):
        record = read_course(folder.path, course.name)
        recorded = [] if record is None else [one.files.sha256 for one in record.sessions]
        if not set(recorded) & {fingerprint(scan.path) for scan in course.scans if scan.path.exists()}:
            raise MapFileError(
                f"{folder.path} holds results of {' and '.join(paths)} under the name {course.name}, which "
                f"{course.scans[-1].path} would take over. Choose another folder, or replace them (--overwrite)."
            )
    return replace(course, was_compared=True)


def _check(folder: OutputFolder, courses: Sequence[Course], settings: ChangeSettings, *, resume: bool) -> None:
    """Raise if something would be replaced that is not ours, or was changed since."""
    folder.check([RUN_FILE, *TABLES])
    folder.check(record_name(course.name) for course in courses if not course.was_compared)
    if settings.save_labels and not resume:  # a label map that need not be painted again may have been corrected
        folder.check(name for course in courses for name in label_names(course))


def _remove_stale(folder: OutputFolder, before: ChangeRun | None, courses: Sequence[Course]) -> None:
    """Remove the records and label maps of an earlier run that this one has not made again."""
    for name in set(before.courses if before else ()) - {course.name for course in courses}:
        folder.remove(record_name(name))
    labels = {name for name in folder.names() if name.endswith(LABEL_ENDINGS)}
    for name in labels - {name for course in courses for name in label_names(course)}:
        folder.remove(name)


def _remove_page(folder: OutputFolder) -> None:
    """Remove the page of an earlier run, and its parts."""
    folder.remove(PAGE)
    for path in (folder.path / SECTIONS).glob("*.js"):
        folder.remove(f"{SECTIONS}/{path.name}")
    folder.remove_empty(SECTIONS)


def _write_tables(folder: OutputFolder, results: ChangeResults) -> None:
    changes = [row for course in results.courses for row in change_rows(course)]
    lineages = [row for record in results.records() for row in lineage_rows(record)]
    tables = (
        (TABLES[0], changes, CHANGE_COLUMNS, OPTIONAL_CHANGE_COLUMNS),
        (TABLES[1], lineages, LINEAGE_COLUMNS, OPTIONAL_LINEAGE_COLUMNS),
    )
    for name, rows, columns, optional in tables:
        folder.write_text(name, to_tsv(filled_columns(columns, rows, optional=optional), rows))
    answers = [row for course in results.compared for row in answer_rows(course)]
    if answers:
        columns = filled_columns(ANSWER_COLUMNS, answers, optional=OPTIONAL_ANSWER_COLUMNS)
        folder.write_text(TABLES[2], to_tsv(columns, answers))
    else:  # not the answers of another time
        folder.remove(TABLES[2])

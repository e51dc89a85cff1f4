"""Maps of many patients at several times → one folder of results: compared side by side, resumed where it stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from lesioncount.cohort.courses import Course, CourseSelection
from lesioncount.cohort.names import check_case
from lesioncount.files.remote_path import to_path
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.tables import filled_columns, to_tsv
from lesioncount.outputs.course_labels import LABEL_ENDINGS, SECTIONS, label_names
from lesioncount.results.course_record import CourseRecord, read_course
from lesioncount.results.course_results import ChangeResults, ChangeRun, find_change_run
from lesioncount.results.course_settings import ChangeSettings
from lesioncount.results.course_tables import (
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
from lesioncount.results.earlier import RUN_FILE, earlier_run, names_before
from lesioncount.results.history import History
from lesioncount.results.record_files import record_name
from lesioncount.results.run_file import Status
from lesioncount.runs.batch import why_failed
from lesioncount.runs.course_comparing import ComparedCourse, ShowCourse, compare_course, failed
from lesioncount.runs.workers import check_reachable, results_of

Progress = Callable[[CourseRecord, int, int], None]

TABLES = ("changes.tsv", "lineages.tsv", "answers.tsv")

# The page that shows a comparison.
PAGE = f"{SECTIONS}.html"


def compare_batch(  # noqa: PLR0913 - as many as a run has options
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
    cluster: str | None = None,
    command: str | None = None,
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
        Keep what is there and still right: same files, no error. With other settings, it is refused.
    overwrite : bool, default False
        Do everything again, and replace what is there.
    progress : callable, optional
        Called with the record of a patient, the number of patients done, and the number of all.
    show : callable, optional
        Called, in the process that compared it, with the folder, the course, its record and its maps:
        `lesioncount.report.CourseSectionWriter` makes pictures for the page while the maps are at hand.
    cluster : str, optional
        Address of a Dask scheduler that does the work instead. Its workers must see the same files.
    command : str, optional
        What was typed, for the history of runs (``runs.jsonl``).
    """
    settings, folder = settings or ChangeSettings(), OutputFolder(out)
    before = earlier_run(folder, find_change_run, "compare", may_be=resume or overwrite)
    settings.check()
    found = (selection or CourseSelection()).find(inputs, folder.path, mask=None if mask is None else to_path(mask))
    check_case([course.name for course in found.courses], folder.path)
    given = () if mask is None else ("mask",)
    run = ChangeRun(settings.recorded, jobs, alone=found.alone, cluster=cluster, command=command, given=given)
    maps = [(course.name, [scan.path for scan in course.scans]) for course in found.courses]
    known = names_before(folder, maps, before, run, resume=resume, overwrite=overwrite)
    courses = [replace(course, was_compared=course.name in known) for course in found.courses]
    _check(folder, courses, settings, resume=resume)
    check_reachable(cluster)
    with folder.alone(listed_in=RUN_FILE):
        began, history = time.monotonic(), History(folder)
        history.add_killed(before)
        # From here on the folder holds a run, and whose its names are, also if it is killed.
        folder.write_text(RUN_FILE, run.to_json(waiting=courses, files=folder.listed()))
        compare = partial(compare_course, settings=settings, out=folder.path, show=show, resume=resume)
        done: dict[str, CourseRecord] = {}
        n_new, status = _compare_into(done, folder, courses, compare, run, progress)
        results = ChangeResults(folder.path, replace(run, status=status), tuple(_in_order(done, courses)))
        if n_new or set(done) != set(before.courses if before else ()):
            folder.remove(PAGE)  # it shows what is no longer so; whoever wants a page writes it next
        _write_tables(folder, results)
        if overwrite and not results.interrupted:
            _remove_stale(folder, courses)
        _finish(folder, results, [one for one in courses if one.name not in done], history, began)
    return results


def _compare_into(
    done: dict[str, CourseRecord],
    folder: OutputFolder,
    courses: Sequence[Course],
    compare: Callable[[Course], ComparedCourse],
    run: ChangeRun,
    progress: Progress | None,
) -> tuple[int, Status]:
    """Compare all courses; give how many were not known before, and whether somebody has stopped it."""
    n_new = 0
    try:
        with closing(_compared(courses, compare, run)) as compared:
            for record, is_new in compared:
                if is_new and not n_new:
                    folder.remove(PAGE)
                n_new += is_new
                done[record.name] = record
                if progress is not None:
                    progress(record, len(done), len(courses))
    except KeyboardInterrupt:
        return len(done), "interrupted"
    return n_new, "finished"


def _compared(
    courses: Sequence[Course], compare: Callable[[Course], ComparedCourse], run: ChangeRun
) -> Generator[ComparedCourse]:
    """What became of each course, as they finish."""
    with closing(results_of(compare, courses, jobs=run.jobs, cluster=run.cluster)) as results:
        for place, future in results:
            try:
                yield future.result()
            except Exception as error:  # noqa: BLE001 - a process that died: the others are unaffected
                yield ComparedCourse(failed(courses[place], why_failed(error, done="compared")), is_new=True)


def _in_order(done: Mapping[str, CourseRecord], courses: Sequence[Course]) -> Iterator[CourseRecord]:
    return (done[course.name] for course in courses if course.name in done)


def _finish(
    folder: OutputFolder, results: ChangeResults, waiting: Sequence[Course], history: History, began: float
) -> None:
    """Write what the run has done: a line of history, and all in ``run.json``."""
    seconds, listed = time.monotonic() - began, folder.listed()
    inputs = {course.name: [session.files.hashes for session in course.sessions] for course in results.courses}
    tables = {name: listed[name] for name in TABLES if name in listed}
    history.add(results.run, inputs, tables, seconds=seconds)
    folder.write_text(RUN_FILE, results.run.to_json(results.courses, waiting, seconds=seconds, files=listed))


def _check(folder: OutputFolder, courses: Sequence[Course], settings: ChangeSettings, *, resume: bool) -> None:
    """Raise if something would be replaced that is not ours, or was changed since."""
    folder.check([RUN_FILE, *TABLES])
    folder.check(record_name(course.name) for course in courses if not course.was_compared)
    if settings.save_labels and not resume:  # a label map that need not be painted again may have been corrected
        folder.check(name for course in courses for name in label_names(course))


def _remove_stale(folder: OutputFolder, courses: Sequence[Course]) -> None:
    """Remove what an earlier run has left and this one has not made again."""
    names = {course.name for course in courses}
    for record in folder.path.glob("*.json"):
        if record.stem not in names and read_course(folder.path, record.stem) is not None:
            folder.remove(record.name)
    made = {name for course in courses for name in label_names(course)}
    for name in folder.names():
        is_label = name.endswith(LABEL_ENDINGS) and name not in made
        if is_label or (name.startswith(f"{SECTIONS}/") and PurePosixPath(name).stem not in names):
            folder.remove(name)
    folder.remove(PAGE)
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

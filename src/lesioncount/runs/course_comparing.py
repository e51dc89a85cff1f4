"""One course → its record in the folder of results, and what is wanted beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from lesioncount.cohort.courses import Course
from lesioncount.cohort.item import FileFacts, check_states, file_states
from lesioncount.errors import LesionCountError, MapFileError
from lesioncount.files.remote_path import without_secrets
from lesioncount.folder.output import OutputFolder
from lesioncount.outputs.course_labels import label_names, names_of_record, write_labels
from lesioncount.results.course_record import CourseRecord, read_course
from lesioncount.results.course_settings import ChangeSettings
from lesioncount.results.record_files import record_name
from lesioncount.results.scan_count import CourseMaps
from lesioncount.runs.comparing import compared
from lesioncount.runs.session_maps import read_maps

# Shows a course that has just been compared, while its maps are at hand.
ShowCourse = Callable[[OutputFolder, Course, CourseRecord, CourseMaps], None]


class ComparedCourse(NamedTuple):
    """What is known of a course, without its single candidates, and whether that is new."""

    record: CourseRecord
    is_new: bool


def compare_course(
    course: Course, settings: ChangeSettings, out: Path, show: ShowCourse | None = None, *, resume: bool = False
) -> ComparedCourse:
    """Compare the maps of one patient and write the record; what goes wrong is part of it, not an exception."""
    before = compared_before(course, settings, out) if resume else None
    if before is not None:
        return ComparedCourse(before, is_new=False)
    folder = OutputFolder(out)
    earlier = read_course(out, course.name) if course.was_compared else None
    record, maps = _recorded(course, settings)
    if maps is not None and settings.save_labels:
        record = _with_labels(folder, course, maps, record)
    made = label_names(course) if settings.save_labels and record.is_compared else ()
    stale = (*label_names(course), *(() if earlier is None else names_of_record(earlier)))
    for name in set(stale) - set(made):  # made at another time, and not again now
        folder.remove(name)
    try:
        folder.write_text(record_name(course.name), record.to_json(), though_changed=course.was_compared)
    except (MapFileError, OSError) as error:
        return ComparedCourse(failed(course, record.error or str(error)), is_new=True)
    if show is not None and maps is not None and record.is_compared:
        show(folder, course, record, maps)
    return ComparedCourse(record.without_lesions, is_new=True)


def failed(course: Course, why: str) -> CourseRecord:
    """The record of a course that could not be compared."""
    return CourseRecord(course.name, error=without_secrets(why), participant=course.participant, paths=course.paths)


def compared_before(course: Course, settings: ChangeSettings, out: Path) -> CourseRecord | None:
    """The record of a course that is there, without error, and of the same files and settings."""
    record = read_course(out, course.name) if OutputFolder(out).is_ours(record_name(course.name)) else None
    if course.problem is not None or record is None or not record.is_compared:
        return None
    is_same = record.compared_with is not None and record.compared_with.compares_as(settings.recorded)
    if not is_same or len(record.sessions) != len(course.scans):
        return None
    if settings.save_labels and not all((out / name).exists() for name in label_names(course)):
        return None
    try:
        now = [FileFacts.of(scan) for scan in course.scans]
    except OSError:
        return None
    before = [session.files for session in record.sessions]
    is_same = all(a.is_same_content(b) and a.is_same_scan(b) for a, b in zip(before, now, strict=True))
    return record.without_lesions if is_same else None


def _recorded(course: Course, settings: ChangeSettings) -> tuple[CourseRecord, CourseMaps | None]:
    try:
        files = tuple(FileFacts.of(scan) for scan in course.scans)
        states = [file_states(scan) for scan in course.scans]
        maps = read_maps(course.scans, settings, course.sessions)
        record = compared(course, maps, files, settings)
        for scan, before in zip(course.scans, states, strict=True):
            check_states(scan, before)
    except (LesionCountError, OSError, MemoryError) as error:
        why = str(error) or type(error).__name__
    except Exception as error:  # noqa: BLE001 - files can be odd in many ways, and others are to be compared
        why = f"unexpected {type(error).__name__}: {error}"
    else:
        return record, maps
    return failed(course, why), None


def _with_labels(folder: OutputFolder, course: Course, maps: CourseMaps, record: CourseRecord) -> CourseRecord:
    try:
        write_labels(folder, course, maps, record)
    except (LesionCountError, OSError, MemoryError) as error:
        return failed(course, str(error) or type(error).__name__)
    return record

"""Sections of the courses of a comparison: made while a course is compared, or later from its record and its maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from lesioncount.cohort.courses import Course
from lesioncount.cohort.images import session_images
from lesioncount.cohort.item import FileFacts
from lesioncount.errors import LesionCountError
from lesioncount.folder.output import OutputFolder
from lesioncount.outputs.course_labels import SECTIONS
from lesioncount.report.change_sections import section_text
from lesioncount.report.section_folder import Image, Progress, SectionFolder, make_all
from lesioncount.report.sections import SectionText
from lesioncount.results.course_record import CourseRecord
from lesioncount.results.scan_count import CourseMaps
from lesioncount.runs import ChangeResults

# What a section looks like is decided by these.
_TEMPLATES = ("change_section.html.j2", "change_summary.html.j2", "numbers.html.j2")


def sections_in(folder: OutputFolder) -> SectionFolder:
    """The sections of the page in a folder of comparisons."""
    return SectionFolder(folder, SECTIONS, _TEMPLATES, "Compare again.")


@dataclass(frozen=True)
class CourseSectionWriter:
    """Writes the section of each course that is compared, while its maps are at hand: `compare_batch`'s ``show``.

    Attributes
    ----------
    images : Path, optional
        Where images were looked for.
    """

    images: Path | None = None

    def __call__(self, folder: OutputFolder, course: Course, record: CourseRecord, maps: CourseMaps) -> None:
        """Write the section of a course; what goes wrong shows when the page finds none, and makes it."""
        images = _asked([scan.image for scan in course.scans], self.images)
        sections = sections_in(folder)
        try:
            key = sections.key(course.name, images)
            sections.write([(course.name, section_text(record, images, maps))], {course.name: key})
        except (LesionCountError, OSError, MemoryError, ValueError):
            return


def images_of(results: ChangeResults, images: Path | None, *, suffix: str = "") -> dict[str, tuple[Image, ...]]:
    """What each session of each course is shown on; where there is no image of it, a text that says so."""
    if images is None:
        return {course.name: (None,) * len(course.sessions) for course in results.compared}
    # Those that failed belong to the folders in which images are looked for, too.
    courses = (*results.compared, *results.failed)
    files = [[one.files for one in course.sessions] or [FileFacts(path) for path in course.paths] for course in courses]
    found = session_images(files, images, suffix=suffix)
    return {course.name: _asked(own, images) for course, own in zip(courses, found, strict=True) if course.is_compared}


def make_sections(
    results: ChangeResults,
    images: Mapping[str, Sequence[Image]],
    names: Sequence[str],
    *,
    jobs: int,
    progress: Progress | None,
) -> Iterator[tuple[str, SectionText]]:
    """Make sections from records and maps, which are read once more.

    Parameters
    ----------
    results : ChangeResults
    images : mapping of str to sequence of path, text or None
        What each session of each course is shown on.
    names : sequence of str
        Of the courses whose sections are to be made.
    jobs : int
        Number of processes.
    progress : callable, optional
        Called with the number of sections done, and of all.
    """
    make = partial(_made, results=replace(results, courses=()))  # a process needs no more than the folder
    return make_all(make, {name: (name, images[name]) for name in names}, jobs=jobs, progress=progress)


def _made(item: tuple[str, Sequence[Image]], results: ChangeResults) -> SectionText:
    name, images = item
    return section_text(results.record(name), images)


def _asked(found: Sequence[Path | None], images: Path | None) -> tuple[Image, ...]:
    """Images; where there is none among those that were asked for, a text that says so."""
    if images is None:
        return (None,) * len(found)
    return tuple(one or f"shown on the map, because there is no image of it in {images}." for one in found)

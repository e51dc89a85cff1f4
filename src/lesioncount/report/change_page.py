"""The page of comparisons, ``changes.html``: all pairs, each patient, and single lesions at both times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lesioncount.cohort.images import session_images
from lesioncount.cohort.item import FileFacts
from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.sum_of_counts import SumOfCounts
from lesioncount.outputs.page import PAGES
from lesioncount.report.change_sections import section_text
from lesioncount.report.page_kind import Image, PageKind
from lesioncount.report.sections import SectionText
from lesioncount.results.count_warnings import in_general
from lesioncount.results.course_record import CourseRecord, read_course
from lesioncount.results.course_results import ChangeResults, ChangeRun, find_change_run, read_changes
from lesioncount.results.course_settings import KINDS
from lesioncount.results.run_file import RunScan
from lesioncount.results.scan_count import CourseMaps
from lesioncount.trust.candidate_table import Counted


def _listed_in(run: ChangeRun) -> list[RunScan]:
    """All patients of a run."""
    compared = frozenset(run.compared)
    return [RunScan(name, "ok" if name in compared else "failed", error) for name, error in run.courses.items()]


def _images(results: ChangeResults, where: Path, suffix: str) -> dict[str, tuple[Path | None, ...]]:
    """The image of each session of each patient who was compared."""
    # Those that failed belong to the folders in which images are looked for, too.
    courses = (*results.compared, *results.failed)
    files = [[one.files for one in own.sessions] or [FileFacts(path) for path in own.paths] for own in courses]
    found = session_images(files, where, suffix=suffix)
    return {one.name: own for one, own in zip(courses, found, strict=True) if one.is_compared}


def _section(record: CourseRecord, images: Sequence[Image], maps: CourseMaps | None) -> SectionText:
    return section_text(record, images or (None,) * len(record.sessions), maps)


def _to_tell(course: CourseRecord) -> float:
    """How many lesions are expected to have come or gone: patients with more of them come first."""
    numbers = [pair.counts[kind].numbers.best for pair in course.pairs for kind in ("new", "gone")]
    return sum(one.count_mean for one in numbers)


def _content(results: ChangeResults, courses: Sequence[CourseRecord], anchors: Mapping[str, str]) -> dict[str, Any]:
    """All pairs together."""
    return {
        "first": anchors[courses[0].name] if courses else None,
        "kinds": KINDS,
        "with_": results.run.compared_with,
        "n_pairs": sum(len(course.pairs) for course in courses),
        "warnings": _about(results.compared, lambda course: course.notes) | _about(results.compared, _warnings),
        "guaranteed": {kind for kind in KINDS if _is_guaranteed(results, kind)},
        "tolerances": _tolerances(results),
        "totals": _totals(results),
    }


def _about(
    courses: Sequence[CourseRecord], texts_of: Callable[[CourseRecord], Iterable[str]]
) -> dict[str, list[CourseRecord]]:
    """Each text, and the patients it is about."""
    about: dict[str, list[CourseRecord]] = {}
    for course in courses:
        for text in dict.fromkeys(texts_of(course)):
            about.setdefault(text, []).append(course)
    return about


def _warnings(course: CourseRecord) -> Iterable[str]:
    return (in_general(warning) for session in course.sessions for warning in session.warnings)


def _is_guaranteed(results: ChangeResults, kind: Counted) -> bool:
    counts = (pair.counts[kind] for course in results.compared for pair in course.pairs)
    return any(count.numbers.guaranteed is not None for count in counts)


def _tolerances(results: ChangeResults) -> list[str]:
    """The tolerances of all pairs, as far as a reader tells them apart."""
    found = sorted({pair.tolerance_mm for course in results.compared for pair in course.pairs})
    return list(dict.fromkeys(f"{one:.3g}" for one in found))


def _totals(results: ChangeResults) -> dict[Counted, CountDistribution]:
    """The number of new, gone and persisting lesions of all pairs together; none without pairs."""
    found = {kind: list(results.distributions(kind).values()) for kind in KINDS}
    return {kind: SumOfCounts(members) for kind, members in found.items() if members}


# The page of ``lesioncount compare``.
CHANGES = PageKind(
    folder=PAGES["compare"],
    template="change_page.html.j2",
    section_templates=("change_section.html.j2", "change_summary.html.j2", "numbers.html.j2"),
    what="patient",
    again="Compare again.",
    no_image="shown on the map, because there is no image of it",
    many=6,
    has_parts=False,
    takes=(ChangeResults, CourseRecord),
    find_run=find_change_run,
    read=read_changes,
    listed_in=_listed_in,
    listed=lambda results: results.courses,
    about=lambda run: (run.compared_with.to_dict(), run.alone),
    images=_images,
    record=read_course,
    section=_section,
    interest=_to_tell,
    content=_content,
)

"""A folder of comparisons → ``changes.html``: one file that needs nothing else, or of many a folder beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.sum_of_counts import SumOfCounts
from lesioncount.files.remote_path import to_path
from lesioncount.folder.output import OutputFolder
from lesioncount.outputs.course_labels import SECTIONS
from lesioncount.report.change_section_files import images_of, make_sections, sections_in
from lesioncount.report.section_folder import Progress, fingerprint_of, is_written
from lesioncount.report.sections import SectionText
from lesioncount.report.templates import check_can_report, template
from lesioncount.results.count_warnings import in_general
from lesioncount.results.course_record import CourseRecord
from lesioncount.results.course_settings import KINDS
from lesioncount.runs import ChangeResults, read_changes
from lesioncount.runs.compare import Comparing
from lesioncount.trust.candidate_table import Counted
from lesioncount.version import __version__

# Up to so many patients, everything is one page, which can be sent by mail. With more, a browser would be slow to open
# it, so that sections are files of their own, loaded when they are opened.
FEW_PATIENTS = 40

# From so many patients on, sections are closed until they are asked for, but for the first ones.
_MANY_PATIENTS, _OPEN_OF_MANY = 6, 3

# Rows of the table that are laid out at first: a few screens. The others are there, to be searched and sorted.
_ROWS_AT_ONCE = 100


def write_changes_page(
    results: ChangeResults | str | Path,
    *,
    images: str | Path | None = None,
    images_suffix: str = "",
    jobs: int = 1,
    progress: Progress | None = None,
) -> Path:
    """Write a page that shows what has changed: all pairs, each patient, and single lesions at both times.

    Of more than `FEW_PATIENTS` patients, sections are files in the folder ``changes``, beside the page. What is there
    and right is kept: sections that `CourseSectionWriter` made while comparing, and everything if nothing has changed.

    Parameters
    ----------
    results : ChangeResults or path
        What `compare_batch` returned, or the folder it wrote to.
    images : path, optional
        What to show behind the candidates: a folder with an image for each map, of the same name or the same BIDS
        entities; a pattern such as ``flair/{participant}_{session}_FLAIR.nii.gz``; or one image for all. It must lie
        on the grid of its map, or of the last map of the patient. Default: the maps themselves.
    images_suffix : str
        What the name of an image adds to that of its map, or has in place of its last part.
    jobs : int, default 1
        Number of processes that make sections.
    progress : callable, optional
        Called with the number of sections made, and of those that must be.

    Returns
    -------
    Path
        Of the page, ``changes.html`` in the folder of the results.
    """
    check_can_report()
    results = results if isinstance(results, ChangeResults) else read_changes(results)
    folder, in_folder = OutputFolder(results.out), len(results.courses) > FEW_PATIENTS
    files = sections_in(folder)
    shown = images_of(results, None if images is None else to_path(images), suffix=images_suffix)
    keys = files.keys(shown)
    there, fingerprint = files.noted(keys), _fingerprint(results, keys)
    if not is_written(folder, Comparing.page, fingerprint) or (in_folder and len(there) < len(keys)):
        missing = [name for name in keys if name not in there]
        made = make_sections(results, shown, missing, jobs=jobs, progress=progress)
        if in_folder:
            files.write(made, keys)
            text = _rendered(results, None, fingerprint, files.noted(keys))
        else:
            sections = {name: files.read(name) for name in there} | dict(made)
            text = _rendered(results, sections, fingerprint, {name: one.has_note for name, one in sections.items()})
        folder.write_text(Comparing.page, text)
    files.remove(but=keys if in_folder else None)
    return results.out / Comparing.page


def _fingerprint(results: ChangeResults, keys: Mapping[str, str]) -> str:
    """What the page depends on: the run, what became of its patients, and their sections."""
    run = results.run
    of_run = (run.started[:10], run.status, dict(run.versions), run.compared_with.to_dict(), run.alone)
    return fingerprint_of(of_run, [(one.name, one.error, keys.get(one.name)) for one in results.courses])


def _rendered(
    results: ChangeResults, sections: Mapping[str, SectionText] | None, fingerprint: str, has_note: Mapping[str, bool]
) -> str:
    """The page, with its sections, or without them if they are files of their own."""
    courses = sorted(results.compared, key=lambda one: -_to_tell(one))
    anchors = {course.name: f"patient-{number}" for number, course in enumerate(results.courses, start=1)}
    in_folder, n_pairs = sections is None, sum(len(course.pairs) for course in courses)
    text: str = template("changes.html.j2").render(
        results=results,
        kinds=KINDS,
        with_=results.run.compared_with,
        anchors=anchors,
        fingerprint=fingerprint,
        in_folder=in_folder,
        folder=SECTIONS,
        rows_at_once=_ROWS_AT_ONCE if in_folder else n_pairs + len(results.failed),
        n_pairs=n_pairs,
        shown=[(course, None if sections is None else sections[course.name]) for course in courses],
        without_pictures=[course for course in courses if has_note[course.name]],
        notes=_about(results.compared, lambda course: course.notes),
        warnings=_about(results.compared, _warnings),
        guaranteed={kind for kind in KINDS if _is_guaranteed(results, kind)},
        tolerances=_tolerances(results),
        totals=_totals(results),
        n_open=len(courses) if len(courses) <= _MANY_PATIENTS else _OPEN_OF_MANY,
        version=__version__,
        written=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
    )
    return text


def _to_tell(course: CourseRecord) -> float:
    """How many lesions are expected to have come or gone: patients with more of them come first."""
    numbers = [pair.counts[kind].numbers.best for pair in course.pairs for kind in ("new", "gone")]
    return sum(one.count_mean for one in numbers)


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

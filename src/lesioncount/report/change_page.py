"""The page of comparisons, ``changes.html``: all pairs, each patient, and single lesions at both times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lesioncount.cohort.images import session_images
from lesioncount.cohort.item import FileFacts
from lesioncount.distributions.sum_of_counts import SumOfCounts
from lesioncount.outputs.page import PAGES
from lesioncount.report.calibration_box import further_numbers
from lesioncount.report.figures import distribution
from lesioncount.report.lineages import LineageChange, Pictured, changes_of, courses_of, pictured
from lesioncount.report.section_folder import Image, PageKind, SectionText
from lesioncount.report.slices import cut_changes
from lesioncount.results.count_warnings import in_general
from lesioncount.results.record import Record
from lesioncount.results.record_parts import Pair
from lesioncount.results.recorded import KINDS
from lesioncount.results.results import Results
from lesioncount.results.scan_count import CourseMaps
from lesioncount.trust.candidate_table import Counted

# Pictured of a pair: the lesions that are most probably new, gone and persisting. Both scans take six pictures each.
MOST: dict[Counted, int] = {"new": 5, "gone": 5, "persisting": 2}

# A lesion with less of a chance to be new or gone says nothing that its row in the table does not.
LEAST = 0.1

# Further lesions change next to nothing, and make a section slow to open.
ROWS_PER_PAIR = 300


def _images(results: Results, where: Path, suffix: str) -> dict[str, tuple[Path | None, ...]]:
    """The image of each session of each patient who was compared."""
    # Those that failed belong to the folders in which images are looked for, too.
    courses = (*results.compared, *results.failed)
    files = [[one.files for one in own.sessions] or [FileFacts(path) for path in own.paths] for own in courses]
    found = session_images(files, where, suffix=suffix)
    return {one.name: own for one, own in zip(courses, found, strict=True) if one.is_ok}


def _to_tell(course: Record) -> float:
    """How many lesions are expected to have come or gone: patients with more of them come first."""
    numbers = [pair.counts[kind].numbers.best for pair in course.pairs for kind in ("new", "gone")]
    return sum(one.count_mean for one in numbers)


def _content(results: Results, courses: Sequence[Record], anchors: Mapping[str, str]) -> dict[str, Any]:
    """All pairs together."""
    pairs = [pair for course in results.compared for pair in course.pairs]
    guaranteed = {kind for pair in pairs for kind in KINDS if pair.counts[kind].numbers.guaranteed is not None}
    tolerances = sorted({pair.tolerance_mm for pair in pairs})
    distributions = {kind: list(results.distributions(kind).values()) for kind in KINDS}
    return {
        "first": anchors[courses[0].name] if courses else None,
        "kinds": KINDS,
        "with_": results.run.settings,
        "further": {kind: further_numbers(one) for kind, one in results.run.settings.calibrations.items()},
        "n_pairs": len(pairs),
        "warnings": _about(results.compared, lambda course: course.notes) | _about(results.compared, _warnings),
        "guaranteed": guaranteed,
        "tolerances": list(dict.fromkeys(f"{one:.3g}" for one in tolerances)),  # as far as a reader tells them apart
        "totals": {kind: SumOfCounts(members) for kind, members in distributions.items() if members},
    }


def _about(courses: Sequence[Record], texts_of: Callable[[Record], Iterable[str]]) -> dict[str, list[Record]]:
    """Each text, and the patients it is about."""
    about: dict[str, list[Record]] = {}
    for course in courses:
        for text in dict.fromkeys(texts_of(course)):
            about.setdefault(text, []).append(course)
    return about


def _warnings(course: Record) -> Iterable[str]:
    return (in_general(warning) for session in course.sessions for warning in session.warnings)


def _section(record: Record, images: Sequence[Image] = (), maps: CourseMaps | None = None) -> SectionText:
    """Draw the distributions of a course, cut its pictures, and write its section.

    Parameters
    ----------
    record : Record
    images : sequence of path, text or None
        What to show of each session behind candidates; a text says why there is none, though images were asked for.
    maps : CourseMaps, optional
        What was just compared. Default: maps are read again.
    """
    changes = [changes_of(record, pair) for pair in record.pairs]
    chosen = [_chosen(pair.before, found) for pair, found in zip(record.pairs, changes, strict=True)]
    images = images or (None,) * len(record.sessions)
    slices = cut_changes(record, [one for part in chosen for one in part], images, maps)
    # Of each plane, both times.
    planes = (tuple(zip(*both, strict=True)) for both in slices.planes)
    cards = [list(zip(part, planes, strict=False)) for part in chosen]
    charts = [[_chart(kind, pair) for kind in KINDS] for pair in record.pairs]
    return SectionText.rendered(
        "change_summary.html.j2",
        "change_section.html.j2",
        slices,
        record=record,
        called=called(record),
        pairs=list(zip(record.pairs, charts, cards, changes, strict=True)),
        lesions=courses_of(record) if len(record.sessions) > 2 else [],
        kinds=KINDS,
        most=MOST,
        least=LEAST,
        most_rows=ROWS_PER_PAIR,
    )


def called(record: Record) -> tuple[str, ...]:
    """What the sessions of a course are called on the page: by their names, where they have some."""
    names = tuple(session.session for session in record.sessions)
    if not all(name.isdecimal() for name in names):
        return names
    return ("before", "after") if len(names) == 2 else tuple(f"time {name}" for name in names)


def _chart(kind: Counted, pair: Pair) -> str:
    count = pair.counts[kind]
    return distribution(count.numbers, count.pmf, count.pmf_calibrated, f"number of {kind} lesions")


def _chosen(before: int, changes: Sequence[LineageChange]) -> list[Pictured]:
    """The lesions with pictures: each once, for what it is first chosen for."""
    found: dict[int, Pictured] = {}
    for kind, most in MOST.items():
        for change in pictured(changes, kind, most, LEAST):
            found.setdefault(change.lineage, Pictured(before, change, kind))
    return list(found.values())


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
    about=lambda run: (run.settings.plain, run.alone),
    images=_images,
    section=_section,
    interest=_to_tell,
    content=_content,
)

"""The record of one course → what its section of the page shows, and the section as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lesioncount.report.change_slices import BothTimes, ChangeSlices, Pictured, cut_changes
from lesioncount.report.figures import chart, through_time
from lesioncount.report.lineages import LesionCourse, LineageChange, changes_of, courses_of, pictured
from lesioncount.report.sections import SectionText
from lesioncount.report.templates import size, template
from lesioncount.results.record import Record
from lesioncount.results.record_parts import Pair, SessionRecord
from lesioncount.results.recorded import KINDS
from lesioncount.results.scan_count import CourseMaps
from lesioncount.trust.candidate_table import Counted

# Pictured of a pair: the lesions that are most probably new, gone and persisting. Both scans take six pictures each.
MOST: dict[Counted, int] = {"new": 5, "gone": 5, "persisting": 2}

# A lesion with less of a chance to be new or gone says nothing that its row in the table does not.
LEAST = 0.1

# Further lesions change next to nothing, and make a section slow to open.
ROWS_PER_PAIR = 300


@dataclass(frozen=True, eq=False)
class Card:
    """A lesion with its pictures: what has become of it, why it was chosen, and both times of each plane."""

    change: LineageChange
    kind: Counted
    planes: BothTimes


@dataclass(frozen=True, eq=False)
class PairSection:
    """What is shown of one session and the next.

    Attributes
    ----------
    pair : Pair
    before, after : str
        What the two sessions are called.
    charts : list of str
        The distributions of new, gone and persisting lesions, as SVG.
    cards : list of Card
    changes : list of LineageChange
        All lesions, the most probable changes first.
    on_image : tuple of bool
        Whether the pictures of each of the two show its image; empty without pictures.
    """

    pair: Pair
    before: str
    after: str
    charts: list[str]
    cards: list[Card]
    changes: list[LineageChange]
    on_image: tuple[bool, ...]

    @property
    def rows(self) -> list[LineageChange]:
        """The lesions of the table."""
        return self.changes[:ROWS_PER_PAIR]

    @property
    def n_unchanged(self) -> int:
        """Lesions that most probably are neither new nor gone."""
        return sum(max(one.p["new"], one.p["gone"]) < LEAST for one in self.changes)


@dataclass(frozen=True, eq=False)
class CourseSection:
    """What is shown of one course.

    Attributes
    ----------
    record : Record
    pairs : list of PairSection
    slices : ChangeSlices
    lesions : list of LesionCourse
        Through all sessions, where there are more than two.
    """

    record: Record
    pairs: list[PairSection]
    slices: ChangeSlices
    lesions: list[LesionCourse]

    @property
    def sessions(self) -> list[tuple[str, SessionRecord]]:
        """The sessions, and what they are called."""
        return list(zip(called(self.record), self.record.sessions, strict=True))

    @property
    def rows(self) -> list[tuple[LesionCourse, str, str]]:
        """The lesions of the table, with drawings of their existence and volume."""
        return [(one, *_through_time(one)) for one in self.lesions[:ROWS_PER_PAIR]]


def section_text(record: Record, images: Sequence[Path | str | None], maps: CourseMaps | None = None) -> SectionText:
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
    slices = cut_changes(record, [one for part in chosen for one in part], images, maps)
    planes = iter(slices.planes)
    pairs = []
    for pair, found, part in zip(record.pairs, changes, chosen, strict=True):
        cards = [Card(one.change, one.kind, both) for one, both in zip(part, planes, strict=False)]
        pairs.append(_pair(record, pair, found, cards, slices))
    section = CourseSection(record, pairs, slices, courses_of(record) if len(record.sessions) > 2 else [])
    body = template("change_section.html.j2").render(section=section, kinds=KINDS, most=MOST, least=LEAST)
    summary = template("change_summary.html.j2").render(record=record, called=called(record))
    return SectionText(summary, body, bool(slices.notes))


def called(record: Record) -> tuple[str, ...]:
    """What the sessions of a course are called on the page: by their names, where they have some."""
    names = tuple(session.session for session in record.sessions)
    if not all(name.isdecimal() for name in names):
        return names
    return ("before", "after") if len(names) == 2 else tuple(f"time {name}" for name in names)


def _pair(
    record: Record, pair: Pair, changes: list[LineageChange], cards: list[Card], slices: ChangeSlices
) -> PairSection:
    before, after = called(record)[pair.before : pair.after + 1]
    charts = [chart(kind, pair.counts[kind]) for kind in KINDS]
    return PairSection(pair, before, after, charts, cards, changes, slices.on_image[pair.before : pair.after + 1])


def _chosen(before: int, changes: Sequence[LineageChange]) -> list[Pictured]:
    """The lesions with pictures: each once, for what it is first chosen for."""
    found: dict[int, Pictured] = {}
    for kind, most in MOST.items():
        for change in pictured(changes, kind, most, LEAST):
            found.setdefault(change.lineage, Pictured(before, change, kind))
    return list(found.values())


def _through_time(lesion: LesionCourse) -> tuple[str, str]:
    existence = [one.existence for one in lesion.sessions]
    volumes = [one.volume_mm3 for one in lesion.sessions]
    known = [one or 0.0 for one in volumes]
    return (
        through_time(existence, [f"{one:.2f}" for one in existence], "Existence", 1.0),
        "" if None in volumes else through_time(known, [size(one) for one in known], "Volume"),
    )

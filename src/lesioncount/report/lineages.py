"""The record of a course → what has become of each lesion, from one session to the next and through all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.record import Record
from lesioncount.results.record_parts import Pair
from lesioncount.results.tables import any_of, change_in_words, total_of
from lesioncount.trust.candidate_table import Counted

# What a lineage is called whose candidates are not one before and one after.
_JOINED = ("split", "merged", "rearranged")


@dataclass(frozen=True, eq=False)
class SeenLesion:
    """What one session shows of a lesion.

    Attributes
    ----------
    candidates : tuple of LesionRow
        Those of its lineage: none, one, or several.
    """

    candidates: tuple[LesionRow, ...] = ()

    def __len__(self) -> int:
        return len(self.candidates)

    @cached_property
    def existence(self) -> float:
        """That at least one of its candidates is a lesion."""
        return any_of([one.existence for one in self.candidates])

    @cached_property
    def volume_mm3(self) -> float | None:
        """Of all its candidates; None when that is not known."""
        return total_of([one.volume_mm3 for one in self.candidates])

    @cached_property
    def n_voxels(self) -> int:
        """Of all its candidates."""
        return sum(one.n_voxels for one in self.candidates)

    def probability(self, name: str) -> float:
        """That at least one of its candidates is new (``p_new``), gone or persisting."""
        return any_of([getattr(one, name) or 0.0 for one in self.candidates])


@dataclass(frozen=True, eq=False)
class LineageChange:
    """What has become of a lesion from one session to the next.

    Attributes
    ----------
    lineage : int
    before, after : SeenLesion
        At least one of them has candidates.
    """

    lineage: int
    before: SeenLesion
    after: SeenLesion

    @property
    def word(self) -> str:
        """What has become of it, by the number of its candidates."""
        return change_in_words(len(self.before), len(self.after))

    @property
    def is_joined(self) -> bool:
        """Whether it has split, merged, or both."""
        return self.word in _JOINED

    @cached_property
    def p(self) -> dict[Counted, float]:
        """That it is new, gone or persisting, as the maps have it."""
        return {
            "new": self.after.probability("p_new"),
            "gone": self.before.probability("p_gone"),
            "persisting": self.after.probability("p_persisting"),
        }

    def peak(self, kind: Counted) -> LesionRow:
        """The candidate whose peak shows best what has become of it."""
        seen = self.before if kind == "gone" or not self.after else self.after
        name = f"p_{kind}"
        return max(seen.candidates, key=lambda one: (getattr(one, name) or 0.0, one.height))

    @property
    def nearby_before(self) -> float | None:
        """The highest probability before, near where it rises most after; None where there is nothing after."""
        return max((one.new_before or 0.0 for one in self.after.candidates), default=None)

    @property
    def nearby_after(self) -> float | None:
        """The highest probability after, near where it rises most before; None where there was nothing before."""
        return max((one.gone_after or 0.0 for one in self.before.candidates), default=None)


@dataclass(frozen=True, eq=False)
class LesionCourse:
    """A lesion through all sessions of a course."""

    lineage: int
    sessions: tuple[SeenLesion, ...]

    @property
    def changes(self) -> Iterator[str]:
        """What has become of it in each session after the first."""
        for before, after in zip(self.sessions, self.sessions[1:], strict=False):
            yield change_in_words(len(before), len(after))

    @property
    def order(self) -> tuple[float, float, int]:
        """Those first that have probably come or gone; of others, those that probably exist."""
        moved = [one.probability(name) for one in self.sessions for name in ("p_new", "p_gone")]
        return -max(moved), -max(one.existence for one in self.sessions), self.lineage


def changes_of(record: Record, pair: Pair) -> list[LineageChange]:
    """What has become of all lesions from one session to the next, the most probable changes first."""
    courses = ((one.lineage, one.sessions[pair.before], one.sessions[pair.after]) for one in _courses(record))
    found = [LineageChange(*one) for one in courses if one[1] or one[2]]
    return sorted(found, key=lambda one: (-max(one.p["new"], one.p["gone"]), -max(one.p.values()), one.lineage))


def courses_of(record: Record) -> list[LesionCourse]:
    """All lesions of a course, those first that have probably come or gone."""
    return sorted(_courses(record), key=lambda one: one.order)


def pictured(changes: Sequence[LineageChange], kind: Counted, most: int, least: float) -> list[LineageChange]:
    """The lesions that have most probably changed in one way; of persisting ones, those that split or merged first."""

    def order(one: LineageChange) -> tuple[bool, float, int]:
        is_plain = kind == "persisting" and not one.is_joined
        return is_plain, -one.p[kind], -max(one.before.n_voxels, one.after.n_voxels)

    return sorted((one for one in changes if one.p[kind] >= least), key=order)[:most]


def _courses(record: Record) -> list[LesionCourse]:
    members: dict[int, list[list[LesionRow]]] = defaultdict(lambda: [[] for _ in record.sessions])
    for place, session in enumerate(record.sessions):
        for lesion in session.lesions:
            members[lesion.lineage][place].append(lesion)
    return [
        LesionCourse(lineage, tuple(SeenLesion(tuple(seen)) for seen in members[lineage]))
        for lineage in sorted(members)
    ]

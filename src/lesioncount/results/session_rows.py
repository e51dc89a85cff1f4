"""The candidates of one session in a course, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.changes.lesion_changes import LesionChanges
from lesioncount.changes.rises import Rises
from lesioncount.results.lesion_rows import LesionRow


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowedLesion(LesionRow):
    """One candidate of a course: what `LesionRow` says of it, and of the sessions before and after.

    Attributes
    ----------
    lineage : int
        The number that all candidates of the same lesion have, in all sessions of the course.
    new_at, gone_at : str or None
        Index of the voxel at which it rises most above the session before, and above the one after, with blanks
        between numbers; None at the ends of the course.
    new_height, gone_height : float or None
        The probability there.
    new_before, gone_after : float or None
        The highest probability within the tolerance of it, one session before and one after.
    p_new, p_persisting : float or None
        That it is a lesion that was not, and that was, there one session before.
    p_gone : float or None
        That it is a lesion that is no longer there one session after.
    """

    lineage: int
    new_at: str | None = None
    new_height: float | None = None
    new_before: float | None = None
    gone_at: str | None = None
    gone_height: float | None = None
    gone_after: float | None = None
    p_new: float | None = None
    p_persisting: float | None = None
    p_gone: float | None = None

    @property
    def is_sound(self) -> bool:
        """Whether it has a lineage, its saddle lies below its peak, and all of its probabilities are some."""
        probabilities = (getattr(self, name) for name in _PROBABILITIES)
        if not all(value is None or 0 <= value <= 1 for value in probabilities):
            return False
        return self.lineage > 0 and 0 <= (self.saddle_probability or 0.0) <= self.height <= 1

    def row(self) -> dict[str, Any]:
        """The cells of its row; only those that there is something to say in."""
        own = {name: getattr(self, name) for name in FOLLOWED_COLUMNS}
        return {
            **LesionRow.row(self),
            **{name: value for name, value in own.items() if value is not None},
        }


FOLLOWED_COLUMNS = (
    "lineage", "new_at", "new_height", "new_before", "gone_at", "gone_height", "gone_after", "p_new", "p_persisting",
    "p_gone",
)  # fmt: skip
_PROBABILITIES = ("new_height", "new_before", "gone_height", "gone_after", "p_new", "p_persisting", "p_gone")


@dataclass(frozen=True, eq=False)
class Neighbour:
    """What another session says of the candidates of this one: values of `FollowedLesion`, one for each."""

    columns: dict[str, list[Any]]

    @classmethod
    def before(cls, step: LesionChanges) -> Neighbour:
        """What the session before says."""
        columns = {"p_new": step.p_new.tolist(), "p_persisting": step.p_persisting.tolist()}
        return cls(columns | _rises(step.risen, "new_at", "new_height", "new_before"))

    @classmethod
    def after(cls, step: LesionChanges) -> Neighbour:
        """What the session after says."""
        return cls({"p_gone": step.p_gone.tolist()} | _rises(step.fallen, "gone_at", "gone_height", "gone_after"))


def _rises(rises: Rises, at: str, height: str, other: str) -> dict[str, list[Any]]:
    places = [" ".join(map(str, index)) for index in rises.index.tolist()]
    return {at: places, height: rises.heights.tolist(), other: rises.others.tolist()}


def followed(
    rows: Sequence[LesionRow], lineages: NDArray[np.int64], neighbours: Sequence[Neighbour]
) -> tuple[FollowedLesion, ...]:
    """Rows of candidates, with their lineages and what neighbouring sessions say of them."""
    columns = {name: values for one in neighbours for name, values in one.columns.items()}
    return tuple(
        FollowedLesion(
            **{name: getattr(row, name) for name in LesionRow.__slots__},
            lineage=int(lineages[place]),
            **{name: values[place] for name, values in columns.items()},
        )
        for place, row in enumerate(rows)
    )

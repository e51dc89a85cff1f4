"""A question and candidates → the states that the question tells apart, and what moves from one to another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import QuestionError
from lesioncount.questions.conditions import Condition, Form
from lesioncount.questions.trials import Trials

# A table of so many states, and one for each kind of extra lesion, takes a few hundred megabytes and seconds.
_MOST_STATES = 10_000_000


@dataclass(frozen=True, eq=False)
class States:
    """All combinations of values of the sums that a question compares, as far as it tells them apart.

    A sum in which all counts are added can only grow: from the largest number on that it is compared with, more of it
    changes nothing, and all larger values are one. A difference, as in ``new > gone``, has all values that it can take.

    Parameters
    ----------
    forms : sequence of Form, length F
        The sums that can take more than one value.
    low, high : tuple of int, length F
        The smallest and the largest value of each.
    steps : ndarray of int, shape (K, F)
        What each outcome adds to each sum.
    extra_steps : tuple of ndarray of int, shape (C, F)
        For each kind of extra lesions, what one in each cell adds.
    fixed : frozenset of Form
        Sums whose value is always 0, or does not matter.
    """

    forms: tuple[Form, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    steps: NDArray[np.int64]
    extra_steps: tuple[NDArray[np.int64], ...]
    fixed: frozenset[Form]

    @classmethod
    def of(cls, condition: Condition, trials: Trials, n_extra: Sequence[int] = ()) -> States:
        """Those of a condition, where there are at most so many extra lesions of each kind."""
        enough: dict[Form, int] = {}
        for link in condition.links():
            enough[link.form] = max(link.enough, enough.get(link.form, 0))
        forms = list(enough)
        steps = _steps(forms, trials.adds, trials.probability.shape[1])
        extra_steps = tuple(_steps(forms, extra.adds, len(extra.share)) for extra in trials.extras)
        up = _reach(steps, extra_steps, n_extra)
        low = -_reach(-steps, tuple(-one for one in extra_steps), n_extra)
        only_grow = np.array([all(times > 0 for _, times in form) for form in forms], dtype=bool)
        high = np.where(only_grow, np.minimum(up, [enough[form] for form in forms]), up)
        return cls._without_fixed(forms, low, high, steps, extra_steps)

    @classmethod
    def _without_fixed(
        cls,
        forms: Sequence[Form],
        low: NDArray[np.int64],
        high: NDArray[np.int64],
        steps: NDArray[np.int64],
        extra_steps: tuple[NDArray[np.int64], ...],
    ) -> States:
        varies = np.flatnonzero(high > low).tolist()
        low, high = low[varies], high[varies]
        return cls(
            tuple(forms[i] for i in varies),
            tuple(low.tolist()),
            tuple(high.tolist()),
            np.minimum(steps[:, varies], high),
            tuple(np.minimum(one[:, varies], high) for one in extra_steps),
            frozenset(forms) - {forms[i] for i in varies},
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of values."""
        return tuple(high - low + 1 for low, high in zip(self.low, self.high, strict=True))

    @property
    def size(self) -> int:
        """Number of states."""
        return math.prod(self.shape)

    def check_size(self) -> None:
        """Raise where there are more states than fit."""
        n_steps = max((len(np.unique(one, axis=0)) for one in self.extra_steps), default=0)
        if self.size * max(n_steps, 1) > _MOST_STATES:
            raise QuestionError(
                f"The question compares {len(self.forms)} sums at once, which makes {self.size:.3g} states; at most "
                f"{_MOST_STATES:.0g} can be told apart. Ask for fewer sums, or smaller numbers, at a time: instead of "
                '"a >= 1 or b >= 1", for example, "a + b >= 1".'
            )

    def holding(self, condition: Condition) -> NDArray[np.float64]:
        """1 for states in which a condition holds, else 0, shape (S,)."""
        held = condition.holds(self._values())
        return np.broadcast_to(held, self.shape).astype(np.float64).ravel()

    def moved(self, steps: NDArray[np.int64]) -> NDArray[np.intp]:
        """The state that each is in after each of some steps, shape (number of steps, S)."""
        axes = [np.arange(n) for n in self.shape]
        return np.array([self._number([*map(np.add, axes, step)]) for step in steps.tolist()])

    def _number(self, places: list[NDArray[np.int64]]) -> NDArray[np.intp]:
        clipped = [np.clip(place, 0, n - 1) for place, n in zip(places, self.shape, strict=True)]
        return np.ravel_multi_index(np.ix_(*clipped), self.shape).ravel()

    def _values(self) -> Mapping[Form, NDArray[np.int64]]:
        ranges = [np.arange(low, high + 1) for low, high in zip(self.low, self.high, strict=True)]
        mesh = np.ix_(*ranges) if ranges else ()
        return dict(zip(self.forms, mesh, strict=True)) | dict.fromkeys(self.fixed, np.zeros((), dtype=np.int64))


def _steps(forms: Sequence[Form], adds: Mapping[str, NDArray[np.bool_]], n: int) -> NDArray[np.int64]:
    steps = np.zeros((n, len(forms)), dtype=np.int64)
    for i, form in enumerate(forms if n else ()):
        for name, times in form:
            steps[:, i] += times * adds[name]
    return steps


def _reach(
    steps: NDArray[np.int64], extra_steps: Sequence[NDArray[np.int64]], n_extra: Sequence[int]
) -> NDArray[np.int64]:
    """How far up each sum can get."""
    reach = steps.clip(min=0).sum(axis=0)
    for one, n in zip(extra_steps, n_extra, strict=True):
        reach = reach + n * one.clip(min=0).max(axis=0, initial=0)
    return np.asarray(reach)

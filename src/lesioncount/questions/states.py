"""A question and candidates → the sums that decide it, how far each reaches, and where the answer may change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import QuestionError
from lesioncount.questions.conditions import Condition, Form
from lesioncount.questions.trials import Trials

# A table of so many states takes a few hundred megabytes and seconds.
_MOST_STATES = 10_000_000


@dataclass(frozen=True, eq=False)
class States:
    """All combinations of values of the sums that a question compares, as far as it tells them apart.

    A sum in which all counts are added can only grow: from the largest number on that it is compared with, more of it
    changes nothing, and all larger values are one. A difference, as in ``new > gone``, has all values that it can take.

    Parameters
    ----------
    forms : sequence of Form, length F
        The sums on which the answer depends.
    low, high : tuple of int, length F
        The smallest and the largest value of each.
    edges : tuple of ndarray of int, length F
        For each, the first value of each range in which the question does not tell values apart.
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
    edges: tuple[NDArray[np.int64], ...]
    steps: NDArray[np.int64]
    extra_steps: tuple[NDArray[np.int64], ...]
    fixed: frozenset[Form]

    @classmethod
    def of(cls, condition: Condition, trials: Trials, n_extra: Sequence[int] = ()) -> States:
        """Those of a condition, where there are at most so many extra lesions of each kind."""
        edges: dict[Form, set[int]] = {}
        for link in condition.links():
            edges.setdefault(link.form, set()).update(link.edges)
        forms = list(edges)
        steps = _steps(forms, trials.adds, trials.probability.shape[1])
        extra_steps = tuple(_steps(forms, extra.adds, len(extra.share)) for extra in trials.extras)
        up = _reach(steps, extra_steps, n_extra)
        low = -_reach(-steps, tuple(-one for one in extra_steps), n_extra)
        only_grow = np.array([all(times > 0 for _, times in form) for form in forms], dtype=bool)
        high = np.where(only_grow, np.minimum(up, [max(0, *edges[form]) for form in forms]), up)
        ranges = [
            np.array([first, *sorted(edge for edge in edges[form] if first < edge <= last)])
            for form, first, last in zip(forms, low.tolist(), high.tolist(), strict=True)
        ]
        varies = [i for i, one in enumerate(ranges) if len(one) > 1]
        return cls(
            tuple(forms[i] for i in varies),
            tuple(low[varies].tolist()),
            tuple(high[varies].tolist()),
            tuple(ranges[i] for i in varies),
            np.minimum(steps[:, varies], high[varies]),
            tuple(np.minimum(one[:, varies], high[varies]) for one in extra_steps),
            frozenset(forms) - {forms[i] for i in varies},
        )

    @property
    def size(self) -> int:
        """Number of states."""
        return math.prod(high - low + 1 for low, high in zip(self.low, self.high, strict=True))

    def check_size(self, size: int) -> None:
        """Raise where a table of so many states is needed, and does not fit."""
        if size > _MOST_STATES:
            raise QuestionError(
                f"The question compares {len(self.forms)} sums at once, which makes {size:.3g} states; at most "
                f"{_MOST_STATES:.0g} can be told apart. Ask for fewer sums, or smaller numbers, at a time: instead of "
                '"a >= 1 or b >= 1", for example, "a + b >= 1".'
            )

    def holding(self, condition: Condition) -> NDArray[np.float64]:
        """1 where a condition holds, else 0, for each combination of ranges of the sums."""
        shape = tuple(map(len, self.edges))
        self.check_size(math.prod(shape))
        values: dict[Form, Any] = dict(zip(self.forms, np.ix_(*self.edges), strict=True))
        held = condition.holds(values | dict.fromkeys(self.fixed, np.zeros((), dtype=np.int64)))
        return np.broadcast_to(held, shape).astype(np.float64)


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

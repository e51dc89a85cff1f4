"""Candidates → independent parts of the joint distribution, and the joint distribution of several sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.poisson_binomial import binned_rows
from lesioncount.questions.states import States

# Up to so many states, trials with several outcomes are added in pairs, and not one by one.
_FEW_STATES = 64


def joint_of(probability: NDArray[np.float64], trial: NDArray[np.intp] | None, states: States) -> NDArray[np.float64]:
    """The probability of each state at each node, shape (M, S), from that of each outcome, shape (M, K)."""
    nothing = Joint(np.ones((len(probability), *[1] * len(states.shape))), (0,) * len(states.shape))
    total = reduce(lambda a, b: added(a, b, states.high), _parts(probability, trial, states), nothing)
    begins = [low - first for low, first in zip(total.low, states.low, strict=True)]
    full = np.zeros((len(probability), *states.shape))
    full[(slice(None), *[slice(begin, begin + n) for begin, n in zip(begins, total.shape, strict=True)])] = total.values
    return full.reshape(len(probability), -1)


def _parts(probability: NDArray[np.float64], trial: NDArray[np.intp] | None, states: States) -> Iterator[Joint]:
    moving = np.flatnonzero(states.steps.any(axis=1))
    if not len(moving):
        return
    p = np.take(probability, moving, axis=1)
    steps, kind = np.unique(states.steps[moving], axis=0, return_inverse=True)
    kind = kind.ravel()
    if trial is not None:
        p, kind, trial = _merged(p, kind, trial[moving])
        alone = np.bincount(trial)[trial] == 1
        yield from _choices(p[:, ~alone], kind[~alone], trial[~alone], steps, states)
        p, kind = p[:, alone], kind[alone]
    for i in np.unique(kind).tolist():
        yield _alike(np.take(p, np.flatnonzero(kind == i), axis=1), steps[i], states.high)


def _merged(
    p: NDArray[np.float64], kind: NDArray[np.intp], trial: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
    """Outcomes of one trial that add the same, as one: their probability, kind and trial, trial after trial."""
    n_kinds = int(kind.max()) + 1
    pairs, number = np.unique(trial * n_kinds + kind, return_inverse=True)
    merged = np.zeros((len(pairs), len(p)))
    np.add.at(merged, number, p.T)
    return np.minimum(merged.T, 1.0), pairs % n_kinds, pairs // n_kinds


def _alike(p: NDArray[np.float64], step: NDArray[np.int64], high: tuple[int, ...]) -> Joint:
    """Candidates that add the same: their number is Poisson-binomial, up to where more of them change nothing."""
    n = p.shape[1]
    enough = min(n, max(-(-end // by) if by > 0 else n for end, by in zip(high, step.tolist(), strict=True) if by))
    places = np.minimum(np.arange(enough + 1)[:, np.newaxis] * step, high)
    low = places.min(axis=0)
    values = np.zeros((len(p), *(places.max(axis=0) - low + 1)))
    values[(slice(None), *(places - low).T)] = binned_rows(p, enough)
    return Joint(values, tuple(low.tolist()))


def _choices(
    p: NDArray[np.float64],
    kind: NDArray[np.intp],
    trial: NDArray[np.intp],
    steps: NDArray[np.int64],
    states: States,
) -> Iterator[Joint]:
    """Trials with several outcomes; those with the same ones side by side."""
    of_trial: dict[int, list[int]] = {}
    for i, number in enumerate(trial.tolist()):
        of_trial.setdefault(number, []).append(i)
    alike: dict[tuple[int, ...], list[list[int]]] = {}
    for outcomes in of_trial.values():
        alike.setdefault(tuple(kind[outcomes].tolist()), []).append(outcomes)
    for kinds, trials in alike.items():
        side_by_side = _one_choice(p[:, trials], steps[list(kinds)])
        yield from _in_pairs(side_by_side, states)


def _one_choice(p: NDArray[np.float64], steps: NDArray[np.int64]) -> Joint:
    """Trials side by side, from probabilities of shape (M, trials, outcomes)."""
    low, high = np.minimum(steps.min(axis=0), 0), np.maximum(steps.max(axis=0), 0)
    values = np.zeros((*p.shape[:2], *(high - low + 1)))
    values[(..., *-low)] = np.maximum(1 - p.sum(axis=2), 0.0)
    for i, place in enumerate((steps - low).tolist()):
        values[(..., *place)] += p[..., i]
    return Joint(values, tuple(low.tolist()))


def _in_pairs(trials: Joint, states: States) -> Iterator[Joint]:
    """The total of trials side by side, or each where there are many states: sums of pairs would have many, too."""
    values, low = trials.values, trials.low
    while states.size <= _FEW_STATES and (half := values.shape[1] // 2):
        if values.shape[1] % 2:
            yield Joint(values[:, -1], low)
        paired = added(Joint(values[:, :half], low), Joint(values[:, half : 2 * half], low), states.high)
        values, low = paired.values, paired.low
    for one in range(values.shape[1]):
        yield Joint(values[:, one], low)


@dataclass(frozen=True)
class Joint:
    """Probabilities of all combinations of values of some sums, of one scan or of many side by side.

    Parameters
    ----------
    values : ndarray of float, shape (…, L_1, … L_F)
        Scans, then an axis for each sum.
    low : tuple of int, length F
        The value that the first entry of each axis stands for.
    """

    values: NDArray[np.float64]
    low: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of values of each sum."""
        return self.values.shape[self.values.ndim - len(self.low) :]

    @cached_property
    def cells(self) -> NDArray[np.intp]:
        """Combinations that are possible in any of the scans."""
        return np.argwhere(self.values.reshape(-1, *self.shape).any(axis=0))


def added(a: Joint, b: Joint, ends: tuple[int, ...]) -> Joint:
    """The distribution of the sums of two independent parts; a value above the end of its axis is taken as the end."""
    if len(a.cells) < len(b.cells):
        a, b = b, a
    low = tuple(x + y for x, y in zip(a.low, b.low, strict=True))
    lengths = zip(low, a.shape, b.shape, ends, strict=True)
    shape = tuple(min(begin + n_a + n_b - 2, end) - begin + 1 for begin, n_a, n_b, end in lengths)
    total = np.zeros((*a.values.shape[: a.values.ndim - len(low)], *shape))
    wide = (..., *[np.newaxis] * len(low))
    for cell in b.cells.tolist():
        _add_shifted(total, a.values * b.values[(..., *cell)][wide], cell)
    return Joint(total, low)


def _add_shifted(total: NDArray[np.float64], block: NDArray[np.float64], cell: list[int]) -> None:
    first = total.ndim - len(cell)
    where: list[Any] = [...]
    for axis, begin in enumerate(cell, first):
        room = total.shape[axis] - begin
        if block.shape[axis] > room:
            block = _folded(block, axis, room)
        where.append(slice(begin, begin + block.shape[axis]))
    total[tuple(where)] += block


def _folded(block: NDArray[np.float64], axis: int, room: int) -> NDArray[np.float64]:
    """All entries of an axis from the last that there is room for, as one."""
    return np.add.reduceat(block, np.arange(room), axis=axis)

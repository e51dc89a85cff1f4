"""Candidates, and lesions without one → independent parts of what is added to the sums of a question."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.poisson_binomial import binned_rows
from lesioncount.distributions.with_extra import enough_extra, log_pmf_of_extra
from lesioncount.questions.joint import Joint, Part, folded, total
from lesioncount.questions.states import States
from lesioncount.questions.trials import ExtraLesions

# Up to so many states, trials with several outcomes are added in pairs, and not one by one.
_FEW_STATES = 64

# What each of some candidates or extra lesions adds, shape (F,), and P(0), P(1), … of their number, shape (M, n + 1).
Number = tuple[NDArray[np.int64], NDArray[np.float64]]


def lines(numbers: Sequence[Number], states: States) -> list[Part]:
    """A part for each step, with the number of all candidates and extra lesions that make it."""
    alike: dict[tuple[int, ...], list[NDArray[np.float64]]] = {}
    for step, number in numbers:
        if number.shape[1] > 1:
            alike.setdefault(tuple(step.tolist()), []).append(number)
    return [_line(np.array(step), of, states) for step, of in alike.items()]


def _line(step: NDArray[np.int64], numbers: Sequence[NDArray[np.float64]], states: States) -> Part:
    enough = _enough(step, sum(number.shape[1] - 1 for number in numbers), states)
    each = [folded(number, 1, enough + 1) for number in numbers]
    parts = [Part(np.arange(number.shape[1])[:, np.newaxis], number) for number in each]
    all_of_them = total(parts, len(each[0]), (enough,)).values
    return Part(np.minimum(np.arange(enough + 1)[:, np.newaxis] * step, states.high), all_of_them)


def _enough(step: NDArray[np.int64], n: int, states: States) -> int:
    """The number from which on more, of n at most, change nothing."""
    ends = zip(states.high, step.tolist(), strict=True)
    return min(n, max(-(-end // by) if by > 0 else n for end, by in ends if by))


def of_candidates(
    probability: NDArray[np.float64], trial: NDArray[np.intp] | None, states: States
) -> tuple[list[Number], list[Part]]:
    """Numbers of candidates with one outcome that add the same, and parts of those with several.

    Parameters
    ----------
    probability : ndarray of float, shape (M, K)
        Of each outcome, at each node.
    trial : ndarray of int, shape (K,), optional
        Outcomes with the same number exclude each other.
    states : States
    """
    moving = np.flatnonzero(states.steps.any(axis=1))
    if not len(moving):
        return [], []
    p = np.take(probability, moving, axis=1)
    steps, kind = np.unique(states.steps[moving], axis=0, return_inverse=True)
    kind, choices = kind.ravel(), []
    if trial is not None:
        p, kind, trial = _merged(p, kind, trial[moving])
        alone = np.bincount(trial)[trial] == 1
        choices = list(_choices(p[:, ~alone], kind[~alone], trial[~alone], steps, states))
        p, kind = p[:, alone], kind[alone]
    alike = ((steps[i], np.take(p, np.flatnonzero(kind == i), axis=1)) for i in np.unique(kind).tolist())
    return [(step, binned_rows(of, _enough(step, of.shape[1], states))) for step, of in alike], choices


def _merged(
    p: NDArray[np.float64], kind: NDArray[np.intp], trial: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
    """Outcomes of one trial that add the same, as one: their probability, kind and trial, trial after trial."""
    n_kinds = int(kind.max()) + 1
    pairs, number = np.unique(trial * n_kinds + kind, return_inverse=True)
    merged = np.zeros((len(pairs), len(p)))
    np.add.at(merged, number, p.T)
    return np.minimum(merged.T, 1.0), pairs % n_kinds, pairs // n_kinds


def _choices(
    p: NDArray[np.float64],
    kind: NDArray[np.intp],
    trial: NDArray[np.intp],
    steps: NDArray[np.int64],
    states: States,
) -> Iterator[Part]:
    """Trials with several outcomes; those with the same ones side by side."""
    of_trial: dict[int, list[int]] = {}
    for i, number in enumerate(trial.tolist()):
        of_trial.setdefault(number, []).append(i)
    alike: dict[tuple[int, ...], list[list[int]]] = {}
    for outcomes in of_trial.values():
        alike.setdefault(tuple(kind[outcomes].tolist()), []).append(outcomes)
    for kinds, trials in alike.items():
        of_each = p[:, trials]
        none = np.maximum(1 - of_each.sum(axis=2, keepdims=True), 0.0)
        places = np.concatenate([np.zeros_like(steps[:1]), steps[list(kinds)]])
        yield from _in_pairs(Part(places, np.concatenate([none, of_each], axis=2)), states)


def _in_pairs(trials: Part, states: States) -> Iterator[Part]:
    """The total of trials side by side, or each where there are many states: sums of pairs would have many, too."""
    places, p = trials.places, trials.probability
    while states.size <= _FEW_STATES and (half := p.shape[1] // 2):
        if p.shape[1] % 2:
            yield Part(places, p[:, -1])
        one, other = Part(places, p[:, :half]), Part(places, p[:, half : 2 * half])
        both = Joint.of(one).plus(other, states.high).as_part()
        places, p = both.places, both.probability
    for i in range(p.shape[1]):
        yield Part(places, p[:, i])


# What is left of the distribution of the number of extra lesions is given to the largest one.
_NEGLIGIBLE = 1e-12
_MOST = 100_000

# Once a further lesion changes no probability by more than this, none after it does: each is a mean of those before.
_NO_CHANGE = 1e-15

# Extra lesions from one look at whether anything still changes to the next.
_AT_ONCE = 8


def most_extra(mean: NDArray[np.float64], shape: float) -> int:
    """A number of extra lesions beyond which nothing matters at any node."""
    return min(enough_extra(float(mean.max()), shape), _MOST) if mean.any() else 0


def _numbers_of_extra(mean: NDArray[np.float64], shape: float) -> NDArray[np.float64]:
    """P(0), P(1), … of the number of extra lesions at each of M nodes, up to where nothing is left, shape (M, J)."""
    pmf = np.exp(log_pmf_of_extra(mean, shape, most_extra(mean, shape)))
    left = np.cumsum(pmf[:, ::-1], axis=1)[:, ::-1].max(axis=0)  # P(j or more)
    n = max(int(np.count_nonzero(left > _NEGLIGIBLE)), 1)
    pmf = pmf[:, :n]
    pmf[:, -1] += np.maximum(1 - pmf.sum(axis=1), 0.0)
    return pmf


def of_extra(
    mean: NDArray[np.float64], extra: ExtraLesions, steps: NDArray[np.int64], states: States
) -> tuple[list[Number], list[Part]]:
    """Numbers of extra lesions that add the same, where these are independent; else all of them as one part.

    Parameters
    ----------
    mean : ndarray of float, shape (M,)
        Expected number, at each node.
    extra : ExtraLesions
        How it is spread, and into which of C cells each falls.
    steps : ndarray of int, shape (C, F)
        What one adds in each cell.
    states : States

    Notes
    -----
    Of a Poisson number of mean m, those that fall into a cell of share q are Poisson with mean q·m, independent of
    those in other cells. Of a negative binomial number they have the same shape and mean q·m, but are not independent.
    """
    steps, kind = np.unique(steps, axis=0, return_inverse=True)
    shares = np.bincount(kind.ravel(), weights=extra.share, minlength=len(steps))
    moves = steps.any(axis=1) & (shares > 0)
    steps, shares = steps[moves], shares[moves]
    if math.isinf(extra.shape) or len(steps) < 2:
        return [(step, _numbers_of_extra(mean * one, extra.shape)) for step, one in zip(steps, shares, strict=True)], []
    counted = shares.sum()
    return [], [_one_by_one(_numbers_of_extra(mean * counted, extra.shape), shares / counted, steps, states)]


def _one_by_one(
    numbers: NDArray[np.float64], shares: NDArray[np.float64], steps: NDArray[np.int64], states: States
) -> Part:
    """What extra lesions add, from the probabilities of their number at each node.

    With e what one adds, and e^j what j add, it is Σ_j P(j) e^j, where only P(j) differs between nodes.
    """
    n = numbers.shape[1] - 1
    low = np.maximum(n * steps.min(axis=0).clip(max=0), states.low)
    high = np.minimum(n * steps.max(axis=0).clip(min=0), states.high)
    shape = (high - low + 1).tolist()
    states.check_size(math.prod(shape) * len(steps))
    places = np.indices(shape).reshape(len(shape), -1).T + low
    to = np.array([np.ravel_multi_index((np.clip(places + step, low, high) - low).T, shape) for step in steps]).ravel()
    after: NDArray[Any] = np.zeros(len(places))
    after[np.ravel_multi_index(-low, shape)] = 1
    added = np.zeros((len(numbers), len(places)))
    for first in range(0, n + 1, _AT_ONCE):
        some, each = numbers[:, first : first + _AT_ONCE], []
        for _ in range(some.shape[1]):
            each.append(after)
            after = np.bincount(to, np.outer(shares, after).ravel(), len(places))
        added += some @ np.array(each)
        if np.abs(after - each[-1]).max() <= _NO_CHANGE:
            added += np.outer(numbers[:, first + _AT_ONCE :].sum(axis=1), after)
            break
    return Part(places, added)

"""A question and candidates, and lesions without one → the probability that the answer is yes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lesioncount.questions.joint import Joint, Part, n_cells, total
from lesioncount.questions.parts import lines, most_extra, of_candidates, of_extra
from lesioncount.questions.question import Question
from lesioncount.questions.states import States
from lesioncount.questions.tokens import unknown
from lesioncount.questions.trials import Trials

# Nodes are worked through together as long as all their states fit into so many numbers.
_AT_ONCE = 1_000_000


def probability_of(question: Question, trials: Trials, /) -> float:
    """The probability that the true numbers of lesions fulfil a question: exact, if candidates are independent.

    Parameters
    ----------
    question : Question
        All its names must be among those of the trials (`Question.given` sees to that).
    trials : Trials
        The candidates, and what each adds to.

    Raises
    ------
    QuestionError
        If a name is not counted, or there are too many combinations of counts to tell apart.

    Notes
    -----
    With x_k the outcome of trial k, and d_k what it adds to the sums that the question compares, these are
    s = Σ_k d_k(x_k), with independent terms. Candidates that add the same are added at once, as a Poisson-binomial
    number, and so are extra lesions. At nodes z of what a scan shares, with weights w::

        P(yes) = Σ_z w_z P_z(s fulfils it)

    Let c be what is added by all that adds to several sums, as lesions in regions that overlap do. Given c, sums are
    independent, and sum i ends in each of the ranges that the question tells apart with a probability that one
    cumulative distribution gives, W_i. With h = 1 for ranges r in which the question holds, and 0 for others::

        P_z(s fulfils it) = Σ_c P_z(c) Σ_r h(r) Π_i W_i(r_i | c_i)

    So two regions that overlap need no table of all their numbers: c is the number of candidates in both. In more
    dimensions there is a table of c, without what the candidates add of which there are most; it stays small, as counts
    above the largest number that they are compared with are one.

    Examples
    --------
    >>> trials = Trials(
    ...     probability=[0.9, 0.5, 0.5],
    ...     adds={"periventricular": [True, False, False], "juxtacortical": [False, True, True]},
    ... )
    >>> round(probability_of(Question.parse("periventricular >= 1 and juxtacortical >= 1"), trials), 3)
    0.675
    """
    missing = [name for name in question.names if name not in trials.adds]
    if missing:
        raise unknown(missing, trials.adds)
    means = [np.broadcast_to(extra.mean, len(trials.weights)) for extra in trials.extras]
    n_extra = [most_extra(mean, extra.shape) for mean, extra in zip(means, trials.extras, strict=True)]
    states = States.of(question.condition, trials, n_extra)
    holding = states.holding(question.condition)
    at_once = max(_AT_ONCE // states.size, 1)
    chunks = [slice(first, first + at_once) for first in range(0, len(trials.weights), at_once)]
    at_nodes = [_at_nodes(trials, nodes, [mean[nodes] for mean in means], states, holding) for nodes in chunks]
    return float(np.clip(trials.weights @ np.concatenate(at_nodes), 0.0, 1.0))


def _at_nodes(
    trials: Trials, nodes: slice, means: Sequence[NDArray[np.float64]], states: States, holding: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The probability at each of some nodes."""
    p, n_sums = trials.probability[nodes], len(states.forms)
    numbers, parts = of_candidates(p, trials.trial, states)
    for mean, extra, steps in zip(means, trials.extras, states.extra_steps, strict=True):
        more_numbers, more_parts = of_extra(mean, extra, steps, states)
        numbers, parts = numbers + more_numbers, parts + more_parts
    alone: list[list[Part]] = [[] for _ in range(n_sums)]
    shared = [Part(np.zeros((1, n_sums), dtype=np.int64), np.ones((len(p), 1)))]
    for line in lines(numbers, states):
        axes = np.flatnonzero(line.places[-1]).tolist()
        (shared if len(axes) > 1 else alone[axes[0]]).append(line)
    *others, longest = sorted(shared, key=lambda line: len(line.places))
    states.check_size(n_cells([*parts, *others], states.high))
    joint = total([*parts, *others], len(p), states.high)
    within = [_within(total(one, len(p), states.high), axis, states) for axis, one in enumerate(alone)]
    answers = (_mean(joint, some, within, holding, states) for some in _in_pieces(longest, joint, holding))
    return np.asarray(sum(answers))


def _within(alone: Joint, axis: int, states: States) -> NDArray[np.float64]:
    """How probably a sum ends in each of its ranges, from each of its values on, shape (M, values, ranges).

    Of two differences of cumulative sums, from below and from above, the one of smaller numbers keeps more digits.
    """
    p = alone.values.reshape(len(alone.values), -1)
    n = p.shape[1]
    below, above = np.zeros((2, len(p), n + 1))
    np.cumsum(p, axis=1, out=below[:, 1:])
    np.cumsum(p[:, ::-1], axis=1, out=above[:, -2::-1])
    values = np.arange(states.low[axis], states.high[axis] + 1)[:, np.newaxis]
    inner = np.clip(states.edges[axis][1:] - values - alone.low[axis], 0, n)
    at = np.concatenate([np.zeros_like(values), inner, np.full_like(values, n)], axis=1)
    left, right = below[:, at], above[:, at]
    return np.where(left[..., 1:] < right[..., :-1], np.diff(left), -np.diff(right))


def _mean(
    joint: Joint, part: Part, within: Sequence[NDArray[np.float64]], holding: NDArray[np.float64], states: States
) -> NDArray[np.float64]:
    """The share of some places of a part in the probability, at each node."""
    n_nodes, n_places = part.probability.shape
    held = joint.values.reshape(n_nodes, 1, 1, -1)
    for axis, (first, n) in enumerate(zip(joint.low.tolist(), joint.shape, strict=True)):
        values = part.places[:, axis, np.newaxis] + np.arange(first, first + n)
        at = np.clip(values, states.low[axis], states.high[axis]) - states.low[axis]
        ends = np.swapaxes(within[axis][:, at], 2, 3)  # nodes, places, ranges, values
        if axis == 0:  # one product for all places, which is faster
            held = ends.reshape(n_nodes, -1, n) @ held.reshape(n_nodes, n, -1)
        else:
            held = ends[:, :, np.newaxis] @ held.reshape(n_nodes, n_places, -1, n, math.prod(joint.shape[axis + 1 :]))
    yes = held.reshape(n_nodes, -1, holding.size) @ holding.ravel()
    return np.asarray((part.probability * yes).sum(axis=1))


def _in_pieces(part: Part, joint: Joint, holding: NDArray[np.float64]) -> Iterator[Part]:
    """Some places of a part after the other, as many as can be worked through at once."""
    n, ranges = joint.shape, holding.shape
    tables = [math.prod(ranges[:axis]) * math.prod(n[axis:]) for axis in range(1, len(n) + 1)]
    largest = max([1, *tables, *(x * y for x, y in zip(n, ranges, strict=True))])
    at_once = max(_AT_ONCE // (largest * len(joint.values)), 1)
    for first in range(0, len(part.places), at_once):
        some = slice(first, first + at_once)
        yield Part(part.places[some], part.probability[:, some])

"""A question and candidates, and lesions without one → the probability that the answer is yes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.with_extra import enough_extra, log_pmf_of_extra
from lesioncount.questions.parts import joint_of
from lesioncount.questions.question import Question
from lesioncount.questions.states import States
from lesioncount.questions.tokens import unknown
from lesioncount.questions.trials import ExtraLesions, Trials

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
    s = Σ_k d_k(x_k), with independent terms. Their joint distribution is small: counts above the largest number that
    they are compared with are one. Candidates that add the same are added at once, as a Poisson-binomial number. At
    nodes z of what a scan shares, with weights w, and with d_1 … d_j what j extra lesions add::

        P(yes) = Σ_z w_z Σ_j P_z(j extra lesions) P_z(s + d_1 + … + d_j fulfils it)

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
    numbers = [numbers_of_extra(extra, len(trials.weights)) for extra in trials.extras]
    states = States.of(question.condition, trials, [one.shape[1] - 1 for one in numbers])
    states.check_size()
    at_nodes = _at_nodes(question, trials, states, numbers)
    return float(np.clip(trials.weights @ at_nodes, 0.0, 1.0))


def _at_nodes(
    question: Question, trials: Trials, states: States, numbers: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """The probability at each node."""
    holding = states.holding(question.condition)
    at_once = max(_AT_ONCE // states.size, 1)
    parts = []
    for first in range(0, len(trials.weights), at_once):
        nodes = slice(first, first + at_once)
        joint = joint_of(trials.probability[nodes], trials.trial, states)
        parts.append(_with_extra(joint, holding, trials.extras, [one[nodes] for one in numbers], states))
    return np.concatenate(parts)


def _with_extra(
    joint: NDArray[np.float64],
    holding: NDArray[np.float64],
    extras: Sequence[ExtraLesions],
    numbers: Sequence[NDArray[np.float64]],
    states: States,
) -> NDArray[np.float64]:
    """The probability at each node, from that of each state; kinds of extra lesions come one after the other."""
    kinds = list(zip(numbers, [one.share for one in extras], states.extra_steps, strict=True))
    for kind in kinds[:-1]:
        holding = np.asarray(sum(p[:, np.newaxis] * held for p, held in holding_by_number(holding, *kind, states)))
    if not kinds:
        return _mean(joint, holding)
    return np.asarray(sum(p * _mean(joint, held) for p, held in holding_by_number(holding, *kinds[-1], states)))


def _mean(joint: NDArray[np.float64], holding: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(joint @ holding if holding.ndim == 1 else (joint * holding).sum(axis=1))


# What is left of the distribution of their number is given to the largest one.
_NEGLIGIBLE = 1e-12
_MOST = 100_000

# Once a further lesion changes no probability by more than this, none after it does: each is a mean of those before.
_NO_CHANGE = 1e-15

# Steps from one look at whether anything still changes to the next.
_STEPS = 8


def numbers_of_extra(extra: ExtraLesions, n_nodes: int) -> NDArray[np.float64]:
    """P(0), P(1), … of the number of extra lesions at each node, up to where nothing is left, shape (M, J)."""
    mean = np.broadcast_to(extra.mean, n_nodes)
    if not mean.any():
        return np.ones((n_nodes, 1))
    last = min(enough_extra(float(mean.max()), extra.shape), _MOST)
    pmf = np.exp(log_pmf_of_extra(mean, extra.shape, last))
    left = np.cumsum(pmf[:, ::-1], axis=1)[:, ::-1].max(axis=0)  # P(j or more)
    n = max(int(np.count_nonzero(left > _NEGLIGIBLE)), 1)
    pmf = pmf[:, :n]
    pmf[:, -1] += np.maximum(1 - pmf.sum(axis=1), 0.0)
    return pmf


def holding_by_number(
    holding: NDArray[np.float64],
    numbers: NDArray[np.float64],
    share: NDArray[np.float64],
    steps: NDArray[np.int64],
    states: States,
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """How probable each number of extra lesions is, shape (M,), and how probably the question holds after so many.

    The latter is given for each state that candidates lead to, in the shape of `holding`.

    Parameters
    ----------
    holding : ndarray of float, shape (S,) or (M, S)
        The same without these extra lesions; of all nodes alike, or of each.
    numbers : ndarray of float, shape (M, J)
        Probabilities of their number at each node.
    share : ndarray of float, shape (C,)
        Into which cell each falls.
    steps : ndarray of int, shape (C, F)
        What one adds in each cell.
    states : States

    Notes
    -----
    With E the change of state by one extra lesion and h what is given, the question holds with Σ_j P(j) E^j·h. E is the
    same at all nodes, so E^j·h is, too, if h is: it is made once for all of them, by looking up where each state would
    go.
    """
    steps, kind = np.unique(steps, axis=0, return_inverse=True)
    shares = np.bincount(kind.ravel(), weights=share, minlength=len(steps))
    to = states.moved(steps)
    stays = max(1 - shares.sum(), 0.0)
    left = 1 - np.cumsum(numbers, axis=1)
    for j in range(numbers.shape[1]):
        then = shares @ np.take(holding, to, axis=-1) + stays * holding
        if j % _STEPS == 0 and np.abs(then - holding).max() <= _NO_CHANGE:
            yield numbers[:, j] + left[:, j], holding
            return
        yield numbers[:, j], holding
        holding = then

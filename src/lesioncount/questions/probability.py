"""A question and candidates → the probability that the answer is yes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lesioncount.questions.extra import holding_by_number, numbers_of_extra
from lesioncount.questions.parts import joint_of
from lesioncount.questions.question import Question
from lesioncount.questions.refusals import unknown
from lesioncount.questions.states import States
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

"""Lesions without a candidate: how many there may be, and what they change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.with_extra import enough_extra, log_pmf_of_extra
from lesioncount.questions.states import States
from lesioncount.questions.trials import ExtraLesions

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


def holding_with_extra(
    holding: NDArray[np.float64],
    numbers: NDArray[np.float64],
    share: NDArray[np.float64],
    steps: NDArray[np.int64],
    states: States,
) -> NDArray[np.float64]:
    """How probably the question holds in the end, from each state at each node that candidates lead to, shape (M, S).

    Parameters
    ----------
    holding : ndarray of float, shape (S,) or (M, S)
        The same without these extra lesions.
    numbers : ndarray of float, shape (M, J)
        Probabilities of their number at each node.
    share : ndarray of float, shape (C,)
        Into which cell each falls.
    steps : ndarray of int, shape (C, F)
        What one adds in each cell.
    states : States

    Notes
    -----
    With E the change of state by one extra lesion and h what is given, it is Σ_j P(j) E^j·h. E is the same at all
    nodes, so E^j·h is, too, if h is: it is made once for all of them, by looking up where each state would go.
    """
    steps, kind = np.unique(steps, axis=0, return_inverse=True)
    shares = np.bincount(kind.ravel(), weights=share, minlength=len(steps))
    to = states.moved(steps)
    stays = max(1 - shares.sum(), 0.0)
    left = 1 - np.cumsum(numbers, axis=1)
    total = np.zeros((len(numbers), states.size))
    for j in range(numbers.shape[1]):
        total += numbers[:, j, np.newaxis] * holding
        then = shares @ holding[..., to] + stays * holding
        if j % _STEPS == 0 and np.abs(then - holding).max() <= _NO_CHANGE:
            return total + left[:, j, np.newaxis] * holding
        holding = then
    return total

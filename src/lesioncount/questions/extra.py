"""Lesions without a candidate: how many there may be, and what they change."""

from __future__ import annotations

from collections.abc import Iterator

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

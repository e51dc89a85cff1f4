"""Proper scores of a distribution of the count: on average, none scores better than the true one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.trust.scores.classification import checked_bins

# If a true count has probability 0, its log score is infinite, and so is every mean. Smaller probabilities are scored
# as this one; always report how many scans that concerns.
NLL_FLOOR = 1e-6


def nll(probabilities: ArrayLike, counts: ArrayLike, /, *, floor: float = NLL_FLOOR) -> NDArray[np.float64]:
    """Negative logarithm of the probability of the true count, of each scan.

    Parameters
    ----------
    probabilities : array_like of float, shape (n, bins)
        P(0), P(1), … P(last or more) of each scan.
    counts : array_like of int, shape (n,)
        True counts.
    floor : float, default 1e-6
        Smaller probabilities are scored as this one: a true count with probability 0 costs -log(floor), 13.8.
    """
    p, truth = checked_bins(probabilities, counts)
    return surprise_of(p[np.arange(len(p)), truth], floor=floor)


def surprise_of(p_truth: NDArray[np.float64], /, *, floor: float = NLL_FLOOR) -> NDArray[np.float64]:
    """Negative logarithm of probabilities that may be a rounding error above 1: never below 0, and 0 without a sign."""
    return np.asarray(np.abs(np.log(p_truth.clip(floor, 1.0))))


def rps(probabilities: ArrayLike, counts: ArrayLike, /) -> NDArray[np.float64]:
    """Ranked probability score of each scan: 0 is perfect, and a near miss costs less than a far one.

    Parameters
    ----------
    probabilities : array_like of float, shape (n, bins)
        P(0), P(1), … P(last or more) of each scan.
    counts : array_like of int, shape (n,)
        True counts.

    Notes
    -----
    With F the distribution function and c the true count::

        RPS = Σ_k (F(k) - [c ≤ k])²

    A distribution that is certain of one count scores the distance between that count and the truth, so that RPS is
    the mean absolute error of counts without uncertainty.

    Examples
    --------
    >>> rps([[0.1, 0.8, 0.1], [0, 0, 1]], [1, 0]).round(2)
    array([0.02, 2.  ])
    """
    p, truth = checked_bins(probabilities, counts)
    reached = truth[:, None] <= np.arange(p.shape[1])
    return np.asarray(((np.cumsum(p, axis=1) - reached) ** 2)[:, :-1].sum(axis=1))

"""Distributions and true counts → proper scores, and what other scores need of each scan, for many scans at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.trust.scores.classification import checked_bins

# Probabilities of the intervals whose coverage and width are scored; the last one is the interval of tables and pages.
LEVELS = (0.5, 0.8, 0.9)

# What each scan has one number of.
_NUMBERS = ("predicted", "median", "expected", "below", "p_truth", "confidence", "rps", "entropy")

# Entries of a table at a time: 8 MB each for the probabilities, their sums from below and from above.
_ENTRIES_AT_ONCE = 1 << 20


Columns = dict[str, NDArray[Any]]


def on_support(distributions: Sequence[CountDistribution], truth: NDArray[np.int64]) -> Columns:
    """What scores need of the distribution of each scan, by the names that `Predictions` has for it."""
    n = len(distributions)
    found: Columns = {name: np.zeros(n) for name in _NUMBERS}
    found |= {"intervals": np.zeros((n, len(LEVELS), 2), np.int64), "impossible": np.zeros(n, bool)}
    tables = [d.pmf() for d in distributions]
    for rows in _blocks([len(table) for table in tables]):
        _fill(found, rows, _padded([tables[i] for i in rows]), truth[rows])
    found["expected"][:] = [d.mean() for d in distributions]
    for i in np.flatnonzero(found["p_truth"] == 0).tolist():  # beyond the table, too small for a number, or impossible
        found["p_truth"][i] = distributions[i].pmf(int(truth[i]))
        found["impossible"][i] = np.isneginf(distributions[i].logpmf(int(truth[i])))
    return found


def _blocks(lengths: Sequence[int]) -> Iterator[NDArray[np.intp]]:
    """Rows that are looked at together: tables of about one length, so that little is padded."""
    order = np.argsort(lengths, kind="stable")
    begin = 0
    while begin < len(order):
        # As many as fit if all were as long as the longest of them, which is the last.
        ends = (np.arange(begin, len(order)) - begin + 1) * np.take(lengths, order[begin:])
        n = max(1, int(np.searchsorted(ends, _ENTRIES_AT_ONCE, side="right")))
        yield order[begin : begin + n]
        begin += n


def _padded(tables: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    padded = np.zeros((len(tables), max(map(len, tables))))
    for row, table in zip(padded, tables, strict=True):
        row[: len(table)] = table
    return padded


def _fill(found: Columns, rows: NDArray[np.intp], p: NDArray[np.float64], truth: NDArray[np.int64]) -> None:
    """Everything that a block of tables (m, K) says, at its rows."""
    m, n_counts = p.shape
    at_most = np.minimum(np.cumsum(p, axis=1), 1.0)
    more = np.zeros_like(p)  # summed from the far end: small tails keep their digits
    more[:, :-1] = np.minimum(np.cumsum(p[:, :0:-1], axis=1)[:, ::-1], 1.0)
    each, known = np.arange(m), np.minimum(truth, n_counts - 1)
    found["predicted"][rows] = p.argmax(axis=1)
    found["confidence"][rows] = p.max(axis=1)
    found["median"][rows] = (at_most < 0.5).sum(axis=1)
    for i, level in enumerate(LEVELS):
        found["intervals"][rows, i, 0] = (at_most < (1 - level) / 2).sum(axis=1)
        found["intervals"][rows, i, 1] = (more > 1 - (1 + level) / 2).sum(axis=1)
    found["p_truth"][rows] = np.where(truth < n_counts, p[each, known], 0.0)
    found["below"][rows] = np.where(truth == 0, 0.0, at_most[each, np.clip(truth - 1, 0, n_counts - 1)])
    found["rps"][rows] = rps_of_sums(at_most, more, truth)
    found["entropy"][rows] = entropy_of(p)


def rps_of_sums(
    at_most: NDArray[np.float64], more: NDArray[np.float64], truth: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Σ P(C ≤ k)² below the truth and Σ P(C > k)² from it on, of each row of tables (m, K)."""
    n_counts = at_most.shape[1]
    is_below = np.arange(n_counts) < truth[:, None]
    error = np.where(is_below, at_most, more)
    beyond = np.maximum(truth - n_counts, 0)  # counts above the table: at_most is 1 there
    return np.asarray(np.einsum("ij,ij->i", error, error) + beyond)


def entropy_of(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Entropy of each row of probabilities, in nats."""
    return np.asarray(np.maximum(0.0, -(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=1)))


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

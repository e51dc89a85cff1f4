"""Distributions and true counts → what scores need of each scan, on the whole support and for many scans at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.count_distribution import CountDistribution

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

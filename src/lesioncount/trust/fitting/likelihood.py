"""How probable the truth is under a calibration, and which way it would be more so."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount._kernels.log_recursion import backward, forward
from lesioncount.trust.calibration import logit

# Numbers of one recursion that are held at a time: 32 MB.
_NUMBERS_AT_ONCE = 1 << 22


# Of so many scans, the truth is taken as beyond the model: a mask with forty lesions where the map has ten candidates.
# Without this, one such scan would pull the whole calibration to itself.
_BEYOND_THE_MODEL = 0.05


class Likelihood(Protocol):
    """A negative log-likelihood of slope, offset and missed rate, with its gradient."""

    def __call__(self, slope: float, offset: float, missed_rate: float) -> tuple[float, NDArray[np.float64]]:
        """The value, and its derivatives."""


class CountLikelihood:
    """Of true counts: -Σ log P(C = c), over scans whose lesions themselves are not known. See `_robust`.

    Parameters
    ----------
    existence : sequence of array_like
        Uncorrected existence probabilities of each scan.
    counts : array_like of int
        True counts.
    """

    def __init__(self, existence: Sequence[ArrayLike], counts: NDArray[np.int64]) -> None:
        logits = [logit(p) for p in existence]
        self._batches = [_padded([logits[i] for i in rows], counts[rows]) for rows in _alike(logits, counts)]
        self._log_factorial = np.array([math.lgamma(k + 1) for k in range(int(counts.max(initial=0)) + 1)])

    def __call__(self, slope: float, offset: float, missed_rate: float) -> tuple[float, NDArray[np.float64]]:
        """The value, and its derivatives."""
        value, gradient = 0.0, np.zeros(3)
        for logits, counts in self._batches:
            part, direction = self._of_batch(logits, counts, slope, offset, missed_rate)
            value += part
            gradient += direction
        return value, gradient

    def _of_batch(
        self, raw: NDArray[np.float64], counts: NDArray[np.int64], slope: float, offset: float, rate: float
    ) -> tuple[float, NDArray[np.float64]]:
        logits = slope * raw + offset
        n_bins = _n_bins(raw.shape[1], int(counts.max()))
        steps = np.empty((len(raw), raw.shape[1] + 1, n_bins))
        forward(logits, steps)
        # log P(found = j) + log P(missed = c - j), for all j up to the count; the last bin is of larger ones.
        missed = counts[:, None] - np.arange(n_bins)
        possible = missed >= 0
        possible[:, -1] = False
        log_missed = missed * math.log(rate) - rate - self._log_factorial[np.maximum(missed, 0)]
        terms = np.where(possible, steps[:, -1] + log_missed, -np.inf)
        totals = np.logaddexp.reduce(terms, axis=1)
        values, trust = _robust(totals, np.maximum(counts, np.isfinite(raw).sum(axis=1)))
        shares = np.exp(terms - totals[:, None]) * trust[:, None]
        gradient = np.zeros_like(logits)
        backward(logits, steps, -shares, gradient)
        there = np.isfinite(raw)
        slopes = (gradient * np.where(there, raw, 0.0))[there].sum()
        rates = (shares * (1 - np.where(possible, missed, 0) / rate)).sum()
        return float(values.sum()), np.array([slopes, gradient[there].sum(), rates])


class LesionLikelihood:
    """Of matched lesions: which candidates hold one, and how many lesions have no candidate.

    Parameters
    ----------
    existence : array_like of float, shape (k,)
        Uncorrected existence probabilities of all candidates of all scans.
    is_lesion : array_like of bool, shape (k,)
        Whether each holds a true lesion.
    n_missed : array_like of int, shape (n_scans,)
        Lesions of each scan without a candidate.
    """

    def __init__(self, existence: ArrayLike, is_lesion: ArrayLike, n_missed: ArrayLike) -> None:
        self._logits = logit(existence)
        self._sign = np.where(np.asarray(is_lesion, dtype=bool), 1.0, -1.0)
        self._n_missed = np.asarray(n_missed, dtype=np.float64)
        self._log_factorial = np.array([math.lgamma(m + 1) for m in self._n_missed])

    def __call__(self, slope: float, offset: float, missed_rate: float) -> tuple[float, NDArray[np.float64]]:
        """The value, and its derivatives."""
        wrong = -self._sign * (slope * self._logits + offset)
        pull = -self._sign / (1 + np.exp(-wrong))
        log_missed = self._n_missed * math.log(missed_rate) - missed_rate - self._log_factorial
        values, trust = _robust(log_missed, self._n_missed)
        value = float(np.logaddexp(0, wrong).sum() + values.sum())
        rates = (trust * (1 - self._n_missed / missed_rate)).sum()
        return value, np.array([(pull * self._logits).sum(), pull.sum(), rates])


def _robust(log_p: NDArray[np.float64], size: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """-log((1 - ε) P + ε Q), and how far each scan is taken as one of the model.

    Q spreads over twice as many counts as the scan has lesions or candidates, and some.
    """
    inside = math.log1p(-_BEYOND_THE_MODEL) + log_p
    beyond = math.log(_BEYOND_THE_MODEL) - np.log(2.0 * size + 10)
    together = np.logaddexp(inside, beyond)
    return -together, np.exp(inside - together)


def _n_bins(n_candidates: int, highest_count: int) -> int:
    """A bin for each count among the candidates that matters, and one for all others."""
    return min(n_candidates, highest_count) + 2


def _alike(logits: list[NDArray[np.float64]], counts: NDArray[np.int64]) -> Iterator[list[int]]:
    """Scans in batches of similar numbers of candidates, none of them larger than memory allows."""
    order = sorted(range(len(logits)), key=lambda i: len(logits[i]))
    n_bins = _n_bins(max(map(len, logits), default=0), int(counts.max(initial=0)))
    batch: list[int] = []
    for i in order:
        size = (len(batch) + 1) * (len(logits[i]) + 1) * min(n_bins, len(logits[i]) + 2)
        if batch and (size > _NUMBERS_AT_ONCE or len(logits[i]) > 2 * len(logits[batch[0]]) + 8):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _padded(
    logits: list[NDArray[np.float64]], counts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """One row per scan, filled up with -inf: a candidate that is not there."""
    table = np.full((len(logits), max(map(len, logits), default=0)), -np.inf)
    for row, values in zip(table, logits, strict=True):
        row[: len(values)] = values
    return table, counts

"""How probable the truth of each scan is under a calibration, and which way it would be more so."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lesioncount._kernels.true_count import probabilities_of_true_counts
from lesioncount.trust.fitting.candidates_of_scans import CandidatesOfScans, CorrectedCandidates, Numbers
from lesioncount.trust.fitting.known_truth import KnownTruth

# Of so many scans, the truth is taken as beyond the model: a mask with forty lesions where the map has ten candidates.
# Without this, one such scan would pull the whole calibration to itself.
_BEYOND_THE_MODEL = 0.05

# Counts with less than this are beyond the model whatever happens, and logarithms need a number.
_TINY = 1e-300


class Likelihood(Protocol):
    """Log-likelihoods of scans, with their gradients."""

    def __call__(self, numbers: Numbers, n_nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of each scan: the value, (n,), and its derivatives by all numbers, (n, 7 + J)."""

    def values(self, numbers: Numbers, n_nodes: int) -> NDArray[np.float64]:
        """The values alone, which take less time where there are many candidates."""


class CountLikelihood:
    """Of true counts: log P(C = c), over scans whose lesions themselves are not known. See `_robust`.

    Parameters
    ----------
    truth : KnownTruth
        Candidates and true counts.
    """

    def __init__(self, truth: KnownTruth) -> None:
        self._candidates = CandidatesOfScans(truth)
        self._counts = truth.counts.astype(np.intp)
        self._size = np.maximum(self._counts, self._candidates.n_of)

    def __call__(self, numbers: Numbers, n_nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of each scan: the value, (n,), and its derivatives by all numbers, (n, 7 + J)."""
        at = self._candidates.corrected(numbers, n_nodes)
        probability, by_mean, by_shape = (np.empty(at.extra.shape) for _ in range(3))
        by_p = np.empty(at.p.shape)
        probabilities_of_true_counts(
            at.p, self._candidates.begins, self._counts, at.extra, numbers.extra_shape, probability, by_p, by_mean,
            by_shape,
        )  # fmt: skip
        total = np.maximum(at.weights @ probability, _TINY)
        values, trust = _robust(np.log(total), self._size)
        by_p += numbers.extra_share * self._candidates.of_each(by_mean)
        gradient = _gradient(at, self._candidates, by_p, by_mean, by_shape, at.weights[:, None] / total)
        return values, gradient * trust[:, None]

    def values(self, numbers: Numbers, n_nodes: int) -> NDArray[np.float64]:
        """The values alone."""
        at = self._candidates.corrected(numbers, n_nodes)
        probability = np.empty(at.extra.shape)
        probabilities_of_true_counts(
            at.p, self._candidates.begins, self._counts, at.extra, numbers.extra_shape, probability
        )
        return _robust(np.log(np.maximum(at.weights @ probability, _TINY)), self._size)[0]


class ReadersLikelihood:
    """Of the counts of several readers: the mean over the R readers of a scan of log P(C = c_r), of weight 1 / R each.

    Parameters
    ----------
    truth : KnownTruth
        Candidates and the counts of all readers.
    """

    def __init__(self, truth: KnownTruth) -> None:
        readings = truth.readings or ()
        most = max(map(len, readings), default=0)
        filled = np.array([[*of, *[of[-1]] * (most - len(of))] for of in readings], dtype=np.int64)
        shares = [[1 / len(of)] * len(of) + [0.0] * (most - len(of)) for of in readings]
        self._each = [CountLikelihood(replace(truth, counts=column)) for column in filled.T]
        self._shares = np.array(shares).T

    def __call__(self, numbers: Numbers, n_nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of each scan: the value, (n,), and its derivatives by all numbers, (n, 7 + J)."""
        found = [likelihood(numbers, n_nodes) for likelihood in self._each]
        values = sum(share * value for share, (value, _) in zip(self._shares, found, strict=True))
        slopes = sum(share[:, None] * slope for share, (_, slope) in zip(self._shares, found, strict=True))
        return np.asarray(values), np.asarray(slopes)

    def values(self, numbers: Numbers, n_nodes: int) -> NDArray[np.float64]:
        """The values alone."""
        found = (likelihood.values(numbers, n_nodes) for likelihood in self._each)
        return np.asarray(sum(share * value for share, value in zip(self._shares, found, strict=True)))


class LesionLikelihood:
    """Of matched lesions: which candidates hold one, and how many lesions have no candidate of their own.

    Parameters
    ----------
    truth : KnownTruth
        Candidates, whether each is a lesion, and true counts.
    """

    def __init__(self, truth: KnownTruth) -> None:
        owns = truth.owns or ()
        self._candidates = CandidatesOfScans(truth)
        self._is_lesion = np.concatenate([np.empty(0, bool), *owns]).astype(np.float64)
        self._n_extra = np.maximum(truth.counts - [one.sum() for one in owns], 0).astype(np.intp)

    def __call__(self, numbers: Numbers, n_nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of each scan: the value, (n,), and its derivatives by all numbers, (n, 7 + J)."""
        at = self._candidates.corrected(numbers, n_nodes)
        log_extra, by_mean, by_shape = _log_negative_binomial(self._n_extra, at.extra, numbers.extra_shape)
        log_extra, trust = _robust(log_extra, self._n_extra)
        by_mean, by_shape = by_mean * trust, by_shape * trust
        p = np.clip(at.p, 1e-300, 1 - 1e-16)
        log_p = np.where(self._is_lesion == 1, np.log(p), np.log1p(-p))
        terms = np.log(at.weights)[:, None] + self._candidates.sums(log_p) + log_extra
        values = np.logaddexp.reduce(terms, axis=0)
        by_p = (self._is_lesion - p) / np.maximum(p * (1 - p), _TINY)
        by_p += numbers.extra_share * self._candidates.of_each(by_mean)
        return values, _gradient(at, self._candidates, by_p, by_mean, by_shape, np.exp(terms - values))

    def values(self, numbers: Numbers, n_nodes: int) -> NDArray[np.float64]:
        """The values alone."""
        return self(numbers, n_nodes)[0]


def _gradient(
    at: CorrectedCandidates,
    candidates: CandidatesOfScans,
    by_p: NDArray[np.float64],
    by_mean: NDArray[np.float64],
    by_shape: NDArray[np.float64],
    shares: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Derivatives by all numbers, (scans, 7 + J), from those by what each node has; ``shares`` weighs the nodes."""
    by_shift = by_p * at.by_offset
    by_offset = candidates.sums(by_shift)
    parts = (
        candidates.sums(by_p * at.by_slope),
        by_offset,
        by_offset * at.z,
        by_mean,
        by_mean * at.expected,
        by_shape,
        by_offset * candidates.crowd,
        *(candidates.sums(by_shift * x) for x in candidates.features.T),
    )
    return np.stack([(shares * part).sum(axis=0) for part in parts], axis=1)


def _log_negative_binomial(
    n: NDArray[np.intp], mean: NDArray[np.float64], shape: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Log P(n), and its derivatives by mean and shape; n (scans,), mean (nodes, scans)."""
    j = np.arange(int(n.max(initial=0)))
    ways = np.concatenate([[0.0], np.cumsum(np.log((j + shape) / (j + 1)))])[n]
    by_ways = np.concatenate([[0.0], np.cumsum(1 / (shape + j))])[n]
    stays, more = np.log(shape / (shape + mean)), np.log(mean / (shape + mean))
    by_mean = n / mean - (n + shape) / (shape + mean)
    by_shape = by_ways + stays + 1 - (n + shape) / (shape + mean)
    return ways + shape * stays + n * more, by_mean, by_shape


def _robust(log_p: NDArray[np.float64], size: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """log((1 - ε) P + ε Q), and how far each scan is taken as one of the model.

    Q spreads over twice as many counts as the scan has lesions or candidates, and some.
    """
    inside = math.log1p(-_BEYOND_THE_MODEL) + log_p
    beyond = math.log(_BEYOND_THE_MODEL) - np.log(2.0 * size + 10)
    together = np.logaddexp(inside, beyond)
    return together, np.exp(inside - together)

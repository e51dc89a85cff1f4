"""Calibration: of all that was said with 70 % probability, 70 % should be true."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.errors import ScoreError
from lesioncount.scores.checks import checked_bins


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predictions in bins of their confidence: how sure they were, and how often they came true.

    Two of them add, if they have the same bins: that of a cohort is the sum over its parts.

    Parameters
    ----------
    n : array of int, shape (bins,)
        Predictions in each bin; bins are equally wide over [0, 1].
    confidence_sum, hit_sum : array of float, shape (bins,)
        Sums of their confidences, and of whether they came true.

    Notes
    -----
    Guo et al., "On Calibration of Modern Neural Networks", ICML 2017::

        ECE = Σ_b n_b / n |hits_b - confidence_b|        MCE = max_b |hits_b - confidence_b|

    with the mean hit rate and confidence of each bin. MCE is set by the worst bin, however few are in it.
    """

    n: NDArray[np.int64]
    confidence_sum: NDArray[np.float64]
    hit_sum: NDArray[np.float64]

    @property
    def confidence(self) -> NDArray[np.float64]:
        """Mean confidence in each bin, NaN where a bin is empty."""
        return self._mean(self.confidence_sum)

    @property
    def hit_rate(self) -> NDArray[np.float64]:
        """Share of predictions that came true in each bin, NaN where a bin is empty."""
        return self._mean(self.hit_sum)

    @property
    def ece(self) -> float:
        """Expected calibration error."""
        gaps = np.abs(self.confidence_sum - self.hit_sum)
        return float(gaps.sum() / self.n.sum()) if self.n.any() else float("nan")

    @property
    def mce(self) -> float:
        """Maximum calibration error."""
        return float(np.nanmax(np.abs(self.hit_rate - self.confidence))) if self.n.any() else float("nan")

    def _mean(self, total: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(self.n > 0, total / np.maximum(self.n, 1), np.nan)

    def __add__(self, other: object) -> Reliability:
        if not isinstance(other, Reliability):
            return NotImplemented
        return Reliability(self.n + other.n, self.confidence_sum + other.confidence_sum, self.hit_sum + other.hit_sum)


def reliability(confidence: ArrayLike, hits: ArrayLike, /, *, bins: int = 10) -> Reliability:
    """Sort predictions into bins of their confidence.

    Parameters
    ----------
    confidence : array_like of float, shape (n,)
        Probability that each prediction comes true.
    hits : array_like of bool, shape (n,)
        Whether it did.
    bins : int, default 10

    Examples
    --------
    >>> r = reliability([0.95, 0.9, 0.2, 0.3], [True, True, False, True])
    >>> round(r.ece, 4), round(r.mce, 4)
    (0.2625, 0.7)
    """
    p, hit = np.asarray(confidence, dtype=np.float64).ravel(), np.asarray(hits, dtype=np.float64).ravel()
    if p.shape != hit.shape:
        raise ScoreError(f"Expected as many hits as confidences, but there are {hit.size} and {p.size}.")
    if p.size and not (p.min() >= 0 and p.max() <= 1 + 1e-9):
        raise ScoreError(f"Expected confidences in [0, 1], but they span [{p.min():.4g}, {p.max():.4g}].")
    # A bin holds its upper edge: a confidence of 1 is in the last one.
    where = np.clip(np.ceil(p * bins).astype(np.int64) - 1, 0, bins - 1)
    return Reliability(
        np.bincount(where, minlength=bins),
        np.bincount(where, weights=p, minlength=bins).astype(np.float64),
        np.bincount(where, weights=hit, minlength=bins).astype(np.float64),
    )


def count_reliability(probabilities: ArrayLike, counts: ArrayLike, /, *, bins: int = 10) -> Reliability:
    """Reliability of the most probable count: its probability, and whether it was right.

    Parameters
    ----------
    probabilities : array_like of float, shape (n, bins)
        P(0), P(1), … P(last or more) of each scan.
    counts : array_like of int, shape (n,)
        True counts.
    bins : int, default 10
        Of the confidence.
    """
    p, truth = checked_bins(probabilities, counts)
    return reliability(np.clip(p.max(axis=1), 0, 1), p.argmax(axis=1) == truth, bins=bins)

"""Calibration: of all predictions with a probability of 70 %, 70 % should come true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from lesioncount.errors import ScoreError
from lesioncount.trust.scores.classification import checked_bins, ratio


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predictions in bins of their confidence: how sure they were, and how often they came true.

    Those with the same bins can be added: that of a cohort is the sum over its parts.

    Parameters
    ----------
    n : array, shape (bins,)
        Predictions in each bin; bins are equally wide over [0, 1]. There may be more axes before this one; all errors
        then have those axes.
    confidence_sum, hit_sum : array of float, shape (bins,)
        Sums of their confidences, and of whether they came true.

    Notes
    -----
    Guo et al., "On Calibration of Modern Neural Networks", ICML 2017::

        ECE = Σ_b n_b / n |hits_b - confidence_b|        MCE = max_b |hits_b - confidence_b|

    with the mean hit rate and confidence of each bin. MCE is set by the worst bin, however few are in it.
    """

    n: NDArray[Any]
    confidence_sum: NDArray[np.float64]
    hit_sum: NDArray[np.float64]

    @property
    def confidence(self) -> NDArray[np.float64]:
        """Mean confidence in each bin, NaN where a bin is empty."""
        return np.asarray(ratio(self.confidence_sum, self.n))

    @property
    def hit_rate(self) -> NDArray[np.float64]:
        """Share of predictions that came true in each bin, NaN where a bin is empty."""
        return np.asarray(ratio(self.hit_sum, self.n))

    @property
    def ece(self) -> Any:
        """Expected calibration error."""
        return ratio(np.abs(self.confidence_sum - self.hit_sum).sum(axis=-1), self.n.sum(axis=-1))

    @property
    def mce(self) -> Any:
        """Maximum calibration error."""
        worst = np.nan_to_num(np.abs(self.hit_rate - self.confidence)).max(axis=-1)
        return np.where(self.n.any(axis=-1), worst, np.nan)[()]

    def __add__(self, other: object) -> Reliability:
        if not isinstance(other, Reliability):
            return NotImplemented
        return Reliability(self.n + other.n, self.confidence_sum + other.confidence_sum, self.hit_sum + other.hit_sum)


class ReliabilityBins(Struct, frozen=True, eq=False):
    """Predictions in bins of their confidence, as `Reliability` has them and files write them.

    Attributes
    ----------
    n : array of int, shape (bins,)
        Predictions in each bin.
    confidence, hit_rate : array of float, shape (bins,)
        Mean confidence, and share that came true; NaN where a bin is empty.
    """

    n: NDArray[np.int64]
    confidence: NDArray[np.float64]
    hit_rate: NDArray[np.float64]

    @classmethod
    def of(cls, found: Reliability) -> Self:
        """From the sums over predictions."""
        return cls(found.n, found.confidence, found.hit_rate)

    def __post_init__(self) -> None:
        n, rates = self.n, (self.confidence, self.hit_rate)
        if n.ndim != 1 or n.size == 0 or any(of.shape != n.shape for of in rates) or n.min() < 0:
            raise ScoreError("Expected n, confidence and hit_rate of each bin.")
        if not all(np.all((of[n > 0] >= 0) & (of[n > 0] <= 1)) for of in rates):
            raise ScoreError("Expected a confidence and a hit rate in [0, 1] for each bin that is not empty.")


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
    >>> round(float(r.ece), 4), round(float(r.mce), 4)
    (0.2625, 0.7)
    """
    p, hit = np.asarray(confidence, dtype=np.float64).ravel(), np.asarray(hits, dtype=np.float64).ravel()
    if p.shape != hit.shape:
        raise ScoreError(f"Expected as many hits as confidences, but there are {hit.size} and {p.size}.")
    if p.size and not (p.min() >= 0 and p.max() <= 1 + 1e-9):
        raise ScoreError(f"Expected confidences in [0, 1], but they span [{p.min():.4g}, {p.max():.4g}].")
    where = bin_of(p, bins)
    return Reliability(
        np.bincount(where, minlength=bins),
        np.bincount(where, weights=p, minlength=bins).astype(np.float64),
        np.bincount(where, weights=hit, minlength=bins).astype(np.float64),
    )


def bin_of(confidence: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """The bin of each confidence. A bin holds its upper edge: a confidence of 1 is in the last one."""
    return np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)


def count_reliability(probabilities: ArrayLike, counts: ArrayLike, /, *, bins: int = 10) -> Reliability:
    """Reliability of the most probable class: its probability, and whether it was right.

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

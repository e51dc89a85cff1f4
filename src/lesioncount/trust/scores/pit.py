"""Calibration for counts of any size: where the truth lies in its distribution, and how often intervals hold it."""

from __future__ import annotations

from typing import Self

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from lesioncount.errors import ScoreError
from lesioncount.trust.scores.estimate import AtLeastZero, Curve, Share

_BINS = 10

# Nominal coverages of the curve.
_NOMINAL = tuple(round(0.05 * i, 2) for i in range(1, 20))

# Draws of the transform must have nothing to do with those of scans that were simulated with the same seed.
_OWN_STREAM = 1985

# Of the bands.
_CONFIDENCE = 0.95


def randomised_pit(below: ArrayLike, p_truth: ArrayLike, /, *, seed: int = 0) -> NDArray[np.float64]:
    """Where the truth of each scan lies in its distribution, from 0 to 1: even if the distribution is honest.

    Parameters
    ----------
    below, p_truth : array_like of float, shape (n,)
        P(C < truth) and P(C = truth).
    seed : int, default 0

    Notes
    -----
    The probability integral transform F(c) of a whole number is not even, so it is drawn between its steps (Smith, J.
    Forecasting 4 (1985) 283), with V uniform on [0, 1]::

        u = P(C < c) + V · P(C = c)

    Examples
    --------
    >>> bool(0.2 <= randomised_pit([0.2], [0.3])[0] <= 0.5)
    True
    """
    low, step = np.asarray(below, dtype=np.float64), np.asarray(p_truth, dtype=np.float64)
    if low.shape != step.shape or low.ndim != 1:
        raise ScoreError(f"Expected P(C < truth) and P(C = truth) of each scan, but got {low.shape} and {step.shape}.")
    drawn = np.random.default_rng((seed, _OWN_STREAM)).random(len(low))
    return np.clip(low + drawn * step, 0.0, 1.0)


class PitHistogram(Struct, frozen=True):
    """How many scans have their truth in each tenth of its distribution.

    Even if distributions are honest; high at both ends if they are too narrow, in the middle if they are too wide, on
    the left if counts are too high, on the right if they are too low.

    Attributes
    ----------
    n : tuple of int
        Scans in each bin.
    low, high : int
        What 95 % of the bins lie between if distributions are honest and scans independent (binomial).
    """

    n: tuple[AtLeastZero, ...]
    low: AtLeastZero
    high: AtLeastZero

    def __post_init__(self) -> None:
        if not self.n:
            raise ScoreError("Expected numbers of scans in bins, and their band.")

    @classmethod
    def of(cls, pit: NDArray[np.float64]) -> Self:
        """From where the truth of each scan lies."""
        where = np.minimum((pit * _BINS).astype(np.int64), _BINS - 1)
        low, high = binomial_interval(len(pit), 1 / _BINS)
        return cls(tuple(np.bincount(where, minlength=_BINS).tolist()), low, high)

    @property
    def n_outside(self) -> int:
        """Bins outside the band; one in twenty is expected there."""
        return sum(not self.low <= n <= self.high for n in self.n)


class CoverageCurve(Curve, frozen=True):
    """How often central intervals hold the truth, by how often they should.

    Attributes
    ----------
    nominal, actual : tuple of float
        Probability of the intervals, and share of scans whose truth they hold.
    low, high : tuple of float
        What 95 % of the shares lie between if distributions are honest and scans independent (binomial).

    Notes
    -----
    Intervals of whole numbers hold the truth more often than they promise. Here their ends are randomised as the
    transform is, so that an honest distribution lies on the diagonal however small counts are: an interval of level c
    holds the truth if u is at most c / 2 away from one half.
    """

    nominal: tuple[Share, ...]
    actual: tuple[Share, ...]
    low: tuple[Share, ...]
    high: tuple[Share, ...]

    @classmethod
    def of(cls, pit: NDArray[np.float64]) -> Self:
        """From where the truth of each of at least one scan lies."""
        n, away = len(pit), np.abs(2 * pit - 1)
        bands = [binomial_interval(n, level) for level in _NOMINAL]
        return cls(
            _NOMINAL,
            tuple(float((away <= level).mean()) for level in _NOMINAL),
            tuple(low / n for low, _ in bands),
            tuple(high / n for _, high in bands),
        )


def binomial_interval(n: int, p: float) -> tuple[int, int]:
    """The equal-tailed 95 % interval of a number of successes in n trials."""
    k = np.arange(n)
    steps = np.log((n - k) / (k + 1)) + np.log(p / (1 - p))
    logs = np.append(0.0, np.cumsum(steps))  # up to a constant
    masses = np.exp(logs - logs.max())
    total = np.cumsum(masses / masses.sum())
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.searchsorted(total, [tail, 1 - tail])
    return int(low), int(min(high, n))

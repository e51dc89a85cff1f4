"""Agreement, as clinical readers know it: Bland-Altman, Lin's concordance, thirds of the scans, Cohen's kappa."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from lesioncount.errors import ScoreError
from lesioncount.trust.scores.bootstrap import estimates_of, resampled_ratios
from lesioncount.trust.scores.classification import ratio
from lesioncount.trust.scores.estimate import AtLeastZero, Estimate, Number, Numbers

# Where the largest true count is so many times the smallest (both plus 1), errors grow with the count, and ratios are
# compared instead of differences.
_DECADE = 10

# Of differences in a file: beyond all counts, and yet a number that can be drawn.
_LARGEST = 1e15

# 95 % of a normal distribution, as Bland and Altman have it.
_Z = 1.96


def concordance(predicted: ArrayLike, truth: ArrayLike, /, *, weights: ArrayLike | None = None) -> NDArray[np.float64]:
    """Lin's concordance: 1 if all counts are right, 0 without any agreement; it falls with noise and with bias.

    Parameters
    ----------
    predicted, truth : array_like of float, shape (n,)
    weights : array_like of float, shape (..., n), optional
        How often each scan counts. Default: once.

    Returns
    -------
    array of float, shape (...)
        NaN where all predicted and true counts are one and the same number.

    Notes
    -----
    Lin, Biometrics 45 (1989) 255. With means m, variances s² (divided by n) and the covariance s_xy::

        ρ_c = 2 s_xy / (s_x² + s_y² + (m_x - m_y)²)

    Examples
    --------
    >>> round(float(concordance([1, 2, 3], [3, 6, 9])), 3)  # a perfect correlation, but a third of the truth
    0.176
    """
    x, y = np.asarray(predicted, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ScoreError(f"Expected a predicted count for each true one, but got {x.shape} and {y.shape}.")
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    if len(x) == 0:
        return np.full(w.shape[:-1], np.nan)
    x, y = x - y.mean(), y - y.mean()  # shifted alike: squares of large counts would lose digits
    total = w.sum(axis=-1)
    mean_x, mean_y, square, product = (ratio(w @ of, total) for of in (x, y, x**2 + y**2, x * y))
    shared = product - mean_x * mean_y
    return np.asarray(ratio(2 * shared, square - 2 * mean_x * mean_y))


class BlandAltman(Numbers, frozen=True):
    """Differences between predicted and true counts: their mean, and limits that hold about 95 % of them.

    Attributes
    ----------
    is_log : bool
        Differences of log(count + 1) instead of counts, where true counts span a decade or more.
    mean : Estimate
        Mean difference, predicted minus true, with its interval.
    low, high : float
        Limits of agreement: 1.96 standard deviations on either side of the mean.
    """

    is_log: bool
    mean: Estimate
    low: Number
    high: Number

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(
            abs(value) > _LARGEST for value in (self.mean.value, self.mean.low, self.mean.high, self.low, self.high)
        ):
            raise ScoreError(f"Expected differences of counts of at most {_LARGEST:g}.")

    @classmethod
    def of(
        cls, predicted: NDArray[np.float64], truth: NDArray[Any], groups: Sequence[Hashable], /, *, seed: int = 0
    ) -> Self:
        """From counts of at least one scan."""
        is_log = bool((truth.max() + 1) / (truth.min() + 1) >= _DECADE)
        difference = cls.differences(predicted, truth, is_log=is_log)
        (mean,) = resampled_ratios(difference[:, None], np.ones((len(truth), 1)), groups, seed=seed)
        spread = _Z * float(difference.std(ddof=1)) if len(truth) > 1 else math.nan
        return cls(is_log, mean, mean.value - spread, mean.value + spread)

    @staticmethod
    def differences(predicted: ArrayLike, truth: ArrayLike, /, *, is_log: bool) -> NDArray[np.float64]:
        """Predicted minus true counts, or the same of their logarithms."""
        x, y = np.asarray(predicted, dtype=np.float64), np.asarray(truth, dtype=np.float64)
        return np.asarray(np.log1p(x) - np.log1p(y) if is_log else x - y)


class Tercile(Struct, frozen=True):
    """About a third of the scans, those with few, some or many lesions: how well they were counted.

    Attributes
    ----------
    low, high : float
        Smallest and largest count in it, true or predicted, whichever scans were sorted by.
    n : int
        Number of scans.
    error, bias, coverage, width : Estimate
        Mean absolute error of the median, expected minus true count, share of intervals that hold the truth, and
        their width.
    """

    low: float
    high: float
    n: AtLeastZero
    error: Estimate
    bias: Estimate
    coverage: Estimate
    width: Estimate


def terciles(
    by: NDArray[Any], values: Sequence[NDArray[Any]], groups: Sequence[Hashable], /, *, seed: int = 0
) -> tuple[Tercile, ...]:
    """Means of error, bias, coverage and width in thirds of the scans; equal counts stay together.

    Parameters
    ----------
    by : array, shape (n,)
        What scans are sorted by.
    values : sequence of array, shape (n,)
        Error, bias, coverage and width of each scan.
    groups : sequence, shape (n,)
        Scans of one group are drawn together.
    """
    if len(by) == 0:
        return ()
    edges = np.quantile(by, [1 / 3, 2 / 3], method="inverted_cdf")
    third = (by[:, None] > edges).sum(axis=1)
    members = [third == number for number in np.unique(third)]
    wholes = np.repeat(np.stack(members, axis=1), len(values), axis=1).astype(np.float64)
    parts = wholes * np.tile(np.stack(values, axis=1), len(members))
    found = resampled_ratios(parts, wholes, groups, seed=seed)
    return tuple(
        Tercile(
            float(by[chosen].min()),
            float(by[chosen].max()),
            int(chosen.sum()),
            *found[len(values) * number : len(values) * (number + 1)],
        )
        for number, chosen in enumerate(members)
    )


class Agreement(Struct, frozen=True):
    """How predicted counts agree with true ones: Bland-Altman, and by thirds of the truth."""

    bland_altman: BlandAltman
    terciles: tuple[Tercile, ...]


def kappa(tables: ArrayLike, /) -> NDArray[np.float64]:
    """Cohen's kappa: 1 where two readers always agree, 0 where they agree as often as by chance.

    Parameters
    ----------
    tables : array_like, shape (..., 2, 2)
        How often the first said no or yes (rows), and the second (columns).

    Returns
    -------
    array of float, shape (...)
        NaN where both always say the same one answer: by chance they would, too.

    Notes
    -----
    Cohen, Educational and Psychological Measurement 20 (1960) 37. With shares p_ij, and r_i and c_j of each alone::

        κ = (p_o - p_e) / (1 - p_e),   p_o = Σ p_ii,   p_e = Σ r_i c_i

    Examples
    --------
    >>> float(kappa([[20, 5], [10, 15]]).round(4))
    0.4
    """
    counts = np.asarray(tables, dtype=np.float64)
    n = counts.sum(axis=(-2, -1))
    observed = ratio(np.trace(counts, axis1=-2, axis2=-1), n)
    by_chance = ratio((counts.sum(axis=-1) * counts.sum(axis=-2)).sum(axis=-1), n**2)
    return np.asarray(ratio(observed - by_chance, 1 - by_chance))


def agreement_on_yes(tables: ArrayLike, /) -> NDArray[np.float64]:
    """How often one says yes when the other does: unlike kappa, it does not depend on how many are easy to deny.

    Notes
    -----
    2 n_yes,yes / (2 n_yes,yes + n_yes,no + n_no,yes): Dice's coefficient of what the two accept.
    """
    counts = np.asarray(tables, dtype=np.float64)
    both, apart = 2 * counts[..., 1, 1], counts[..., 0, 1] + counts[..., 1, 0]
    return np.asarray(ratio(both, both + apart))


def agreement_of_answers(
    tables: ArrayLike, groups: Sequence[Hashable], /, *, seed: int = 0
) -> tuple[Estimate, Estimate, Estimate]:
    """Share of equal answers, `kappa` and `agreement_on_yes`, with intervals over scans, or over groups of them.

    Parameters
    ----------
    tables : array_like, shape (n, 2, 2)
        One for each scan.
    groups : sequence of hashable
        The patient of each.
    seed : int, default 0
        Of the resamples.
    """
    each = np.asarray(tables, dtype=np.float64)

    def measures(of: NDArray[np.float64]) -> NDArray[np.float64]:
        equal = ratio(np.trace(of, axis1=-2, axis2=-1), of.sum(axis=(-2, -1)))
        return np.stack([equal, kappa(of), agreement_on_yes(of)], axis=-1)

    whole = measures(each.sum(axis=0)).tolist()
    share, beyond_chance, on_yes = estimates_of(
        whole, lambda weights: measures(np.einsum("sn,nij->sij", weights, each)), groups, seed=seed
    )
    return share, beyond_chance, on_yes

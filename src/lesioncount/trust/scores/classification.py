"""Counts as classes: the confusion matrix, accuracy, precision, recall and F1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.checks import too_many
from lesioncount.distributions.count_distribution import MAX_COUNT
from lesioncount.errors import ScoreError


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often each true count was predicted as each count.

    Matrices can be added: that of a cohort is the sum over its parts.

    Parameters
    ----------
    matrix : array, shape (n_classes, n_classes)
        Rows are true counts, columns predicted ones; the last class holds all larger counts. There may be more axes
        before these two; all scores then have those axes.

    Notes
    -----
    Precision, recall and F1 are averages over the classes that occur, in the truth or among the predictions, each with
    the same weight; a class that was never hit counts as 0. This is what the paper calls class average.

    Examples
    --------
    >>> c = confusion([0, 1, 2, 7], [0, 1, 1, 5], max_count=4)
    >>> float(c.accuracy), round(float(c.f1), 4)
    (0.75, 0.6667)
    """

    matrix: NDArray[Any]

    @property
    def accuracy(self) -> Any:
        """Share of scans whose count is right."""
        return ratio(self._hits.sum(axis=-1), self.matrix.sum(axis=(-2, -1)))

    @property
    def precision(self) -> Any:
        """Class average of the share of predictions that are right."""
        return self._average(self._predicted)

    @property
    def recall(self) -> Any:
        """Class average of the share of true counts that are found."""
        return self._average(self._true)

    @property
    def f1(self) -> Any:
        """Class average of the harmonic mean of precision and recall."""
        return self._average((self._predicted + self._true) / 2)

    @property
    def _hits(self) -> NDArray[Any]:
        return np.diagonal(self.matrix, axis1=-2, axis2=-1)

    @property
    def _predicted(self) -> NDArray[Any]:
        return np.asarray(self.matrix.sum(axis=-2))

    @property
    def _true(self) -> NDArray[Any]:
        return np.asarray(self.matrix.sum(axis=-1))

    def _average(self, total: NDArray[Any]) -> Any:
        occurs = (self._predicted + self._true) > 0
        return ratio(np.nan_to_num(ratio(self._hits, total)).sum(axis=-1), occurs.sum(axis=-1))

    def __add__(self, other: object) -> Confusion:
        return Confusion(self.matrix + other.matrix) if isinstance(other, Confusion) else NotImplemented


def confusion(predicted: ArrayLike, counts: ArrayLike, /, *, max_count: int = MAX_COUNT) -> Confusion:
    """Confusion matrix of predicted and true counts; those from ``max_count`` on are one class.

    Parameters
    ----------
    predicted, counts : array_like of int, shape (n,)
    max_count : int, default 4
        The paper has 4.
    """
    if max_count < 1:
        raise ScoreError(f"Expected max_count to be at least 1, but got {max_count}.")
    guess = checked_counts(predicted, np.size(counts), are_true=False)
    truth = checked_counts(counts, np.size(counts))
    size = max_count + 1
    cell = np.minimum(truth, max_count) * size + np.minimum(guess, max_count)
    return Confusion(np.bincount(cell, minlength=size * size).reshape(size, size))


def ratio(part: ArrayLike, whole: ArrayLike) -> Any:
    """A share; NaN where the whole is 0."""
    whole = np.asarray(whole, dtype=np.float64)
    return np.where(whole > 0, np.asarray(part) / np.where(whole > 0, whole, 1.0), np.nan)[()]


# Probabilities that were written with six digits do not add up to 1 exactly.
_ROUNDING = 1e-3


def checked_bins(probabilities: ArrayLike, counts: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """P(0), P(1), … P(last or more) of each scan, and the bins that the true counts fall in."""
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 2 or p.shape[1] == 0:
        raise ScoreError(f"Expected a row of probabilities per scan, P(0), P(1), …, but their shape is {p.shape}.")
    if p.size and not (p.min() >= -_ROUNDING and np.abs(p.sum(axis=1) - 1).max() <= _ROUNDING):
        raise ScoreError("Expected each row of probabilities to add up to 1, with none below 0.")
    return p, np.minimum(checked_counts(counts, len(p)), p.shape[1] - 1)


def checked_counts(counts: ArrayLike, n: int, *, are_true: bool = True) -> NDArray[np.int64]:
    """Counts: whole numbers of at least 0, one for each of n scans; if they are true ones, not too many."""
    given = np.asarray(counts)
    if given.shape != (n,):
        raise ScoreError(f"Expected one count for each of {n} scans, but the shape of counts is {given.shape}.")
    try:
        with np.errstate(invalid="ignore"):
            whole = given.astype(np.int64)
        ok = bool(np.all(whole == given) and np.all(whole >= 0))
    except (TypeError, ValueError, OverflowError):
        ok = False
    if not ok:
        raise ScoreError("Expected counts to be whole numbers of at least 0.")
    if are_true and (why := too_many(whole)):
        raise ScoreError(why)
    return whole

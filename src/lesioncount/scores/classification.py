"""Counts as classes: the confusion matrix, accuracy, precision, recall and F1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.errors import ScoreError
from lesioncount.scores.checks import checked_counts


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often each count was taken for each.

    Two of them add: that of a cohort is the sum over its parts.

    Parameters
    ----------
    matrix : array of int, shape (n_classes, n_classes)
        Rows are true counts, columns predicted ones; the last class holds all larger counts.

    Notes
    -----
    Precision, recall and F1 are averages over the classes that occur, in the truth or among the predictions, each with
    the same weight; a class that was never hit counts as 0. This is what the paper calls class average.

    Examples
    --------
    >>> c = confusion([0, 1, 2, 7], [0, 1, 1, 5], max_count=4)
    >>> c.accuracy, round(c.f1, 4)
    (0.75, 0.6667)
    """

    matrix: NDArray[np.int64]

    @property
    def n(self) -> int:
        """Number of scans."""
        return int(self.matrix.sum())

    @property
    def accuracy(self) -> float:
        """Share of scans whose count is right."""
        return _ratio(float(np.trace(self.matrix)), self.n)

    @property
    def precision(self) -> float:
        """Class average of the share of predictions that are right."""
        return self._average(self.matrix.sum(axis=0))

    @property
    def recall(self) -> float:
        """Class average of the share of true counts that are found."""
        return self._average(self.matrix.sum(axis=1))

    @property
    def f1(self) -> float:
        """Class average of the harmonic mean of precision and recall."""
        return self._average((self.matrix.sum(axis=0) + self.matrix.sum(axis=1)) / 2)

    @cached_property
    def _occurs(self) -> NDArray[np.bool_]:
        occurs: NDArray[np.bool_] = (self.matrix.sum(axis=0) + self.matrix.sum(axis=1)) > 0
        return occurs

    def _average(self, total: NDArray[np.float64]) -> float:
        if not self._occurs.any():
            return float("nan")
        hits = np.diag(self.matrix)[self._occurs]
        return float(np.mean(hits / np.maximum(total[self._occurs], 0.5)))  # hits are 0 where the total is

    def __add__(self, other: object) -> Confusion:
        return Confusion(self.matrix + other.matrix) if isinstance(other, Confusion) else NotImplemented


def confusion(predicted: ArrayLike, counts: ArrayLike, /, *, max_count: int = 4) -> Confusion:
    """Confusion matrix of predicted and true counts; those from ``max_count`` on are one class.

    Parameters
    ----------
    predicted, counts : array_like of int, shape (n,)
    max_count : int, default 4
        The paper has 4.
    """
    if max_count < 1:
        raise ScoreError(f"Expected max_count to be at least 1, but got {max_count}.")
    guess = checked_counts(predicted, np.size(counts))
    truth = checked_counts(counts, np.size(counts))
    size = max_count + 1
    cell = np.minimum(truth, max_count) * size + np.minimum(guess, max_count)
    return Confusion(np.bincount(cell, minlength=size * size).reshape(size, size))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")

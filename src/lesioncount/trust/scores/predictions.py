"""What a method predicts for each scan, beside what is true: all that is scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.errors import ScoreError
from lesioncount.trust.scores.agreement import concordance
from lesioncount.trust.scores.classification import Confusion, checked_bins, checked_counts, confusion, ratio
from lesioncount.trust.scores.on_support import LEVELS, NLL_FLOOR, entropy_of, nll, on_support, rps, surprise_of
from lesioncount.trust.scores.reliability import Reliability, bin_of, reliability
from lesioncount.trust.scores.selective import auroc

_RELIABILITY_BINS = 10

# Below this probability of the most probable count, in the median scan, hardly any count is hit exactly, and all
# confidences share one or two bins: calibration error and AUROC of hits would say nothing. With a standard deviation of
# 2 lesions it is 0.2.
_SHARP = 0.2

# A count that is wrong by at most this share of the truth is within 10 %.
_NEAR = 0.1

# Classes of a confusion matrix that can still be read, and whose resamples fit into memory.
MOST_BINS = 50


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a method predicts for each scan, and what is true.

    Parameters
    ----------
    truth : array of int, shape (n,)
    predicted : array of float, shape (n,)
        The most probable count; accuracy asks whether it is right.
    median, expected : array of float, shape (n,)
        The median is the count with the least expected error: mean absolute error is that of the median.
    intervals : array of int, shape (n, 3, 2)
        Lowest and highest count of the 50, 80 and 90 % intervals.
    below, p_truth : array of float, shape (n,)
        P(C < truth) and P(C = truth).
    impossible : array of bool, shape (n,)
        Whether the true count has probability 0.
    confidence : array of float, shape (n,)
        Probability of the predicted count; with bins, of its class.
    rps : array of float, shape (n,)
        Ranked probability score on the whole support, in lesions.
    entropy : array of float, shape (n,), or None
        Of the distribution, or of the bins; None for a method that gives one number and no distribution.
    bins : array of float, shape (n, max_count + 1), or None
        P(0), P(1), … P(max_count or more), if counts from max_count on are one class. Accuracy, RPS, log score and
        calibration error are then those of classes, and there are precision, recall and F1.

    Notes
    -----
    The prediction of a distribution is its most probable count, its mode. With bins, it need not lie in the most
    probable class: with P(3) = 0.3 and P(4) = P(5) = P(6) = 0.2, the prediction is 3, although 4 or more is more
    probable.
    """

    truth: NDArray[np.int64]
    predicted: NDArray[np.float64]
    median: NDArray[np.float64]
    expected: NDArray[np.float64]
    intervals: NDArray[np.int64]
    below: NDArray[np.float64]
    p_truth: NDArray[np.float64]
    impossible: NDArray[np.bool_]
    confidence: NDArray[np.float64]
    rps: NDArray[np.float64]
    entropy: NDArray[np.float64] | None
    bins: NDArray[np.float64] | None = None

    @classmethod
    def of_distributions(
        cls,
        distributions: Sequence[CountDistribution],
        counts: ArrayLike,
        /,
        *,
        bins: int | None = None,
        by_class: bool = False,
    ) -> Predictions:
        """Predictions from a distribution per scan.

        Parameters
        ----------
        distributions : sequence of CountDistribution
        counts : array_like of int, shape (n,)
            True counts.
        bins : int, optional
            Score classes 0, 1, … ``bins`` or more; 4 in the paper. Default: score counts.
        by_class : bool, default False
            Predict the most probable class, as the paper does, instead of the most probable count.
        """
        truth = checked_counts(counts, len(distributions))
        if bins is None and by_class:
            raise ScoreError("Expected bins, such as bins=4, if the most probable class is to be predicted.")
        found = on_support(distributions, truth)
        if bins is None:
            return cls(truth=truth, **found)
        table = _binned(distributions, _checked_max_count(bins))
        predicted = table.argmax(axis=1).astype(np.float64) if by_class else found["predicted"]
        found |= {"predicted": predicted, "confidence": _of_class(table, predicted), "entropy": entropy_of(table)}
        return cls(truth=truth, **found, bins=table)

    @classmethod
    def of_counts(cls, predicted: ArrayLike, counts: ArrayLike, /, *, bins: int | None = None) -> Predictions:
        """Predictions from one number per scan, taken as certain; ``bins`` as in `of_distributions`."""
        truth = checked_counts(counts, np.size(counts))
        guess = checked_counts(predicted, len(truth), are_true=False)
        table = None if bins is None else np.eye(_checked_max_count(bins) + 1)[np.minimum(guess, bins)]
        number, is_right = guess.astype(np.float64), guess == truth
        return cls(
            truth,
            number,
            number,
            number,
            np.broadcast_to(guess[:, None, None], (len(guess), len(LEVELS), 2)),
            (guess < truth).astype(np.float64),
            is_right.astype(np.float64),
            ~is_right,
            np.ones(len(guess)),
            np.abs(number - truth),
            None,
            table,
        )

    @classmethod
    def of_bins(cls, bins: ArrayLike, counts: ArrayLike, /) -> Predictions:
        """Predictions from the probabilities of classes 0, 1, … last or more; true counts become classes too."""
        p, truth = checked_bins(bins, counts)
        total, last = np.cumsum(p, axis=1), p.shape[1] - 1
        tails = [(1 - level) / 2 for level in LEVELS]
        ends = [((total < t).sum(axis=1), np.minimum((total < 1 - t).sum(axis=1), last)) for t in tails]
        each = np.arange(len(truth))
        p_truth = p[each, truth]
        return cls(
            truth,
            p.argmax(axis=1).astype(np.float64),
            np.minimum((total < 0.5).sum(axis=1), last).astype(np.float64),
            p @ np.arange(last + 1),
            np.stack([np.stack(pair, axis=1) for pair in ends], axis=1),
            np.clip(total[each, truth] - p_truth, 0.0, 1.0),
            p_truth,
            p_truth == 0,
            _of_class(p, p.argmax(axis=1)),
            rps(p, truth),
            entropy_of(p),
            p,
        )

    @property
    def max_count(self) -> int | None:
        """The last class; None where counts are scored."""
        return None if self.bins is None else self.bins.shape[1] - 1

    @property
    def low(self) -> NDArray[np.int64]:
        """Lowest count of the 90 % interval."""
        return np.asarray(self.intervals[:, -1, 0])

    @property
    def high(self) -> NDArray[np.int64]:
        """Highest count of the 90 % interval."""
        return np.asarray(self.intervals[:, -1, 1])

    @property
    def hits(self) -> NDArray[np.bool_]:
        """Whether the predicted count is right; with bins, whether its class is."""
        return np.asarray(self._class_of(self.predicted) == self._class_of(self.truth))

    @property
    def is_sharp(self) -> bool:
        """Whether exact hits tell anything: the most probable count has 20 % or more, in the median scan."""
        return self.bins is not None or (len(self.truth) > 0 and float(np.median(self.confidence)) >= _SHARP)

    @property
    def confusion(self) -> Confusion:
        """True and predicted classes, where there are bins."""
        if self.max_count is None:
            raise ScoreError("Expected predictions with bins, such as bins=4: a confusion matrix is one of classes.")
        return confusion(self.predicted, self.truth, max_count=self.max_count)

    @property
    def reliability(self) -> Reliability:
        """Confidence and hits of the predicted count."""
        return reliability(self.confidence, self.hits, bins=_RELIABILITY_BINS)

    @cached_property
    def means(self) -> dict[str, NDArray[np.float64]]:
        """Values of each scan whose means are scores."""
        error = np.abs(self.median - self.truth)
        surprise = surprise_of(self.p_truth) if self.bins is None else nll(self.bins, self.truth)
        inside = (self.intervals[..., 0] <= self.truth[:, None]) & (self.truth[:, None] <= self.intervals[..., 1])
        values = {
            "rps": self.rps if self.bins is None else rps(self.bins, self.truth),
            "mae": error,
            "bias": self.expected - self.truth,
            "accuracy": self.hits,
            "within_1": error <= 1,
            "within_10_percent": error <= _NEAR * self.truth,
            "nll": surprise,
            "nll_floored": surprise >= -np.log(NLL_FLOOR),
            "zero_mass": self.impossible,
        }
        for i, level in enumerate(LEVELS):
            values[f"coverage{100 * level:.0f}"] = inside[:, i]
            values[f"width{100 * level:.0f}"] = self.intervals[:, i, 1] - self.intervals[:, i, 0]
        return {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}

    def scores(self, weights: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Every score, for each row of weights (m, n): shape (m,). What is not defined is NaN."""
        total, nothing = weights.sum(axis=-1), np.full(len(weights), np.nan)
        found = {name: np.asarray(ratio(weights @ values, total)) for name, values in self.means.items()}
        found["relative_bias"] = np.asarray(ratio(found["bias"] * total, weights @ self.truth))
        found["concordance"] = concordance(self.median, self.truth, weights=weights)
        if self.bins is not None:
            classes = self.bins.shape[1]
            matrix = Confusion((weights @ self._cells).reshape(-1, classes, classes))
            found |= {"f1": matrix.f1, "precision": matrix.precision, "recall": matrix.recall}
        found |= {"ece": nothing, "mce": nothing, "auroc": nothing}
        if self.is_sharp:
            parts = self._weighted_reliability(weights)
            found |= {"ece": parts.ece, "mce": parts.mce}
        if self.is_sharp and self.entropy is not None:
            found["auroc"] = auroc(self.entropy, ~self.hits, weights=weights)
        return found

    def _class_of(self, counts: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.int64]:
        whole = counts.astype(np.int64)
        return whole if self.max_count is None else np.minimum(whole, self.max_count)

    @cached_property
    def _cells(self) -> NDArray[np.float64]:
        """One scan, one cell of the confusion matrix: (n, classes²)."""
        n_classes = (self.max_count or 0) + 1
        cell = self._class_of(self.truth) * n_classes + self._class_of(self.predicted)
        return np.asarray(np.eye(n_classes**2)[cell])

    @cached_property
    def _bin(self) -> NDArray[np.int64]:
        """In which bin of the confidence each scan is."""
        return bin_of(self.confidence, _RELIABILITY_BINS)

    def _weighted_reliability(self, weights: NDArray[np.float64]) -> Reliability:
        """Row by row: of very many scans, a column for each bin would take more memory than all else."""

        def sums(of_row: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> NDArray[np.float64]:
            rows = [np.bincount(self._bin, of_row(row), _RELIABILITY_BINS) for row in weights]
            return np.array(rows, dtype=np.float64).reshape(-1, _RELIABILITY_BINS)

        return Reliability(
            sums(lambda row: row), sums(lambda row: row * self.confidence), sums(lambda row: row * self.hits)
        )


def _checked_max_count(bins: int) -> int:
    if not 1 <= bins <= MOST_BINS:
        raise ScoreError(f"Expected the last class to be from 1 to {MOST_BINS}, such as 4, but got {bins}.")
    return bins


def _binned(distributions: Sequence[CountDistribution], max_count: int) -> NDArray[np.float64]:
    return np.array([d.binned(max_count) for d in distributions]).reshape(-1, max_count + 1)


def _of_class(bins: NDArray[np.float64], predicted: NDArray[Any]) -> NDArray[np.float64]:
    """Probability of the class of each predicted count."""
    classes = np.minimum(predicted, bins.shape[1] - 1).astype(np.int64)
    return np.asarray(np.clip(bins[np.arange(len(bins)), classes], 0.0, 1.0))

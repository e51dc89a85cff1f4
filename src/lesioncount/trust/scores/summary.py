"""All scores of a method on a cohort, each with its interval."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.trust.scores.bootstrap import N_RESAMPLES, interval_of, resampled_weights
from lesioncount.trust.scores.checks import checked_bins, checked_counts
from lesioncount.trust.scores.classification import Confusion, confusion, ratio
from lesioncount.trust.scores.estimate import Estimate
from lesioncount.trust.scores.proper import nll, rps
from lesioncount.trust.scores.reliability import Reliability, bin_of, reliability
from lesioncount.trust.scores.selective import auroc

# Counts from here on are one class, as in the paper.
MAX_COUNT = 4
_BINS = 10
_COVERAGE = 0.9


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a method predicts for each scan, and what is true.

    Parameters
    ----------
    bins : array of float, shape (n, 5)
        P(0), P(1), P(2), P(3), P(4 or more).
    predicted : array of float, shape (n,)
        The count that is judged: accuracy, confusion and reliability ask whether its class is the true one.
    expected : array of float, shape (n,)
        Expected count.
    low, high : array of int, shape (n,)
        90 % interval.
    p_truth : array of float, shape (n,)
        Probability of the true count itself, without bins.
    impossible : array of bool, shape (n,)
        Whether the true count has probability 0.
    entropy : array of float, shape (n,), or None
        Of the bins; None for a method that gives one number and no distribution.
    truth : array of int, shape (n,)

    Notes
    -----
    The prediction of a distribution is its most probable count, its mode. It need not lie in the most probable of the
    five classes: with P(3) = 0.3 and P(4) = P(5) = P(6) = 0.2, the prediction is 3, although 4 or more is more
    probable. Its confidence is the probability of its class.
    """

    bins: NDArray[np.float64]
    predicted: NDArray[np.float64]
    expected: NDArray[np.float64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    p_truth: NDArray[np.float64]
    impossible: NDArray[np.bool_]
    entropy: NDArray[np.float64] | None
    truth: NDArray[np.int64]

    @classmethod
    def of_distributions(
        cls, distributions: Sequence[CountDistribution], counts: ArrayLike, /, *, by_class: bool = False
    ) -> Predictions:
        """Predictions from a distribution per scan.

        Parameters
        ----------
        distributions : sequence of CountDistribution
        counts : array_like of int, shape (n,)
            True counts.
        by_class : bool, default False
            Predict the most probable of the five classes, as the paper does, instead of the most probable count.
        """
        truth = checked_counts(counts, len(distributions))
        bins = np.array([d.binned(MAX_COUNT) for d in distributions]).reshape(-1, MAX_COUNT + 1)
        intervals = np.array([d.interval(_COVERAGE) for d in distributions], dtype=np.int64).reshape(-1, 2)
        return cls(
            bins,
            bins.argmax(axis=1).astype(np.float64)
            if by_class
            else np.array([d.mode() for d in distributions], dtype=np.float64),
            np.array([d.mean() for d in distributions]),
            intervals[:, 0],
            intervals[:, 1],
            np.array([d.pmf(int(c)) for d, c in zip(distributions, truth, strict=True)]),
            np.array([np.isneginf(d.logpmf(int(c))) for d, c in zip(distributions, truth, strict=True)], dtype=bool),
            _entropy(bins),
            truth,
        )

    @classmethod
    def of_counts(cls, predicted: ArrayLike, counts: ArrayLike, /) -> Predictions:
        """Predictions from one number per scan, taken as certain."""
        truth = checked_counts(counts, np.size(counts))
        guess = checked_counts(predicted, len(truth))
        bins = np.eye(MAX_COUNT + 1)[np.minimum(guess, MAX_COUNT)]
        number = guess.astype(np.float64)
        return cls(bins, number, number, guess, guess, (guess == truth).astype(np.float64), guess != truth, None, truth)

    @classmethod
    def of_bins(cls, bins: ArrayLike, counts: ArrayLike, /) -> Predictions:
        """Predictions from the probabilities of the classes 0, 1, 2, 3, 4 or more; true counts become classes too."""
        p, truth = checked_bins(bins, counts)
        classes, total = np.arange(MAX_COUNT + 1), np.cumsum(p, axis=1)
        tail = (1 - _COVERAGE) / 2
        p_truth = p[np.arange(len(truth)), truth]
        return cls(
            p,
            p.argmax(axis=1).astype(np.float64),
            p @ classes,
            (total < tail).sum(axis=1),
            np.minimum((total < 1 - tail).sum(axis=1), MAX_COUNT),
            p_truth,
            p_truth == 0,
            _entropy(p),
            truth,
        )

    @property
    def hits(self) -> NDArray[np.bool_]:
        """Whether the predicted count is right, with counts from 4 on as one class."""
        return np.asarray(self._predicted_class == np.minimum(self.truth, MAX_COUNT))

    @property
    def confidence(self) -> NDArray[np.float64]:
        """Probability of the class of the predicted count."""
        return np.clip(self.bins[np.arange(len(self.bins)), self._predicted_class], 0.0, 1.0)

    @property
    def confusion(self) -> Confusion:
        """True and predicted counts."""
        return confusion(self.predicted, self.truth, max_count=MAX_COUNT)

    @property
    def reliability(self) -> Reliability:
        """Confidence and hits of the predicted count."""
        return reliability(self.confidence, self.hits, bins=_BINS)

    @property
    def _predicted_class(self) -> NDArray[np.int64]:
        return np.minimum(self.predicted, MAX_COUNT).astype(np.int64)

    @cached_property
    def means(self) -> dict[str, NDArray[np.float64]]:
        """Values of each scan whose means are scores."""
        return {
            "rps": rps(self.bins, self.truth),
            "accuracy": self.hits.astype(np.float64),
            "mae": np.abs(self.predicted - self.truth),
            "bias": self.expected - self.truth,
            "nll": nll(self.bins, self.truth),
            "zero_mass": self.impossible.astype(np.float64),
            "coverage90": ((self.low <= self.truth) & (self.truth <= self.high)).astype(np.float64),
            "width90": (self.high - self.low).astype(np.float64),
        }

    def scores(self, weights: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Every score, for each row of weights (m, n): shape (m,)."""
        total = weights.sum(axis=-1)
        found = {name: np.asarray(ratio(weights @ values, total)) for name, values in self.means.items()}
        matrix = Confusion((weights @ self._cells).reshape(-1, MAX_COUNT + 1, MAX_COUNT + 1))
        bins = Reliability(*(weights @ part for part in self._reliability_parts))
        found |= {"f1": matrix.f1, "precision": matrix.precision, "recall": matrix.recall}
        found |= {"ece": bins.ece, "mce": bins.mce}
        nothing = np.full(len(weights), np.nan)
        found["auroc"] = nothing if self.entropy is None else auroc(self.entropy, ~self.hits, weights=weights)
        return found

    @cached_property
    def _cells(self) -> NDArray[np.float64]:
        """One scan, one cell of the confusion matrix: (n, 25)."""
        cell = np.minimum(self.truth, MAX_COUNT) * (MAX_COUNT + 1) + self._predicted_class
        return np.asarray(np.eye((MAX_COUNT + 1) ** 2)[cell])

    @cached_property
    def _reliability_parts(self) -> tuple[NDArray[np.float64], ...]:
        """One scan, one bin of the confidence: its number, confidence and hit, each (n, 10)."""
        where = np.eye(_BINS)[bin_of(self.confidence, _BINS)]
        return where, where * self.confidence[:, None], where * self.hits[:, None]


def _entropy(bins: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.maximum(0.0, -(bins * np.log(np.where(bins > 0, bins, 1.0))).sum(axis=1)))


def score_all(
    methods: dict[str, Predictions],
    /,
    *,
    groups: Sequence[Hashable],
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> tuple[dict[str, dict[str, Estimate]], dict[tuple[str, str], dict[str, Estimate]]]:
    """Scores of each method, and paired differences between each two, from the same resamples of groups."""
    once = np.ones((1, len(groups)))
    estimates = {name: method.scores(once) for name, method in methods.items()}
    drawn: dict[str, dict[str, list[NDArray[np.float64]]]] = {name: {} for name in methods}
    for weights in resampled_weights(groups, n_resamples=n_resamples, seed=seed):
        for name, method in methods.items():
            for score, values in method.scores(weights).items():
                drawn[name].setdefault(score, []).append(values)
    samples = {name: {s: np.concatenate(parts) for s, parts in of.items()} for name, of in drawn.items()}
    scores = {
        name: {s: Estimate(float(value[0]), *interval_of(samples[name][s])) for s, value in of.items()}
        for name, of in estimates.items()
    }
    differences = {
        (a, b): {
            s: Estimate(float((value - estimates[b][s])[0]), *interval_of(samples[a][s] - samples[b][s]))
            for s, value in estimates[a].items()
        }
        for a in methods
        for b in methods
        if a != b
    }
    return scores, differences

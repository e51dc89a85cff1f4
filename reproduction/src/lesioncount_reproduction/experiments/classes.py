"""Classes of counts: 0, 1, 2, 3, and 4 or more as in the paper, or ranges where there are hundreds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.trust.scores.predictions import Predictions


@dataclass(frozen=True)
class CountClasses:
    """Which counts are told apart.

    Attributes
    ----------
    begins : tuple of int
        The counts at which classes begin, from 0 on; the last one has no end.
    """

    begins: tuple[int, ...]

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.begins)

    @property
    def are_counts(self) -> bool:
        """Whether each class but the last is a single count."""
        return self.begins == tuple(range(self.n))

    @property
    def names(self) -> tuple[str, ...]:
        """As they are read: "3", "11–19", "4+"."""
        ends = [after - 1 for after in self.begins[1:]]
        known = [f"{a}" if a == b else f"{a}–{b}" for a, b in zip(self.begins, ends, strict=False)]
        return (*known, f"{self.begins[-1]}+")

    def of(self, counts: ArrayLike) -> NDArray[np.int64]:
        """The class of each count."""
        return np.asarray(np.searchsorted(self.begins, np.asarray(counts), side="right") - 1, dtype=np.int64)

    def binned(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(0), P(1), … P(last begin or more), one row a scan → probabilities of classes."""
        return np.add.reduceat(probabilities, np.array(self.begins), axis=1)

    def of_distributions(self, distributions: Sequence[CountDistribution], counts: NDArray[np.int64]) -> Predictions:
        """Predictions of the most probable class; where classes are counts, intervals are of counts."""
        if self.are_counts:
            return Predictions.of_distributions(distributions, counts, bins=self.n - 1, by_class=True)
        exact = np.array([one.binned(self.begins[-1]) for one in distributions])
        return Predictions.of_bins(self.binned(exact), self.of(counts))

    def of_counts(self, predicted: NDArray[np.int64], counts: NDArray[np.int64]) -> Predictions:
        """Predictions from one number a scan."""
        if self.are_counts:
            return Predictions.of_counts(predicted, counts, bins=self.n - 1)
        return Predictions.of_counts(self.of(predicted), self.of(counts), bins=self.n - 1)

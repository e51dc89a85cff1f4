"""How far counts are from a reader, beside how far two readers are from each other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Self

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from lesioncount.trust.scores.bootstrap import CONFIDENCE, resampled_ratios
from lesioncount.trust.scores.estimate import Estimate


class BetweenReaders(Struct, frozen=True, kw_only=True):
    """The error of counts against readers, and the disagreement of readers, on the scans that several have read.

    Attributes
    ----------
    n_scans, n_readings : int
        Scans with at least two readers, and how often these were read.
    error : Estimate
        Mean over scans of |m - r_b|, averaged over the readers b of a scan; m is the median of the predicted count.
    between : Estimate
        Mean over scans of |r_a - r_b|, averaged over all pairs of readers of a scan.
    difference : Estimate
        Error minus disagreement, from the same resamples of scans.
    """

    n_scans: int = 0
    n_readings: int = 0
    error: Estimate = Estimate()
    between: Estimate = Estimate()
    difference: Estimate = Estimate()

    @classmethod
    def of(
        cls, medians: ArrayLike, readings: Sequence[Sequence[int]], groups: Sequence[Hashable], /, *, seed: int = 0
    ) -> Self | None:
        """From the median and the counts of all readers of each scan; None if no scan has two.

        Examples
        --------
        >>> found = BetweenReaders.of([2, 1], [[1, 2, 4], [1]], ["a", "b"])
        >>> found.n_scans, found.error.value, found.between.value
        (1, 1.0, 2.0)
        """
        rows = [
            (abs(np.array(of) - median).mean(), _mean_difference(of), group)
            for median, of, group in zip(np.asarray(medians).tolist(), readings, groups, strict=True)
            if len(of) > 1
        ]
        if not rows:
            return None
        error, between, of_groups = zip(*rows, strict=True)
        values = np.stack([error, between, np.subtract(error, between)], axis=1).astype(np.float64)
        found = resampled_ratios(values, np.ones_like(values), of_groups, seed=seed)
        n_readings = sum(len(of) for of in readings if len(of) > 1)
        return cls(n_scans=len(rows), n_readings=n_readings, error=found[0], between=found[1], difference=found[2])

    @property
    def in_words(self) -> str:
        """How far counts are off beside how far readers differ, and which margin the interval excludes."""
        apart = self.difference
        signed = f"{apart.value:.2f} [{apart.low:.2f}, {apart.high:.2f}]".replace("-", "−")
        said = (
            f"Off by {self.error.value:.2f} from a reader; two readers differ by {self.between.value:.2f}; difference "
            f"{signed}, from {self.n_readings} readings of {self.n_scans} scans."
        )
        excludes = f" The {100 * CONFIDENCE:g} % interval excludes a margin above {apart.high:.2f} lesions."
        return said + (excludes if apart.low < apart.high else "")


def _mean_difference(counts: Sequence[int]) -> float:
    """The mean of |a - b| over all pairs of different readers."""
    apart = np.abs(np.subtract.outer(counts, counts))
    return float(apart.sum() / (len(counts) * (len(counts) - 1)))

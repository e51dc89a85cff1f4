"""What maps say of candidates, before any correction: peaks, saddles, and what is there at another time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.coupling import only_now

# What is counted: all lesions of a scan; or of two scans of a patient, those that are new, gone or still there.
Counted = Literal["lesions", "new", "gone", "persisting"]


@dataclass(frozen=True, eq=False)
class Heights:
    """What maps say of the candidates of a scan.

    Attributes
    ----------
    peaks, saddles : ndarray of float64
        Their heights; 0 for those without a saddle.
    others, risen : ndarray of float64, or None
        Of changes: the probability at the other time where a candidate rises most above it, and its own there.
    """

    peaks: NDArray[np.float64]
    saddles: NDArray[np.float64]
    others: NDArray[np.float64] | None = None
    risen: NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls,
        peaks: ArrayLike,
        saddles: ArrayLike | None = None,
        others: ArrayLike | None = None,
        risen: ArrayLike | None = None,
    ) -> Self:
        """As arrays. A candidate that rises less than its saddle has nothing of its own there."""
        heights = np.asarray(peaks, dtype=np.float64)
        below = np.asarray(0.0 if saddles is None else saddles, dtype=np.float64)
        if others is None:
            return cls(heights, below)
        there = heights if risen is None else np.maximum(np.asarray(risen, dtype=np.float64), below)
        return cls(heights, below, np.asarray(others, dtype=np.float64), there)


def uncorrected(heights: Heights, counted: Counted, coupling: float) -> NDArray[np.float64]:
    """Existence as the maps have it."""
    own = heights.peaks - heights.saddles
    if heights.others is None or heights.risen is None:
        return own
    changed = only_now(heights.risen, heights.saddles, heights.others, coupling)
    return np.asarray(own - changed if counted == "persisting" else changed)


def stands_out(peaks: NDArray[np.float64], saddles: NDArray[np.float64], ripple: float) -> NDArray[np.bool_]:
    """Whether each peak rises above its saddle by this much, or has none."""
    return np.asarray((saddles == 0) | (peaks - saddles >= ripple))

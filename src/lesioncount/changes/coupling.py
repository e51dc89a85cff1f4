"""A lesion now, and something there at the other time → the probability that it is new, or gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.changes.counted_map import CountedMap
from lesioncount.regions.nearby import Ball, voxel_size_of

# How the doubt about a place now and at the other time belong together, unless a calibration says otherwise: chosen by
# measurement, see docs/over_time.md.
DEFAULT_COUPLING = 2.5

# Beyond this, whatever was seen at the other time, however faint, decides.
STRONGEST_COUPLING = 10.0


def only_now(peaks: Any, saddles: Any, others: Any, coupling: float) -> Any:
    """The probability that each candidate is a lesion, and that nothing was there at the other time.

    Parameters
    ----------
    peaks, saddles : array_like of float
        Heights of candidates; 0 for those without a saddle. The difference is the probability that it is a lesion.
    others : array_like of float
        What the other map says of the place: the probability of a lesion there.
    coupling : float
        0: the two are independent. 1: the doubt is the same. Above 1, what the other map says counts for more.

    Notes
    -----
    With b, d and u for the three, a lesion that is there now with e = b - d was not there at the other time with::

        e (1 - u)                 coupling 0: independent
        max(0, b - max(d, u))     coupling 1: one number in [0, 1], drawn once, decides about both times
        max(0, b - max(d, u'))    coupling 1 + m: likewise, with logit u' = logit u + m

    The second is the persistence of a peak, with the other time in the place of a saddle: what a lower threshold would
    find at both times is one lesion. The third knows that most lesions stay: where there is one now, a faint sign of it
    before is worth more than by itself, by the odds e^m; and two maps of the same lesion that differ by noise are no
    news. Between 0 and 1 it is a mixture of the first two.

    Examples
    --------
    A lesion that both maps are sure of, one that is new, and one that both maps doubt:

    >>> now, before = np.array([0.95, 0.9, 0.5]), np.array([0.94, 0.02, 0.45])
    >>> [only_now(now, 0.0, before, coupling).round(3).tolist() for coupling in (0, 1, 2)]
    [[0.057, 0.882, 0.275], [0.01, 0.88, 0.05], [0.0, 0.847, 0.0]]
    """
    if coupling == 0:
        return (peaks - saddles) * (1 - others)
    same_doubt = np.maximum(peaks - np.maximum(saddles, raised(others, coupling)), 0.0)
    if coupling >= 1:
        return same_doubt
    independent = (peaks - saddles) * (1 - others)
    return independent + coupling * (same_doubt - independent)


def margin_of(coupling: float) -> float:
    """What a coupling adds to the logit of the other time."""
    return max(coupling - 1.0, 0.0)


def raised(others: Any, coupling: float) -> Any:
    """Probabilities with odds that are higher by the margin of a coupling."""
    odds = np.exp(margin_of(coupling))
    return others * odds / (1 - others + others * odds)


def above_floors(heights: Any, others: Any, floor_now: float, floor_then: float) -> Any:
    """What the other map says of some places, if what its background reaches by itself is taken for nothing.

    Parameters
    ----------
    heights, others : array_like of float
        Probabilities of the same places: in the map of candidates, and in the other one.
    floor_now, floor_then : float
        Of these maps, below all heights.

    Notes
    -----
    A network that was trained with smoothed labels has 0.05 everywhere, and weighted losses and ensembles have such
    floors, too. That is no sign of a lesion, but a coupling would multiply it. With f and g for the floors, b and u for
    the heights and the others::

        u → b · [(u - g)+ / (1 - g)] / [(b - f) / (1 - f)]

    At the floor it is 0, and where both maps are the same it is b: nothing is new.

    Examples
    --------
    >>> above_floors(np.array([0.9, 0.9, 0.5]), np.array([0.05, 0.06, 0.5]), 0.05, 0.05).round(3).tolist()
    [0.0, 0.011, 0.5]
    """
    if floor_now == floor_then == 0:
        return others
    seen, seen_now = (
        (one - floor).clip(0.0) / (1 - floor) for one, floor in ((others, floor_then), (heights, floor_now))
    )
    return np.minimum(heights * (seen / seen_now), 1.0)


@dataclass(frozen=True, eq=False)
class Rises:
    """Of each candidate, the voxel at which its map rises most above the other one.

    A lesion that is new beside an old one, or in one region with it, is seen where there was nothing: not at the peak
    of the region, which may be that of the old one.

    Attributes
    ----------
    heights : ndarray of float64, shape (n,)
        The probability there.
    others : ndarray of float64, shape (n,)
        The highest probability of the other map within the tolerance of it, above the floors of both maps.
    index : ndarray of int64, shape (n, ndim)
        Where it is.
    """

    heights: NDArray[np.float64]
    others: NDArray[np.float64]
    index: NDArray[np.int64]

    @classmethod
    def of(cls, now: CountedMap, then: CountedMap, /, *, within_mm: float, coupling: float) -> Rises:
        """Of the candidates of one map above another; the coupling says how much a sign of it there is worth."""
        candidates = now.count.candidates
        rows, index = candidates.voxels()
        heights = now.at(index)
        ball = Ball.of(within_mm, voxel_size_of(candidates))
        floors = now.floor(candidates, ball), then.floor(candidates, ball)
        others = above_floors(heights, then.highest_near(index, ball), *floors)
        rise = heights - raised(others, coupling)
        # Of each row, the last in this order: the largest rise, and of equals the highest voxel, the first in C order.
        order = np.lexsort((-np.arange(len(rows)), heights, rise, rows))
        last = order[np.searchsorted(rows[order], np.arange(len(candidates)), side="right") - 1]
        return cls(heights[last], others[last], index[last])

"""Candidates now, and the map of another time → where each rises most above what was there, and by how much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lesioncount.changes.counted_map import CountedMap
from lesioncount.changes.coupling import above_floors, raised
from lesioncount.regions.nearby import Ball, voxel_size_of


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

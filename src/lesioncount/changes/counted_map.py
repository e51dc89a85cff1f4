"""A map in memory and its count: what is compared over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.candidates import Candidates, find_candidates
from lesioncount.counting import LesionCount
from lesioncount.protocol import CountingProtocol
from lesioncount.regions.nearby import Ball, highest_near
from lesioncount.sweep.voxels import sigmoid

# Places at which the floor of a map is looked at. The median of so many is off by a hundredth of the spread.
_PLACES = 4096

# How far around candidates these are, in radii of the ball that is searched: outside of most lesions, but inside of
# the organ, where a map that is 0 outside of it has its floor.
_AROUND = 4


@dataclass(frozen=True, eq=False)
class CountedMap:
    """A map in memory and its count: what is compared.

    Attributes
    ----------
    count : LesionCount
    voxels : ndarray
        As they are stored.
    scale, logits
        What they mean.
    inside : ndarray of bool, or None
        Where it was looked at.
    """

    count: LesionCount
    voxels: NDArray[Any]
    scale: float | None = None
    logits: bool = False
    inside: NDArray[np.bool_] | None = None

    @classmethod
    def of(
        cls,
        voxels: NDArray[Any],
        scale: float | None = None,
        logits: bool = False,
        *,
        protocol: CountingProtocol,
        inside: NDArray[np.bool_] | None = None,
        spacing_mm: ArrayLike | None = None,
        threads: int = 1,
    ) -> CountedMap:
        """Count a map."""
        found = find_candidates(
            voxels,
            protocol=protocol,
            mask=inside,
            spacing_mm=spacing_mm,
            scale=scale,
            logits=logits,
            threads=threads,
            warn=False,
        )
        return cls(LesionCount.of(found), voxels, scale, logits, inside)

    def at(self, index: NDArray[np.int64]) -> NDArray[np.float64]:
        """The probabilities of some voxels, (n, ndim)."""
        return self._probability(self.voxels[tuple(index.T)])

    def highest_near(self, index: NDArray[np.int64], ball: Ball) -> NDArray[np.float64]:
        """The highest probability around each of some voxels."""
        voxels = self.voxels if self.scale is None or self.scale > 0 else -self.voxels
        if self.inside is not None:  # outside, anything may be stored
            voxels = np.where(self.inside, voxels, -np.inf if self.logits else 0)
        # Larger is more probable: it is enough to convert what was found.
        found = highest_near(voxels, index, ball)
        return self._probability(found if self.scale is None or self.scale > 0 else -found)

    def floor(self, around: Candidates, ball: Ball) -> float:
        """What the background of this map reaches by itself near some candidates of another map of the same grid.

        The median of the highest probability within the ball, over places around the candidates at which it is not
        above the threshold; 0 without such places. The places are random, and the same each time.
        """
        if len(around) == 0:
            return 0.0
        n, reach = len(around.shape), _AROUND * ball.steps.max(axis=0)
        first, last = np.maximum(around.bbox[:, :n] - reach, 0), np.minimum(around.bbox[:, n:] + reach, around.shape)
        rng = np.random.default_rng(0)
        boxes = rng.integers(len(around), size=_PLACES)
        index = rng.integers(first[boxes], last[boxes])
        if self.inside is not None:
            index = index[self.inside[tuple(index.T)]]
        highest = self.highest_near(index, ball)
        background = highest[highest <= around.protocol.threshold]
        return float(np.median(background)) if len(background) else 0.0

    def _probability(self, stored: NDArray[Any]) -> NDArray[np.float64]:
        values = stored.astype(np.float64)
        if self.logits:
            return sigmoid(values)
        return np.clip(values * (1.0 if self.scale is None else self.scale), 0.0, 1.0)

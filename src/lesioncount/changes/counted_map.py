"""A map in memory and its count: what is compared over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.candidates import find_candidates
from lesioncount.counting import LesionCount
from lesioncount.protocol import CountingProtocol
from lesioncount.regions.nearby import Ball, highest_near
from lesioncount.sweep.voxels import sigmoid


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

    def _probability(self, stored: NDArray[Any]) -> NDArray[np.float64]:
        values = stored.astype(np.float64)
        if self.logits:
            return sigmoid(values)
        return np.clip(values * (1.0 if self.scale is None else self.scale), 0.0, 1.0)

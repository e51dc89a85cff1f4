"""A map in memory and its count: what is compared over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.candidates import Candidates, find_candidates
from lesioncount.counting import LesionCount
from lesioncount.nearby import highest_near
from lesioncount.protocol import CountingProtocol
from lesioncount.voxels import sigmoid


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

    def highest_near(self, candidates: Candidates, within_mm: float) -> NDArray[np.float64]:
        """The highest probability of this map within a distance of each candidate of another one."""
        voxels = self.voxels if self.scale is None or self.scale > 0 else self.voxels * self.scale
        if self.inside is not None:  # outside, anything may be stored
            voxels = np.where(self.inside, voxels, -np.inf if self.logits else 0)
        # Larger is more probable: it is enough to convert what was found.
        stored = highest_near(candidates, voxels, within_mm).astype(np.float64)
        if self.logits:
            return sigmoid(stored)
        return np.clip(stored * (self.scale if self.scale is not None and self.scale > 0 else 1.0), 0.0, 1.0)

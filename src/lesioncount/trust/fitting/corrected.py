"""Corrected heights with their derivatives by slope and offset, which follow them through sums and products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Height:
    """f(p) at each node, (nodes, candidates), and its derivatives by slope and offset."""

    value: Values
    by_slope: Values
    by_offset: Values

    @classmethod
    def of(cls, logits: Values, slope: float, shift: Values) -> Height:
        """The logistic function of slope · logits + shift."""
        p = 1 / (1 + np.exp(-np.clip(slope * logits + shift, -500, 500)))
        by_offset = p * (1 - p)
        return cls(p, by_offset * logits, by_offset)

    def where(self, condition: NDArray[np.bool_]) -> Height:
        """The same, and 0 elsewhere."""
        return Height(*(np.where(condition, part, 0.0) for part in self._parts))

    def __sub__(self, other: Height) -> Height:
        return Height(*(a - b for a, b in zip(self._parts, other._parts, strict=True)))

    def __add__(self, other: Height) -> Height:
        return Height(*(a + b for a, b in zip(self._parts, other._parts, strict=True)))

    def times(self, factor: float) -> Height:
        """Of a share of the places."""
        return Height(*(factor * part for part in self._parts))

    def without(self, other: Height) -> Height:
        """Itself times 1 - other: this and not the other, if they are independent."""
        left = 1 - other.value
        return Height(
            self.value * left,
            self.by_slope * left - self.value * other.by_slope,
            self.by_offset * left - self.value * other.by_offset,
        )

    def maximum(self, other: Height) -> Height:
        """The higher of two."""
        is_this = self.value >= other.value
        return Height(*(np.where(is_this, a, b) for a, b in zip(self._parts, other._parts, strict=True)))

    @property
    def above_zero(self) -> Height:
        """0 where it is below."""
        return self.where(self.value > 0)

    @property
    def _parts(self) -> tuple[Values, Values, Values]:
        return self.value, self.by_slope, self.by_offset


def only_now(peak: Height, saddle: Height, other: Height, coupling: float) -> Height:
    """As `coupling.only_now`, with derivatives; from a coupling of 1 on, the other is raised already."""
    same_doubt = (peak - saddle.maximum(other)).above_zero
    if coupling >= 1:
        return same_doubt
    return (peak - saddle).without(other).times(1 - coupling) + same_doubt.times(coupling)

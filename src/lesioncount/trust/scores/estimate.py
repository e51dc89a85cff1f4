"""A number and how far it can be trusted: the one type for every score, rate and difference that has an interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval; NaN where something is not defined.

    Attributes
    ----------
    value : float
    low, high : float
        Ends of the interval, over scans or patients.
    seeds : tuple of float
        Of a mean over trainings, the value of each.

    Examples
    --------
    >>> -Estimate(0.5, 0.4, 0.7)
    Estimate(value=-0.5, low=-0.7, high=-0.4, seeds=())
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    seeds: tuple[float, ...] = ()

    @property
    def is_defined(self) -> bool:
        """Whether there is a number at all."""
        return not math.isnan(self.value)

    @property
    def has_interval(self) -> bool:
        """Whether both ends are known."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def __neg__(self) -> Estimate:
        return Estimate(-self.value, -self.high, -self.low, tuple(-value for value in self.seeds))

    def to_dict(self) -> dict[str, Any]:
        """As plain values, as files have them."""
        plain: dict[str, Any] = {"estimate": self.value, "low": self.low, "high": self.high}
        return plain | ({"seeds": list(self.seeds)} if self.seeds else {})

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """From what `to_dict` gave, read back from a file; null is NaN."""
        if not isinstance(content, Mapping):
            raise TypeError("expected an estimate with its interval")
        numbers = (content.get("estimate"), content.get("low"), content.get("high"))
        value, low, high = map(_number, numbers)
        return cls(value, low, high, tuple(_number(one) for one in content.get("seeds", ())))


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)

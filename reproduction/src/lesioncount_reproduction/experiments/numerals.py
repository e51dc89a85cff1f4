"""Numbers and estimates as they are read."""

from __future__ import annotations

import math

from lesioncount.trust.scores.estimate import Estimate

# How numbers of a kind are written: factor, digits after the point, and unit.
_KINDS = {
    "percent": (100.0, 1, " %"),
    "points": (100.0, 1, " points"),
    "score": (1.0, 3, ""),
    "1e-5": (1e5, 1, " · 1e-5"),
    "number": (1.0, 2, ""),
    "whole": (1.0, 0, ""),
}


def written(value: float | Estimate, kind: str, *, unit: bool = False) -> str:
    """A number, or an estimate with its interval; with its unit, or without where a table's head says it."""
    after = _KINDS[kind][2] if unit else ""
    if isinstance(value, Estimate):
        if not math.isfinite(value.value):
            return "–"
        low, high = (_number(one, kind) for one in (value.low, value.high))
        return f"{_number(value.value, kind)}{after} [{low}, {high}]"
    return _number(value, kind) + after


def _number(value: float, kind: str) -> str:
    if not math.isfinite(value):
        return "–"
    factor, digits, _ = _KINDS[kind]
    text = f"{value * factor:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "\u2212")

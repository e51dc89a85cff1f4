"""Values of a JSON file → Python values of the kind that is expected; anything else is a TypeError."""

from __future__ import annotations

import json
import math
from typing import Any

from lesioncount.trust.scores.estimate import Estimate

# Letters of a wrong value that a message shows.
_SHOWN = 40


def object_of(value: Any) -> dict[str, Any]:
    """An object."""
    return value if isinstance(value, dict) else _refuse(value, "an object")


def list_of(value: Any) -> list[Any]:
    """A list."""
    return value if isinstance(value, list) else _refuse(value, "a list")


def text_of(value: Any) -> str:
    """A text."""
    return value if isinstance(value, str) else _refuse(value, "a text")


def whole_of(value: Any) -> int:
    """A whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else _refuse(value, "a whole number")


def number_of(value: Any) -> float:
    """A number; null is NaN."""
    if value is None:
        return math.nan
    return (
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) else _refuse(value, "a number")
    )


def numbers_of(value: Any) -> tuple[float, ...]:
    """A list of numbers."""
    return tuple(number_of(one) for one in list_of(value))


def estimates_of(value: Any) -> dict[str, Estimate]:
    """Estimates by name; null is one without a value."""
    return {
        name: Estimate() if content is None else Estimate.from_dict(object_of(content))
        for name, content in object_of(value).items()
    }


def _refuse(value: Any, expected: str) -> Any:
    shown = json.dumps(value, ensure_ascii=False)
    raise TypeError(f"expected {expected}, but got {shown[:_SHOWN]}{'…' if len(shown) > _SHOWN else ''}")

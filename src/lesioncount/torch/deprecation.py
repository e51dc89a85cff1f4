"""The keyword that the torch side had before it spoke like the numpy side."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from lesioncount.deprecation import warn_deprecated

P = ParamSpec("P")
R = TypeVar("R")


def takes_probabilities_keyword(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function that has ``logits=`` also take ``probabilities=``, its opposite, with a `DeprecationWarning`."""

    @wraps(function)
    def translated(*args: P.args, **options: P.kwargs) -> R:
        given: dict[str, Any] = options
        if "probabilities" in given:
            if "logits" in given:
                raise TypeError("Expected either logits= or probabilities=, and not both.")
            warn_deprecated("probabilities=", "logits=, its opposite: logits=False instead of probabilities=True")
            given["logits"] = not given.pop("probabilities")
        return function(*args, **options)

    return translated

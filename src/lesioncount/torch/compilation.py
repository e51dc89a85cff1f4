"""``torch.compile``: code that goes through numpy is left out, as one clean break of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import torch

P = ParamSpec("P")
R = TypeVar("R")


def outside_of_compilation(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function uncompiled, even inside a compiled model."""
    return cast("Callable[P, R]", cast("Any", torch.compiler.disable)(function))

"""The four methods of the paper, by name: what the count is computed from."""

from __future__ import annotations

from typing import Literal, get_args

from lesioncount.deprecation import warn_deprecated

Method = Literal["map", "bottleneck", "multihead", "downstream"]
METHODS: tuple[str, ...] = get_args(Method)

# What a counting head takes of what is left of the image: the mean, as in the paper, or the largest value.
Readout = Literal["mean", "max"]
READOUTS: tuple[str, ...] = get_args(Readout)

# Names of version 0.1, which checkpoints and configurations may still hold.
_RENAMED = {"ours": "map"}


def current_method(name: str, *, warn: bool = True, stacklevel: int = 2) -> str:
    """The name that a method has now; an old one is translated, with a `DeprecationWarning` unless told otherwise."""
    if name not in _RENAMED:
        return name
    if warn:
        warn_deprecated(f"The method {name!r}", repr(_RENAMED[name]), stacklevel=stacklevel)
    return _RENAMED[name]

"""What a configuration may hold: numbers of ordinary size, and networks that fit into memory."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal, get_args

from lesioncount.errors import ConfigError

# The four methods of the paper: what the count is computed from.
Method = Literal["map", "bottleneck", "multihead", "downstream"]
METHODS: tuple[str, ...] = get_args(Method)

# What a counting head takes of what is left of the image: the mean, as in the paper, or the largest value.
Readout = Literal["mean", "max"]
READOUTS: tuple[str, ...] = get_args(Readout)

# Filters of a UNet's lowest level: a convolution between two such levels has 2 GB of weights. The paper has 256.
MOST_FILTERS = 4096
# Each level halves the image.
_MOST_LEVELS = 16
# Metrics keep a table of this size squared.
MOST_COUNTS = 1000
# e to the power of 100 times this is still a number.
STEEPEST = 7.0
MOST_VOXELS = 1 << 28

_LARGEST = 2**63 - 1
_LONGEST_FILE = 1 << 20
_LONGEST_SHOWN = 80


def text_of(path: Path) -> str:
    """The text of a short file; ValueError or OSError if it is none."""
    if path.exists() and not path.is_file():
        raise ValueError("it is no file")
    with path.open("rb") as file:
        content = file.read(_LONGEST_FILE + 1)
    if len(content) > _LONGEST_FILE:
        raise ValueError("it is too long for a configuration")
    return content.decode("utf-8")


def check_number(section: str, key: str, value: Any) -> None:
    """Numbers must be finite, and whole ones fit into 64 bits: what computes with them has no others."""
    for one in value if isinstance(value, tuple | list) else (value,):
        is_too_large = isinstance(one, int) and not -_LARGEST <= one <= _LARGEST
        if is_too_large or (isinstance(one, float) and not math.isfinite(one)):
            raise ConfigError(f"Expected {key} in [{section}] to be a number of ordinary size, but got {shown(one)}.")


def is_network_size(filters: int, levels: int) -> bool:
    """Whether a UNet may be this wide and deep: at its lowest level, each filter reads all of the one above."""
    return filters >= 1 and 2 <= levels <= _MOST_LEVELS and filters * 2 ** (levels - 2) <= MOST_FILTERS


def are_sizes(given: tuple[Any, ...]) -> bool:
    """Whether all are whole numbers above 0."""
    return all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in given)


def shown(value: Any, longest: int = 0) -> str:
    """A value for a message: not pages of it, and no numbers that Python refuses to write."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} too long to show"
    longest = longest or _LONGEST_SHOWN
    return text if len(text) <= longest else f"{text[:longest]}…"

"""Names of regions: which label has which, and which names are taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from lesioncount.errors import RegionError, listed

# Where no region of the atlas is.
OUTSIDE = "outside"

# What questions call something else: the whole count, and what changes from scan to scan.
RESERVED = frozenset({"count", OUTSIDE, "new", "gone", "persisting"})

# Of a name; that of a file is not longer either.
_LONGEST = 255

# Regions that a message names.
_SHOWN = 8


def checked_names(names: Mapping[int, str] | None) -> dict[int, str]:
    """The names of labels, several of which may share one. What label 0 is called does not matter: it is outside."""
    if names is None:
        return {}
    if not isinstance(names, Mapping):
        raise RegionError(f"Expected names of regions by label, such as {{1: 'frontal'}}, but got {names!r:.100}.")
    checked = {}
    for label, name in names.items():
        if not isinstance(label, int | np.integer) or isinstance(label, bool):
            raise RegionError(f"Expected labels of regions to be whole numbers, but got {label!r:.100}.")
        if label != 0:
            checked[int(label)] = checked_name(name)
    return checked


def checked_name(name: object) -> str:
    """The name of a region, without blanks around it."""
    if not isinstance(name, str) or not name.strip():
        raise RegionError(f"Expected the name of a region, but got {name!r:.100}.")
    text = name.strip()
    if len(text) > _LONGEST or not text.isprintable():
        raise RegionError(
            f"Expected the name of a region in at most {_LONGEST} printable characters, but got {text!r:.100}."
        )
    if text.casefold() in RESERVED:
        raise RegionError(
            f"A region cannot be called {text!r}, which stands for something else (as do {', '.join(sorted(RESERVED))})"
            ". Rename it."
        )
    return text


def no_such_region(name: str, known: Iterable[str]) -> str:
    """What to say of a region that is not there: those that may be meant come first."""
    import difflib  # not at the top: for those who mistype

    there = list(dict.fromkeys(known))
    near = difflib.get_close_matches(name, there, n=_SHOWN, cutoff=0.5)
    shown = [*near, *(one for one in there if one not in near)]
    return f"There is no region {name!r:.100}. There are {listed(shown, _SHOWN) or 'none'}."

"""What names in the manner of BIDS say: ``sub-01_ses-02_acq-3D_probseg`` → entities and a suffix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Self

# Folders of BIDS below those of participant and session, each for one kind of data.
DATATYPES = frozenset({"anat", "beh", "dwi", "fmap", "func", "micr", "mrs", "perf", "pet"})

# Suffixes of maps that say how probable something is, and of what is drawn: masks, and labels.
MAP_SUFFIX = "probseg"
MASK_SUFFIXES = frozenset({"mask", "dseg", "seg", "roi", "lesion"})

_ENTITY = re.compile(r"([A-Za-z]+)-([A-Za-z0-9+]+)")

# LST-AI calls all its files so, of whomever they are.
_PLACEHOLDER = ("sub-X", "ses-Y")


@dataclass(frozen=True)
class BidsName:
    """The parts of a name, without the ending of the file.

    Attributes
    ----------
    entities : mapping of str to str
        Such as ``{"sub": "01", "run": "2"}``, in the order of the name.
    words : tuple of str
        Parts that are no entities, the last of which is the suffix if it ends the name.
    suffix : str or None
        What ends the name, such as ``probseg``.
    """

    entities: Mapping[str, str]
    words: tuple[str, ...]
    suffix: str | None

    @classmethod
    @lru_cache(maxsize=64)  # the name of a scan is asked for its parts several times in a row
    def of(cls, stem: str) -> Self:
        """Take a name apart; any name will do.

        Examples
        --------
        >>> BidsName.of("sub-01_ses-02_label-lesion_probseg").entities["ses"]
        '02'
        """
        parts = stem.split("_")
        if tuple(parts[:2]) == _PLACEHOLDER:
            parts = parts[2:]
        found = [_ENTITY.fullmatch(part) for part in parts]
        entities = {match[1]: match[2] for match in reversed(found) if match}  # the first of a kind counts
        words = tuple(part for part, match in zip(parts, found, strict=True) if not match)
        suffix = parts[-1] if parts and found[-1] is None else None
        return cls(MappingProxyType(dict(reversed(entities.items()))), words, suffix)

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders of participant and session that such a file is in; none unless the name begins with them."""
        keys = list(self.entities)[:2]
        if not keys or keys[0] != "sub" or self.suffix is None:
            return ()
        return tuple(f"{key}-{self.entities[key]}" for key in keys if key in ("sub", "ses"))

"""Whose scan it is: participant and session, from folders, BIDS names or a pattern."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Self

from lesioncount.errors import MapFileError
from lesioncount.files.formats import scan_name

# Groups of a pattern that have names in tables; others are entities of BIDS.
_GROUPS = {"participant": "sub", "session": "ses"}
_FOLDERS = {key: re.compile(rf"{key}-[A-Za-z0-9+]+") for key in _GROUPS.values()}
_ENTITIES = frozenset({"acq", "ce", "rec", "run", "space"})


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose scan it is.

    Attributes
    ----------
    participant, session : str or None
        As ``sub-01`` and ``ses-02`` where BIDS names say so; what a pattern has found as it is.
    entities : mapping of str to str
        What else tells scans of a participant apart: acq, run and others.
    """

    participant: str | None = None
    session: str | None = None
    entities: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, relative: PurePosixPath, pattern: re.Pattern[str] | None = None) -> Whose:
        """What a path below the folder that was given says; MapFileError if folder and file contradict each other."""
        in_file = BidsName.of(scan_name(relative)).entities
        found = pattern.search(relative.as_posix()) if pattern is not None else None
        groups = {} if found is None else {key: value for key, value in found.groupdict().items() if value}
        participant, session = (
            groups.pop(group, None) or (_entity(key, in_file, relative) if pattern is None else None)
            for group, key in _GROUPS.items()
        )
        others = {key: value for key, value in in_file.items() if key not in ("sub", "ses")}
        return cls(participant, session, others | groups)

    def contradicts(self, other: Whose) -> bool:
        """Whether both say whose they are, and it is not the same."""
        pairs = (self.participant, other.participant), (self.session, other.session)
        return any(a is not None and b is not None and label_of(a) != label_of(b) for a, b in pairs)

    @property
    def key(self) -> tuple[str | None, str | None]:
        """Participant and session, without ``sub-`` and ``ses-``: the same for all files of one visit."""
        return label_of(self.participant), label_of(self.session)


def label_of(value: str | None) -> str | None:
    """The label of a participant or a session: ``01`` of ``sub-01``."""
    return None if value is None else re.sub(r"^(sub|ses)-", "", value)


def checked_pattern(text: str) -> re.Pattern[str]:
    """The pattern of ``--name-pattern``, which must have a group for the participant or the session."""
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise MapFileError(f"The name pattern {text!r} is not a regular expression: {error}.") from None
    unknown = set(pattern.groupindex) - set(_GROUPS) - _ENTITIES
    if unknown or not set(pattern.groupindex) & set(_GROUPS):
        has = f"has the unknown group {min(unknown)!r}" if unknown else "has none of them"
        raise MapFileError(
            f"Expected a pattern with a group (?P<participant>…), (?P<session>…) or both, and if needed with "
            f"{', '.join(sorted(_ENTITIES))}, but {text!r} {has}."
        )
    return pattern


def check_found(pattern: re.Pattern[str], paths: Sequence[PurePosixPath]) -> None:
    """Raise if a pattern finds nothing in any path."""
    if paths and not any(pattern.search(path.as_posix()) for path in paths):
        raise MapFileError(
            f"The name pattern {pattern.pattern!r} finds nothing in the path of any scan, such as {paths[0]}. It is "
            "searched for in the path below the folder that was given."
        )


def _entity(key: str, in_file: Mapping[str, str], relative: PurePosixPath) -> str | None:
    """An entity of the file's name, or of a folder: the innermost one."""
    folders = [part for part in relative.parts[:-1] if _FOLDERS[key].fullmatch(part)]
    named = f"{key}-{in_file[key]}" if key in in_file else None
    if named and folders and folders[-1] != named:
        raise MapFileError(f"Whose scan is {relative}? Its folder says {folders[-1]}, its name {named}. Rename one.")
    return named or (folders[-1] if folders else None)


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


def repeated_folders(folders: Sequence[str], stem: str) -> int:
    """How many of the innermost folders the name of a file in a BIDS tree says again: those in ``sub-01/ses-01/anat``.

    Examples
    --------
    >>> repeated_folders(["data", "sub-01", "anat"], "sub-01_FLAIR")
    2
    """
    own = BidsName.of(stem).folders
    n = len(own) + 1
    is_bids = own and folders and folders[-1] in DATATYPES and tuple(folders[-n:-1]) == own
    return n if is_bids else 0

"""Folders of an ensemble → the maps of each scan, one from each folder."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from lesioncount.cohort.bids_names import BidsName
from lesioncount.cohort.inputs import FoundMap, below, find_maps, root_of
from lesioncount.cohort.names import check_apart, name_of
from lesioncount.cohort.whose import Whose
from lesioncount.errors import MapFileError
from lesioncount.files.formats import scan_name

# Entities in which the maps of members may differ: how they were made, not of what.
_OF_MEMBERS = frozenset({"desc", "model", "fold", "rec"})

# Scans that a message names.
_SHOWN = 5

Member = Mapping[Hashable, FoundMap]


def match_members(
    folders: Sequence[str | Path], *, leave_out: Path | None = None, suffix: str | None = None
) -> list[tuple[FoundMap, ...]]:
    """The maps of each scan: those of the same path below each folder, or of the same entities of BIDS."""
    if len(folders) < 2:
        raise MapFileError("Members of an ensemble are two or more folders, each with a map of every scan.")
    found = [_maps_of(folder, leave_out, suffix) for folder in folders]
    members = _keyed(found, name_of)
    by_entities = _keyed(found, _entities)
    sizes = {len(maps) for maps in found}
    if len({frozenset(member) for member in members}) > 1 and {len(member) for member in by_entities} == sizes:
        members = by_entities if len({frozenset(member) for member in by_entities}) == 1 else members
    _check_complete(members, folders)
    return [tuple(member[key] for member in members) for key in members[0]]


def _maps_of(folder: str | Path, leave_out: Path | None, suffix: str | None) -> list[FoundMap]:
    found = below(root_of([folder]), find_maps([folder], leave_out=leave_out, suffix=suffix))
    check_apart((name_of(one.relative), one.path) for one in found)
    return found


def _keyed(found: Sequence[Sequence[FoundMap]], key: Callable[[PurePosixPath], Hashable]) -> list[Member]:
    return [{key(one.relative): one for one in maps} for maps in found]


def _entities(relative: PurePosixPath) -> Hashable:
    """Participant, session, and the entities that do not name the member; those without a participant stay apart."""
    whose = Whose.of(relative)
    if whose.participant is None:
        return relative
    name = BidsName.of(scan_name(relative))
    others = frozenset((key, value) for key, value in name.entities.items() if key not in _OF_MEMBERS)
    return whose.key, others, name.words


def _check_complete(members: Sequence[Member], folders: Sequence[str | Path]) -> None:
    """Raise if one member lacks a scan that another has."""
    lacking = []
    for member, folder in zip(members, folders, strict=True):
        missing = {key: other[key] for other in members for key in other if key not in member}
        if missing:
            names = sorted(name_of(one.relative) for one in missing.values())
            shown = f"{', '.join(names[:_SHOWN])}{f' and {len(names) - _SHOWN} more' if len(names) > _SHOWN else ''}"
            lacking.append(f"{folder} lacks {shown}")
    if lacking:
        raise MapFileError(
            f"Expected a map of every scan in all {len(members)} folders, of the same path or the same BIDS entities, "
            f"but {'; '.join(lacking)}. Add the missing maps, or leave these scans out."
        )

"""Scans and a folder, a pattern or a file → the image, mask, truth or atlas of each scan, never by guess."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Literal, Self, TypeVar

from lesioncount.cohort.inputs import maps_in, without_results
from lesioncount.cohort.item import FileFacts
from lesioncount.cohort.patterns import PathPattern, is_pattern
from lesioncount.cohort.whose import MAP_SUFFIX, MASK_SUFFIXES, BidsName, Whose
from lesioncount.errors import MapFileError, listed
from lesioncount.files.formats import scan_name

Role = Literal["image", "mask", "truth", "atlas"]

# Options that are not called after what they are for.
_OPTIONS = {"image": "--images", "atlas": "--regions"}

# How the name of an image goes on after that of the case, in nnU-Net: the first of its channels.
_FIRST_CHANNEL = "_0000"

# Entities that say what was drawn or computed, not of which scan.
_OF_CONTENT = frozenset({"desc", "label", "seg", "lesion", "atlas", "res", "den", "model"})

# Files that a message names.
_SHOWN = 4


@dataclass(frozen=True)
class PairedFile:
    """A map, or a file that may belong to one: where it lies, and whose it is.

    Attributes
    ----------
    path : Path
    relative : PurePosixPath
        The same below the folder that was given.
    whose : Whose
    name : str
        Of the scan that the map is of; empty for other files.
    """

    path: Path
    relative: PurePosixPath
    whose: Whose
    name: str = ""

    @classmethod
    def of_scan(cls, name: str, files: FileFacts) -> Self:
        """The map of a scan, given what is recorded of its files."""
        relative = PurePosixPath(files.relative or Path(files.path).name)
        entities = dict(BidsName.of(scan_name(relative)).entities)
        return cls(Path(files.path), relative, Whose(files.participant_id, files.session_id, entities), name)

    @cached_property
    def stem(self) -> str:
        """The name of the file without its ending."""
        return scan_name(self.path)

    @cached_property
    def bids(self) -> BidsName:
        """The parts of that."""
        return BidsName.of(self.stem)

    @property
    def folder(self) -> tuple[str, ...]:
        """The folders that it lies in, below the one that was given."""
        return self.relative.parts[:-1]

    @property
    def fields(self) -> dict[str, str | None]:
        """What stands for the fields of a pattern."""
        own = {"scan": self.name, "name": self.stem, "folder": self.relative.parent.as_posix()}
        return {**self.whose.entities, "participant": self.whose.participant, "session": self.whose.session, **own}

    @property
    def identity(self) -> tuple[object, ...]:
        """What tells it from other scans, other than what was computed."""
        entities = ((key, value) for key, value in self.whose.entities.items() if key not in _OF_CONTENT)
        return (*self.whose.key, frozenset(entities))

    def __str__(self) -> str:
        return str(self.path)


_File = TypeVar("_File", Path, PairedFile)


def pair(
    scans: Mapping[str, FileFacts | None], where: Path, *, role: Role, suffix: str = "", none_is_error: bool = True
) -> dict[str, Path]:
    """The file that belongs to each scan, by the name of the scan; those that have none are left out.

    Parameters
    ----------
    scans : mapping of str to FileFacts or None
        What is recorded of the files of each; None where that is nothing, and nothing is looked for.
    where : Path
        A file for all scans; a folder; or a pattern such as ``flair/{participant}_{session}_FLAIR.nii.gz``.
    role : {"image", "mask", "truth", "atlas"}
        What is looked for.
    suffix : str
        What the name of the file adds to that of the map, or has in place of its last part.
    none_is_error : bool, default True
        Whether to raise when nothing is found for any scan.

    Raises
    ------
    MapFileError
        If several files may belong to one scan, one file to several scans, or none to any.
    """
    maps = [PairedFile.of_scan(name, files) for name, files in scans.items() if files is not None]
    if is_pattern(where):
        found = _by_pattern(maps, where, role)
    elif where.is_dir():
        found = _Folder(where, maps, role, suffix).pairs()
    elif where.exists():
        found = [where] * len(maps)
    else:
        raise MapFileError(f"The {role} {where} does not exist.")
    if maps and none_is_error and not any(found):
        raise MapFileError(_nothing(maps, where, role, suffix))
    return {scan.name: path for scan, path in zip(maps, found, strict=True) if path is not None}


def _by_pattern(scans: Sequence[PairedFile], where: Path, role: Role) -> list[Path | None]:
    pattern = PathPattern(str(where))
    pattern.check_known([scan.fields for scan in scans])
    return [_the_one(scan, pattern.matches(scan.fields), role) for scan in scans]


class _Folder:
    """A folder in which files are looked for."""

    def __init__(self, folder: Path, scans: Sequence[PairedFile], role: Role, suffix: str) -> None:
        self._scans, self._role, self._suffix = scans, role, suffix
        partners = [_partner(path, folder) for path in without_results(maps_in(folder), folder)]
        self._by_stem: dict[str, list[PairedFile]] = defaultdict(list)
        self._by_whose: dict[tuple[str | None, str | None], list[PairedFile]] = defaultdict(list)
        for partner in partners:
            if partner is None:
                continue
            self._by_stem[partner.stem].append(partner)
            if partner.whose.participant is not None and self._is_of_role(partner):
                self._by_whose[partner.whose.key].append(partner)
        stems = Counter(scan.stem for scan in scans)
        self._names_tell_apart = len(scans) > 1 and max(stems.values()) == 1

    def pairs(self) -> list[Path | None]:
        by_name = [self._by_name(scan) for scan in self._scans]
        by_entities = [
            None if found else self._by_entities(scan) for scan, found in zip(self._scans, by_name, strict=True)
        ]
        self._check_shared(by_name, by_entities)
        self._check_kind(one for one in by_entities if one is not None)
        both = ((one or other) for one, other in zip(by_name, by_entities, strict=True))
        return [None if one is None else one.path for one in both]

    def _by_name(self, scan: PairedFile) -> PairedFile | None:
        """A file of the same name, in the same place below its folder, or where the name alone tells scans apart."""
        for stem in self._names(scan):
            candidates = [one for one in self._by_stem.get(stem, ()) if not one.whose.contradicts(scan.whose)]
            same_place = [one for one in candidates if one.folder == scan.folder]
            same_place = same_place or [one for one in candidates if _ends_alike(one, scan)]
            found = _the_one(scan, same_place or [one for one in candidates if self._may_move(one, scan)], self._role)
            if found is not None:
                return found
        return None

    def _names(self, scan: PairedFile) -> list[str]:
        names = [scan.stem + self._suffix]
        if self._suffix and "_" in scan.stem:
            names.append(scan.stem.rpartition("_")[0] + self._suffix)
        if self._role == "image":
            names.append(scan.stem + (self._suffix or _FIRST_CHANNEL))
        return names

    def _may_move(self, partner: PairedFile, scan: PairedFile) -> bool:
        """Whether the name alone says that a file in another place is meant: one of the two has no folders."""
        if self._names_tell_apart:
            return not partner.folder or not scan.folder
        return not partner.folder and len(self._scans) == 1

    def _by_entities(self, scan: PairedFile) -> PairedFile | None:
        """The file of the same participant and session, and of nothing else that contradicts."""
        if scan.whose.participant is None:
            return None
        participant, session = scan.whose.key
        keys = [(participant, session)]
        if self._role == "atlas" and session is not None:
            keys.append((participant, None))  # a patient may have one for all sessions
        for key in keys:
            agreeing = [one for one in self._by_whose.get(key, ()) if _agrees(one, scan)]
            if agreeing:
                return _the_one(scan, agreeing, self._role)
        return None

    def _is_of_role(self, partner: PairedFile) -> bool:
        suffix = partner.bids.suffix
        if self._suffix:
            return partner.stem.endswith(self._suffix)
        if self._role == "image":
            return suffix is not None and suffix != MAP_SUFFIX and suffix not in MASK_SUFFIXES
        return suffix is None or suffix in MASK_SUFFIXES

    def _check_shared(self, by_name: Sequence[PairedFile | None], by_entities: Sequence[PairedFile | None]) -> None:
        """Raise if a file would belong to two scans, but for two maps of the same visit."""
        owners: dict[Path, PairedFile] = {}
        for scan, named, of_visit in zip(self._scans, by_name, by_entities, strict=True):
            partner = named or of_visit
            if partner is None:
                continue
            other = owners.setdefault(partner.path, scan)
            if other is not scan and (named or not self._may_share(partner, other, scan)):
                raise MapFileError(
                    f"{partner.path} would be the {self._role} of both {other.name} and {scan.name}. "
                    f"{_help(self._role)}"
                )

    def _may_share(self, partner: PairedFile, one: PairedFile, other: PairedFile) -> bool:
        """Whether two scans are of one visit; or of one patient, if the file is of no visit but an atlas of that."""
        if self._role == "atlas" and partner.whose.session is None:
            return one.whose.key[0] == other.whose.key[0]
        return one.identity == other.identity

    def _check_kind(self, found: Iterable[PairedFile]) -> None:
        """Raise if entities have found a FLAIR of one scan and a T1w of another."""
        kinds: dict[tuple[object, ...], Path] = {}
        for one in found:
            content = tuple((key, value) for key, value in one.bids.entities.items() if key in _OF_CONTENT)
            kinds.setdefault((one.bids.words, content), one.path)
        if len(kinds) > 1:
            raise MapFileError(
                f"Of different scans there are different kinds of files: {_shown(kinds.values())}. {_help(self._role)}"
            )


def _partner(path: Path, folder: Path) -> PairedFile | None:
    relative = PurePosixPath(path.relative_to(folder).as_posix())
    try:
        whose = Whose.of(relative)
    except MapFileError:  # a folder that says another participant than the file: it belongs to nobody
        return None
    return PairedFile(path, relative, whose)


def _ends_alike(partner: PairedFile, scan: PairedFile) -> bool:
    """Whether the folders of a file are those that the map lies in, above where names begin as well."""
    n = len(partner.folder)
    return n > 0 and Path(os.path.abspath(scan.path)).parent.parts[-n:] == partner.folder  # noqa: PTH100 - keeps no ..


def _agrees(partner: PairedFile, scan: PairedFile) -> bool:
    of_partner = {key: value for key, value in partner.bids.entities.items() if key not in _OF_CONTENT | {"sub", "ses"}}
    return all(scan.whose.entities.get(key, value) == value for key, value in of_partner.items())


def _the_one(scan: PairedFile, found: Sequence[_File], role: Role) -> _File | None:
    """The file that was found, if any; raise if there are several."""
    if len(found) > 1:
        raise MapFileError(
            f"Which is the {role} of {scan.name}? There are {len(found)} that may be: {_shown(found)}. {_help(role)}"
        )
    return found[0] if found else None


def _nothing(scans: Sequence[PairedFile], where: Path, role: Role, suffix: str) -> str:
    first = listed((scan.name for scan in scans), 1)
    also = f" with {suffix}" if suffix else ""
    if is_pattern(where):
        return f"There is no {role} of any scan ({first}): no file is meant by {where}."
    there = maps_in(where)
    holds = f" It holds {_shown(there)}." if there else ""
    return (
        f"There is no {role} of any scan ({first}): nothing in {where} has the name of a map{also}, nor the "
        f"participant and session of one.{holds} {_help(role)}"
    )


def _help(role: Role) -> str:
    option = _OPTIONS.get(role, f"--{role}")
    pattern = f"{option} 'folder/{{participant}}_{{session}}.nii.gz'"
    return f"Say which it is with a pattern, such as {pattern}, or with {option}-suffix."


def _shown(files: Iterable[Path | PairedFile]) -> str:
    files = list(files)
    return ", ".join(map(str, files[:_SHOWN])) + (" …" if len(files) > _SHOWN else "")

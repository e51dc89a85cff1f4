"""Scans and a folder, a pattern or a file → the image, mask, truth or atlas of each scan, never by guess."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, Protocol

from lesioncount.cohort.inputs import maps_in, without_results
from lesioncount.cohort.item import FileFacts
from lesioncount.cohort.patterns import PathPattern, is_pattern
from lesioncount.cohort.whose import MAP_SUFFIX, MASK_SUFFIXES, BidsName, Whose
from lesioncount.errors import MapFileError
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
class PairedScan:
    """A scan that something belongs to: its name, its map, where that lies, and whose it is."""

    name: str
    path: Path
    relative: PurePosixPath
    whose: Whose

    @property
    def stem(self) -> str:
        """The name of the file without its ending."""
        return scan_name(self.path)

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


class Recorded(Protocol):
    """What is recorded of a scan: its name, and its files if they were found."""

    @property
    def name(self) -> str:
        """Of the scan."""

    @property
    def files(self) -> FileFacts | None:
        """Its files."""


@dataclass(frozen=True)
class _Partner:
    """A file that may belong to a scan."""

    path: Path
    folder: tuple[str, ...]
    stem: str
    name: BidsName
    whose: Whose


def pair(
    scans: Sequence[PairedScan], where: Path, *, role: Role, suffix: str = "", none_is_error: bool = True
) -> list[Path | None]:
    """The file that belongs to each scan; None for those that have none.

    Parameters
    ----------
    scans : sequence of PairedScan
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
    if is_pattern(where):
        found = _by_pattern(scans, where, role)
    elif where.is_dir():
        found = _Folder(where, scans, role, suffix).pairs()
    elif where.exists():
        return [where] * len(scans)
    else:
        raise MapFileError(f"The {role} {where} does not exist.")
    if scans and none_is_error and not any(found):
        raise MapFileError(_nothing(scans, where, role, suffix))
    return found


def _by_pattern(scans: Sequence[PairedScan], where: Path, role: Role) -> list[Path | None]:
    pattern = PathPattern(str(where))
    pattern.check_known([scan.fields for scan in scans])
    found = [pattern.matches(scan.fields) for scan in scans]
    for scan, paths in zip(scans, found, strict=True):
        _check_one(scan, paths, role)
    return [paths[0] if paths else None for paths in found]


class _Folder:
    """A folder in which files are looked for."""

    def __init__(self, folder: Path, scans: Sequence[PairedScan], role: Role, suffix: str) -> None:
        self._scans, self._role, self._suffix = scans, role, suffix
        partners = [_partner(path, folder) for path in without_results(maps_in(folder), folder)]
        self._by_stem: dict[str, list[_Partner]] = defaultdict(list)
        self._by_whose: dict[tuple[str | None, str | None], list[_Partner]] = defaultdict(list)
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

    def _by_name(self, scan: PairedScan) -> _Partner | None:
        """A file of the same name, in the same place below its folder, or where the name alone tells scans apart."""
        for stem in self._names(scan):
            candidates = [one for one in self._by_stem.get(stem, ()) if not one.whose.contradicts(scan.whose)]
            same_place = [one for one in candidates if one.folder == scan.relative.parts[:-1]]
            same_place = same_place or [one for one in candidates if _ends_alike(one, scan)]
            found = _the_one(scan, same_place or [one for one in candidates if self._may_move(one, scan)], self._role)
            if found is not None:
                return found
        return None

    def _names(self, scan: PairedScan) -> list[str]:
        names = [scan.stem + self._suffix]
        if self._suffix and "_" in scan.stem:
            names.append(scan.stem.rpartition("_")[0] + self._suffix)
        if self._role == "image":
            names.append(scan.stem + (self._suffix or _FIRST_CHANNEL))
        return names

    def _may_move(self, partner: _Partner, scan: PairedScan) -> bool:
        """Whether the name alone says that a file in another place is meant: one of the two has no folders."""
        if self._names_tell_apart:
            return not partner.folder or len(scan.relative.parts) == 1
        return not partner.folder and len(self._scans) == 1

    def _by_entities(self, scan: PairedScan) -> _Partner | None:
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

    def _is_of_role(self, partner: _Partner) -> bool:
        suffix = partner.name.suffix
        if self._suffix:
            return partner.stem.endswith(self._suffix)
        if self._role == "image":
            return suffix is not None and suffix != MAP_SUFFIX and suffix not in MASK_SUFFIXES
        return suffix is None or suffix in MASK_SUFFIXES

    def _check_shared(self, by_name: Sequence[_Partner | None], by_entities: Sequence[_Partner | None]) -> None:
        """Raise if a file would belong to two scans, but for two maps of the same visit."""
        owners: dict[Path, PairedScan] = {}
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

    def _may_share(self, partner: _Partner, one: PairedScan, other: PairedScan) -> bool:
        """Whether two scans are of one visit; or of one patient, if the file is of no visit but an atlas of that."""
        if self._role == "atlas" and partner.whose.session is None:
            return one.whose.key[0] == other.whose.key[0]
        return one.identity == other.identity

    def _check_kind(self, found: Iterable[_Partner]) -> None:
        """Raise if entities have found a FLAIR of one scan and a T1w of another."""
        kinds: dict[tuple[object, ...], Path] = {}
        for one in found:
            content = tuple((key, value) for key, value in one.name.entities.items() if key in _OF_CONTENT)
            kinds.setdefault((one.name.words, content), one.path)
        if len(kinds) > 1:
            raise MapFileError(
                f"Of different scans there are different kinds of files: {_shown(kinds.values())}. {_help(self._role)}"
            )


def _partner(path: Path, folder: Path) -> _Partner | None:
    relative = PurePosixPath(path.relative_to(folder).as_posix())
    try:
        whose = Whose.of(relative)
    except MapFileError:  # a folder that says another participant than the file: it belongs to nobody
        return None
    stem = scan_name(path)
    return _Partner(path, relative.parts[:-1], stem, BidsName.of(stem), whose)


def _ends_alike(partner: _Partner, scan: PairedScan) -> bool:
    """Whether the folders of a file are those that the map lies in, above where names begin as well."""
    n = len(partner.folder)
    return n > 0 and Path(os.path.abspath(scan.path)).parent.parts[-n:] == partner.folder  # noqa: PTH100 - keeps no ..


def _agrees(partner: _Partner, scan: PairedScan) -> bool:
    of_partner = {key: value for key, value in partner.name.entities.items() if key not in _OF_CONTENT | {"sub", "ses"}}
    return all(scan.whose.entities.get(key, value) == value for key, value in of_partner.items())


def _the_one(scan: PairedScan, candidates: Sequence[_Partner], role: Role) -> _Partner | None:
    _check_one(scan, [one.path for one in candidates], role)
    return candidates[0] if candidates else None


def _check_one(scan: PairedScan, found: Sequence[Path], role: Role) -> None:
    if len(found) > 1:
        raise MapFileError(
            f"Which is the {role} of {scan.name}? There are {len(found)} that may be: {_shown(found)}. {_help(role)}"
        )


def _nothing(scans: Sequence[PairedScan], where: Path, role: Role, suffix: str) -> str:
    first = f"{scans[0].name}{f' and {len(scans) - 1} more' if len(scans) > 1 else ''}"
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


def _shown(paths: Iterable[Path]) -> str:
    paths = list(paths)
    return ", ".join(map(str, paths[:_SHOWN])) + (" …" if len(paths) > _SHOWN else "")


def without_partner(scans: Iterable[Recorded], where: Path, *, role: Role, suffix: str = "") -> list[str]:
    """The names of scans that nothing belongs to."""
    asked = [paired_scan(scan.name, scan.files) for scan in scans if scan.files is not None]
    found = pair(asked, where, role=role, suffix=suffix, none_is_error=False)
    return [scan.name for scan, partner in zip(asked, found, strict=True) if partner is None]


def paired_scan(name: str, files: FileFacts) -> PairedScan:
    """A scan that something is looked for, given what is recorded of its files."""
    relative = PurePosixPath(files.relative or Path(files.path).name)
    entities = dict(BidsName.of(scan_name(relative)).entities)
    return PairedScan(name, Path(files.path), relative, Whose(files.participant_id, files.session_id, entities))

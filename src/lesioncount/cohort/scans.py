"""What was given → the scans to be counted, each with its name, its files or members, and whose it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from lesioncount.cohort.detections import are_tables, scans_in_tables
from lesioncount.cohort.inputs import FoundMap, below, find_maps, root_of
from lesioncount.cohort.instances import instances_on_maps, scored_instances
from lesioncount.cohort.item import FileFacts, Known, ScanFiles
from lesioncount.cohort.names import check_apart, name_of
from lesioncount.cohort.pairing import Role, pair
from lesioncount.cohort.whose import BidsName, Whose, check_found, checked_pattern
from lesioncount.errors import MapFileError, listed
from lesioncount.files.detections import Reading
from lesioncount.files.formats import scan_name
from lesioncount.files.remote_path import absolute_text, to_path


@dataclass(frozen=True)
class Selection:
    """Which of the files that are given are scans, how they are named, and what belongs to them.

    Attributes
    ----------
    suffix : str, optional
        What the names of maps in folders end in, with or without the ending of the file.
    root : path, optional
        The folder that names begin at. Default: the folder that is given; of several or of files, the innermost one
        that holds them all.
    name_pattern : str, optional
        A regular expression with groups ``participant`` and ``session`` that is searched for in the path below the
        root. Default: what BIDS names say.
    mask_suffix : str
        What the name of a mask adds to that of its map, or has in place of its last part.
    images : path, optional
        Images for the report, which must be there for some of the scans: a folder, a file, or a pattern.
    images_suffix : str
        What the name of an image adds to that of its map, or has in place of its last part.
    regions_suffix : str
        What the name of a label map of regions adds to that of its map, or has in place of its last part.
    scans : path, optional
        Of tables of detections: a list of all scans, those without a detection included.
    reading : Reading
        Of tables of detections: what is known of them.
    instances : path, optional
        Of maps: label images of what is one candidate each, found as masks are.
    instances_scores : path, optional
        Of label images in place of maps: a table with the score of each label.
    """

    suffix: str | None = None
    root: str | Path | None = None
    name_pattern: str | None = None
    mask_suffix: str = ""
    images: str | Path | None = None
    images_suffix: str = ""
    regions_suffix: str = ""
    scans: str | Path | None = None
    reading: Reading = field(default_factory=Reading)
    instances: str | Path | None = None
    instances_scores: str | Path | None = None

    def find(
        self,
        inputs: Sequence[str | Path],
        out: Path | None = None,
        *,
        mask: Path | None = None,
        regions: Path | None = None,
        members: bool = False,
        known: Mapping[str, Known] | None = None,
    ) -> list[ScanFiles]:
        """The scans that are given, with their masks and label maps of regions.

        Parameters
        ----------
        inputs : sequence of path
        out : Path, optional
            Folder of the results, if there is to be one.
        mask : path, optional
            A mask for all maps, a folder, or a pattern such as ``masks/{participant}_{session}.nii.gz``.
        regions : path, optional
            In the same way, a label map of regions; one of a patient serves all its sessions.
        members : bool, default False
            Whether each input is a folder of one member of an ensemble.
        known : mapping of str to Known, optional
            Scans of an earlier run and whose they are: they keep their names.
        """
        if self.are_tables(inputs):
            scans = self._in_tables(inputs, members=members)
        else:
            scans = _with_known_names(self._maps(inputs, out, members=members), known or {})
        if self.instances_scores is not None:
            scans = scored_instances(scans, Path(self.instances_scores))
        elif self.instances is not None:
            how = self.reading
            scans = instances_on_maps(scans, to_path(self.instances), logits=how.logits, scale=how.scale)
        wanted: list[tuple[Role, str | Path | None, str]] = [
            ("image", self.images, self.images_suffix),
            ("mask", mask, self.mask_suffix),
            ("atlas", regions, self.regions_suffix),
        ]
        for role, where, suffix in wanted:
            scans = scans if where is None else _with_partners(scans, to_path(where), role, suffix)
        return scans

    def are_tables(self, inputs: Sequence[str | Path]) -> bool:
        """Whether tables of detections are given, and not maps."""
        return are_tables(inputs, self.reading.format)

    def _in_tables(self, inputs: Sequence[str | Path], *, members: bool) -> list[ScanFiles]:
        images = None if self.images is None else to_path(self.images)
        listed: dict[str, Any] = {"scans": self.scans, "images": images, "images_suffix": self.images_suffix}
        return scans_in_tables(inputs, self.reading, members=members, pattern=self._pattern, **listed)

    @property
    def _pattern(self) -> re.Pattern[str] | None:
        return None if self.name_pattern is None else checked_pattern(self.name_pattern)

    def _maps(self, inputs: Sequence[str | Path], out: Path | None, *, members: bool) -> list[ScanFiles]:
        if self.scans is not None:
            raise MapFileError("A list of scans (--scans) is for tables of detections; maps are counted as they are.")
        pattern = self._pattern
        found = match_members(inputs, leave_out=out, suffix=self.suffix) if members else self._found(inputs, out)
        if pattern is not None:
            check_found(pattern, [maps[0].relative for maps in found])
        scans = [_scan(maps, pattern) for maps in found]
        check_apart((scan.name, scan.path) for scan in scans)
        return scans

    def _found(self, inputs: Sequence[str | Path], out: Path | None) -> list[tuple[FoundMap, ...]]:
        maps = find_maps(inputs, leave_out=out, suffix=self.suffix)
        root = root_of(inputs) if self.root is None else to_path(absolute_text(self.root))
        return [(one,) for one in below(root, maps)]


def _with_partners(scans: Sequence[ScanFiles], where: Path, role: Role, suffix: str) -> list[ScanFiles]:
    """Scans with the image, mask or atlas of each. One without its mask or atlas fails, as any other may."""
    found = pair({scan.name: FileFacts.unread(scan) for scan in scans}, where, role=role, suffix=suffix)
    missing = None if role == "image" else f"There is no {role} of this scan in {where}."
    made = []
    for scan in scans:
        partner: dict[str, Any] = {"regions" if role == "atlas" else role: found.get(scan.name)}
        made.append(replace(scan, problem=scan.problem or (None if scan.name in found else missing), **partner))
    return made


def _scan(maps: Sequence[FoundMap], pattern: re.Pattern[str] | None) -> ScanFiles:
    first, problem, whose = maps[0], None, Whose()
    try:
        whose = Whose.of(first.relative, pattern)
    except MapFileError as error:
        problem = str(error)
    return ScanFiles(
        name_of(first.relative),
        first.path,
        problem=problem,
        members=tuple(one.path for one in maps) if len(maps) > 1 else (),
        relative=first.relative,
        whose=whose,
    )


def _with_known_names(scans: Sequence[ScanFiles], known: Mapping[str, Known]) -> list[ScanFiles]:
    """Scans that an earlier run in the same folder has named keep their names."""
    named_before = {path: name for name, owner in known.items() for path in owner.paths}
    names = [named_before.get(absolute_text(scan.path), scan.name) for scan in scans]
    return [scan if scan.name == name else replace(scan, name=name) for scan, name in zip(scans, names, strict=True)]


# Entities in which the maps of members may differ: how they were made, not of what.
_OF_MEMBERS = frozenset({"desc", "model", "fold", "rec"})

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
            lacking.append(f"{folder} lacks {listed(sorted(name_of(one.relative) for one in missing.values()))}")
    if lacking:
        raise MapFileError(
            f"Expected a map of every scan in all {len(members)} folders, of the same path or the same BIDS entities, "
            f"but {'; '.join(lacking)}. Add the missing maps, or leave these scans out."
        )

"""The files of a scan, and the fingerprints by which they are known again."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, Self

from msgspec import Struct
from msgspec.structs import replace

from lesioncount.cohort.whose import Whose
from lesioncount.errors import MapFileError
from lesioncount.files.dicom_series import series_files
from lesioncount.files.formats import files_of, is_large_volume, map_ending, version_of
from lesioncount.files.remote_path import RemotePath, absolute_text, to_path
from lesioncount.files.zarr_listing import Listing, listing_of
from lesioncount.folder.plain import present
from lesioncount.trust.candidate_table import CandidateTable

# Of files whose server does not tell a version: nobody knows whether they are the same.
_UNVERSIONED = "unversioned"

_HASHES = ("sha256", "mask_sha256", "members_sha256", "series_sha256", "regions_sha256")


@dataclass(frozen=True, slots=True)
class ScanFiles:
    """One scan to be counted: its name in the results, and its files.

    Attributes
    ----------
    name : str
    path : Path
        The map.
    mask : Path or None
        Where to look.
    problem : str or None
        Why it cannot be counted, where that is known before.
    members : tuple of Path
        Several maps of the same scan, of which ``path`` is the first.
    series : Path or None
        Folder of the DICOM images that the map was made from.
    was_known : bool
        Whether the folder of results has a record of it from an earlier run, which is made again if it was changed.
    relative : PurePosixPath or None
        Where the map lies below the folder that was given; None if that is not known.
    whose : Whose
        Participant and session.
    image : Path or None
        What pictures of it show.
    regions : Path or None
        The label map of regions that it is counted in.
    tables : tuple of CandidateTable
        What detectors have found, one table per member; then there is no map, and ``path`` says where they are from.
    is_listed : bool
        Of tables: whether a list says which scans there are.
    """

    name: str
    path: Path
    mask: Path | None = None
    problem: str | None = None
    members: tuple[Path, ...] = ()
    was_known: bool = False
    relative: PurePosixPath | None = None
    whose: Whose = field(default_factory=Whose)
    series: Path | None = None
    image: Path | None = None
    regions: Path | None = None
    tables: tuple[CandidateTable, ...] = ()
    is_listed: bool = False

    @property
    def scans(self) -> tuple[ScanFiles, ...]:
        """Itself: a course of one session."""
        return (self,)

    @property
    def maps(self) -> tuple[Path, ...]:
        """All maps of the scan."""
        return self.members or (self.path,)

    def check(self) -> None:
        """Raise if it is known that it cannot be counted."""
        if self.problem is not None:
            raise MapFileError(self.problem)


class FileFacts(Struct, frozen=True, gc=False, omit_defaults=True):
    """What is recorded of the files of a scan: their paths, whose they are, and the SHA-256 of their content.

    Of files that live elsewhere, what their server calls their version stands in place of the SHA-256.

    Attributes
    ----------
    path : str
        Of the map, absolute.
    relative : str or None
        The same below the folder that was given: what the scan is named after.
    participant_id, session_id : str or None
        Whose scan it is, where that is known.
    is_table : bool
        Whether it is a scan in a table of detections: then its SHA-256 is that of its rows, and ``path`` is the table,
        with the name of the scan after it.
    """

    path: str = ""
    sha256: str | None = None
    mask: str | None = None
    mask_sha256: str | None = None
    members: tuple[str, ...] = ()
    members_sha256: tuple[str, ...] = ()
    relative: str | None = None
    participant_id: str | None = None
    session_id: str | None = None
    series: str | None = None
    series_sha256: str | None = None
    regions: str | None = None
    regions_sha256: str | None = None
    is_table: bool = False

    @classmethod
    def unread(cls, scan: ScanFiles) -> Self:
        """What is known of a scan whose files have not been read."""
        return cls(
            str(scan.path.absolute()),
            relative=None if scan.relative is None else scan.relative.as_posix(),
            participant_id=scan.whose.participant,
            session_id=scan.whose.session,
            is_table=bool(scan.tables),
        )

    @classmethod
    def of(cls, scan: ScanFiles, hashes: Mapping[Path, str] | None = None) -> Self:
        """Read the files of a scan, but for those whose SHA-256 is known, and give them fingerprints."""
        scan.check()
        series, regions = scan.series, scan.regions
        maps = [fingerprint_of_table(one) for one in scan.tables]
        try:
            maps = maps or [fingerprint(path, hashes) for path in scan.maps]
            return replace(
                cls.unread(scan),
                sha256=maps[0],
                mask=None if scan.mask is None else str(scan.mask.absolute()),
                mask_sha256=None if scan.mask is None else fingerprint(scan.mask, hashes),
                members=tuple(str(path.absolute()) for path in scan.members),
                members_sha256=tuple(maps) if scan.members else (),
                series=None if series is None else str(series.absolute()),
                series_sha256=None if series is None else _fingerprint_of(series_files(series), series),
                regions=None if regions is None else str(regions.absolute()),
                regions_sha256=None if regions is None else _known_fingerprint(regions),
            )
        except PermissionError as error:
            raise MapFileError(f"{error.filename} cannot be read: {error.strerror}.") from None

    def is_same_content(self, other: FileFacts) -> bool:
        """Whether the files hold the same: the same file may have been given as another path."""
        return all(getattr(self, name) == getattr(other, name) for name in _HASHES)

    def check_unchanged(self) -> None:
        """Raise if the map or its mask no longer holds what was counted; of several maps, the first is looked at."""
        for path, sha256 in ((self.path, self.sha256), (self.mask, self.mask_sha256)):
            if self.is_table:  # its record has all that was in the table
                return
            if path is None or sha256 is None or sha256.startswith(_UNVERSIONED):
                continue
            if fingerprint(to_path(path)) != sha256:
                raise MapFileError(f"{path} has changed since it was counted. Put the file back, or run again.")

    @property
    def hashes(self) -> dict[str, Any]:
        """The SHA-256 of all files that were read."""
        found = present({name: getattr(self, name) for name in _HASHES})
        return {name: list(one) if isinstance(one, tuple) else one for name, one in found.items()}  # as in a file

    def is_same_scan(self, other: FileFacts) -> bool:
        """Whether they lie in the same place below the folder that was given, and are of the same participant."""
        return all(getattr(self, name) == getattr(other, name) for name in ("relative", "participant_id", "session_id"))

    @property
    def whose(self) -> dict[str, str]:
        """Participant and session, where they are known: cells of tables."""
        return present({"participant_id": self.participant_id, "session_id": self.session_id})


FileStates = dict[Path, object]


def file_states(scan: ScanFiles) -> FileStates:
    """Size, time and place on the disk of all files of a scan: a file that is changed or replaced has others."""
    scan.check()
    others = (one for one in (scan.mask, scan.regions) if one is not None)
    maps = () if scan.tables else scan.maps
    return {file: state for path in (*maps, *others) for file, state in states_of(path).items()}


def states_of(path: Path) -> FileStates:
    """The same of one map; of one that lives elsewhere, what the server tells."""
    if map_ending(path) == ".zarr":
        return {path: listing_of(path)}
    if isinstance(path, RemotePath):
        return {path: version_of(path)}
    return {file: _state(file) for file in files_of(path)}


def _state(file: Path) -> tuple[int, int, int]:
    status = file.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def check_states(scan: ScanFiles, before: FileStates) -> None:
    """Raise if a file of a scan was changed: its record would tell of what was not counted."""
    stores = [state for state in before.values() if isinstance(state, Listing)]
    if file_states(scan) != before or not all(store.is_unchanged() for store in stores):
        raise MapFileError(f"{scan.path} was changed while it was counted. Count it again.")


def fingerprint(path: Path, hashes: Mapping[Path, str] | None = None) -> str:
    """SHA-256 of all files that are read for a map; of a folder, of their names too.

    What lives elsewhere would have to be fetched for it. It is known by what the server calls its version. Of a large
    volume, of names, sizes and times: one machine would read for hours what a cluster counts in minutes.
    """
    if isinstance(path, RemotePath):
        return version_of(path) or f"{_UNVERSIONED} {time.time_ns()}"  # the same as nothing else
    files = files_of(path)
    if hashes and path in hashes and files == (path,):  # it was read to be counted
        return hashes[path]
    if files != (path,) and is_large_volume(path):
        states = (f"{file.relative_to(path)}\t{state[:2]}\n" for file, state in listing_of(path).files.items())
        return hashlib.sha256("".join(states).encode("utf-8", "surrogateescape")).hexdigest()
    return _fingerprint_of(files, path)


def fingerprint_of_table(table: CandidateTable) -> str:
    """SHA-256 of the candidates of a scan, whatever else their file holds."""
    digest = hashlib.sha256("\t".join(table.names).encode())
    for column in table.values:
        digest.update(column.tobytes())
    return digest.hexdigest()


def _known_fingerprint(path: Path) -> str:
    """The same for a file that many scans share, which is read once as long as it is not changed."""
    return _fingerprint_in_state(path, tuple(states_of(path).items()))


@lru_cache(maxsize=1)
def _fingerprint_in_state(path: Path, _states: object) -> str:
    return fingerprint(path)


def _fingerprint_of(files: Iterable[Path], path: Path) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            if path in file.parents:  # of a zarr array or a series, whose files are known by their names
                size = os.fstat(stream.fileno()).st_size
                digest.update(f"{file.relative_to(path)}\t{size}\n".encode("utf-8", "surrogateescape"))
            hashlib.file_digest(stream, lambda: digest)
    return digest.hexdigest()


class Known(NamedTuple):
    """Whose results have a name: the paths of the maps, and their SHA-256 where they were read."""

    paths: tuple[str, ...]
    sha256: tuple[str | None, ...] = ()

    def is_of(self, paths: Sequence[Path]) -> bool:
        """Whether these are maps of the same patient: at least one of them lies where it lay."""
        if not set(self.paths).isdisjoint(map(str, paths)):  # as nearly always, and quickly
            return True
        return not {absolute_text(path) for path in self.paths}.isdisjoint(map(absolute_text, paths))

    def was_moved_to(self, paths: Sequence[Path]) -> bool:
        """Whether all maps hold what was counted, in other places. One equal map proves nothing: many are empty."""
        try:
            return None not in self.sha256 and self.sha256 == tuple(map(fingerprint, paths))
        except OSError:
            return False

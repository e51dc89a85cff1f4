"""Tables of detectors → the scans in them, each with its candidates; and which scans have none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from lesioncount.cohort.inputs import below, files_in, maps_in, root_of
from lesioncount.cohort.item import ScanFiles
from lesioncount.cohort.names import check_apart, name_of
from lesioncount.cohort.tables import Table
from lesioncount.cohort.whose import Whose, check_found
from lesioncount.errors import MapFileError, listed
from lesioncount.files.detections import Reading, is_table, refuse_pickles, table_name, tables_in
from lesioncount.files.formats import file_ending, scan_name
from lesioncount.files.remote_listing import matches
from lesioncount.files.remote_path import RemotePath, to_path
from lesioncount.trust.candidate_table import CandidateTable

# Names of the column that a list of scans may have.
_SCAN_COLUMNS = ("scan", "series_uid", "seriesuid", "image", "scan_id", "image_id", "participant_id")


class FoundScan(NamedTuple):
    """A scan in a table: its candidates, and the file they are from."""

    table: CandidateTable
    path: Path


def are_tables(inputs: Sequence[str | Path], format: str | None = None) -> bool:  # noqa: A002 - as the option is called
    """Whether tables of detections are given, and not maps: by their names, or because a format of tables is said."""
    paths = [to_path(one) for one in inputs if str(one).strip()]
    for path in paths:
        if not isinstance(path, RemotePath):
            refuse_pickles(path)
    if format is not None:
        return True
    kinds = {_is_of_tables(path) for path in paths}
    if len(kinds) > 1:
        raise MapFileError("Maps and tables of detections are counted by themselves: give one kind at a time.")
    return kinds == {True}


def _is_of_tables(path: Path) -> bool:
    if isinstance(path, RemotePath) or path.name.endswith(".zarr"):
        return False
    try:
        if not path.is_dir():
            return is_table(path)
        if any(path.glob("*.zarr")):
            return False
    except OSError:  # a name that is too long
        return False
    first = next(iter(_tables_below(path)), None)
    return first is not None and not maps_in(path)


def _tables_below(folder: Path) -> list[Path]:
    return files_in(folder, lambda path, is_folder: not is_folder and is_table(path))


def scans_in_tables(
    inputs: Sequence[str | Path],
    how: Reading,
    *,
    members: bool = False,
    pattern: re.Pattern[str] | None = None,
    scans: str | Path | None = None,
    images: Path | None = None,
    images_suffix: str = "",
) -> list[ScanFiles]:
    """The scans of tables of detections, with their candidates.

    Parameters
    ----------
    inputs : sequence of path
        Tables, folders of them, or patterns. With ``members``, each is what one detector has found.
    how : Reading
    members : bool, default False
    pattern : re.Pattern, optional
        Finds participant and session in the names of scans.
    scans : path, optional
        A list of all scans: one that is not in a table then has no candidate.
    images : Path, optional
        A folder of images, which says the same.
    images_suffix : str
        What names of images add to those of scans.
    """
    found = [_scans_of([one], how) for one in inputs] if members else [_scans_of(inputs, how)]
    if members and len(found) < 2:
        raise MapFileError("Members of an ensemble are two or more tables, or folders of them, one for each detector.")
    names = _listed_scans(scans, found) if scans is not None else _with_images(found, images, images_suffix)
    if not names:
        raise MapFileError(
            "There is no detection in the tables, so that nothing says which scans there are. Give a list of them: "
            "--scans TABLE, with the column scan."
        )
    is_listed = scans is not None or (images is not None and images.is_dir())
    if pattern is not None:
        check_found(pattern, [_relative(name) for name in names])
    made = [_scan(name, found, pattern, is_listed=is_listed) for name in names]
    check_apart((scan.name, scan.path) for scan in made)
    return made


def _scan(
    name: str, found: Sequence[Mapping[str, FoundScan]], pattern: re.Pattern[str] | None, *, is_listed: bool
) -> ScanFiles:
    given = [one.get(name) for one in found]
    path = next((one.path for one in given if one is not None), None) or next(iter(found[0].values())).path
    # A scan lies where no file is: below its table. So each has a path of its own, as maps have.
    relative = _relative(name)
    where = path if table_name(path) == name else path.joinpath(relative)
    tables = tuple(_NOTHING if one is None else one.table for one in given)
    members = tuple((path if one is None else one.path).joinpath(relative) for one in given) if len(given) > 1 else ()
    whose, problem = Whose(), None
    try:
        whose = Whose.of(relative, pattern)
    except MapFileError as error:
        problem = str(error)
    return ScanFiles(
        name_of(relative), where, problem=problem, members=members, relative=relative, whose=whose, tables=tables,
        is_listed=is_listed,
    )  # fmt: skip


_NOTHING = CandidateTable(("peak",), (np.empty(0),))


def _relative(name: str) -> PurePosixPath:
    """The name of a scan in a table, which may be a path, as one that leads nowhere else."""
    parts = [part for part in PurePosixPath(name.replace("\\", "/").replace("\0", "")).parts if part not in ("/", "..")]
    return PurePosixPath(*parts) if parts else PurePosixPath("_")


def _scans_of(inputs: Sequence[str | Path], how: Reading) -> dict[str, FoundScan]:
    """All scans of some tables; none may be in two of them."""
    files = [file for one in inputs for file in _files_of(to_path(one))]
    root = root_of(list(files))
    found: dict[str, FoundScan] = {}
    for file in files:
        for scan, table in tables_in(file, how).items():
            name = scan or below(root, [file])[0].relative.with_name(table_name(file)).as_posix()
            if name in found:
                raise MapFileError(
                    f"The scan {name} is in {found[name].path} and in {file}. If these are two detectors, combine them "
                    "with --members; if not, remove one."
                )
            found[name] = FoundScan(table, file)
    return found


def _files_of(given: Path) -> list[Path]:
    if isinstance(given, RemotePath):
        raise MapFileError(f"{given}: tables of detections are read from this machine. Copy it first.")
    paths = [given] if given.exists() else matches(given, recursive=True)
    if not paths:
        raise MapFileError(f"{given} does not exist, and matches no file.")
    files = [file for path in paths for file in (_tables_below(path) if path.is_dir() else [path])]
    if not files:
        raise MapFileError(f"There is no table of detections in {given}.")
    return files


def _listed_scans(path: str | Path, found: Sequence[Mapping[str, FoundScan]]) -> list[str]:
    """The scans of a list, in its order; raise if tables have others: then names do not fit together."""
    table = Table.read(Path(path), MapFileError, lower=True)
    column = next((name for name in _SCAN_COLUMNS if name in table.columns), "scan")
    table.check(column, advice="It lists all scans, one row each.")
    names = list(table.by_name(column))
    known = {name: name for name in names} | {scan_name(PurePosixPath(name)): name for name in names}
    others = [name for one in found for name in one if name not in known]
    if others:
        raise MapFileError(
            f"{len(others)} scans have detections, but are not in the list {path}: {listed(others)}. Do both call "
            "scans by the same names?"
        )
    return names


def _with_images(found: Sequence[Mapping[str, FoundScan]], images: Path | None, suffix: str) -> list[str]:
    """The scans of tables; and those of which there is an image, but no detection."""
    names = list(dict.fromkeys(name for one in found for name in one))
    if images is None or not images.is_dir():
        return names
    known = {scan_name(PurePosixPath(name)) for name in names}
    pictures = [one for one in maps_in(images) if file_ending(one) is not None]
    stems = (scan_name(one).removesuffix(suffix) for one in pictures)
    return names + [stem for stem in dict.fromkeys(stems) if stem not in known]

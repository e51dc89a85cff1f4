"""Files, folders and globs → the maps in them, each with a name of its own."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from lesioncount.errors import MapFileError
from lesioncount.files.formats import map_ending, scan_name
from lesioncount.runs.names import name_scans


def find_maps(inputs: Iterable[str | Path], *, leave_out: Path | None = None) -> list[Path]:
    """All maps that are meant, in the order of the inputs and sorted within each, and each name once.

    Links are not followed: two names of one file are two scans. In folders, what lies below ``leave_out`` is no input:
    results of an earlier run may.
    """
    found: dict[str, Path] = {}
    problems: list[str] = []
    for given in inputs:
        if not str(given).strip():
            raise MapFileError("One of the inputs is empty. For the current folder write .")
        try:
            paths = _meant_by(given, leave_out)
        except MapFileError:
            raise
        except (OSError, ValueError) as error:  # a name that is too long, or no name: among others, a scan that fails
            problems.append(f"{str(given)[:80]} cannot be looked at: {error}.")
            paths = [Path(given)]
        for path in paths:
            found.setdefault(os.path.abspath(path), path)  # noqa: PTH100 - `absolute` keeps ..
    if problems and len(problems) == len(found):
        raise MapFileError(problems[0])
    return list(found.values())


def _meant_by(given: str | Path, leave_out: Path | None) -> list[Path]:
    if Path(given).exists():
        paths = [Path(given)]
    else:
        paths = sorted(Path(match) for match in glob.glob(str(given), recursive=True))  # noqa: PTH207 - may be absolute
        if not paths:
            raise MapFileError(f"{given} does not exist, and matches no file.")
    maps: list[Path] = []
    for path in paths:
        if not path.is_dir() or map_ending(path) == ".zarr":
            maps.append(path)
            continue
        inside = [file for file in _maps_in(path) if leave_out is None or not _is_below(file, leave_out)]
        if not inside:
            but = " except results below the output folder" if _maps_in(path) else ""
            raise MapFileError(
                f"There are no maps in the folder {path}{but}. Maps end in .nii.gz, .nii, .npz, .npy, .zarr, …"
            )
        maps += inside
    return maps


def match_members(folders: Sequence[str | Path], out: Path) -> dict[str, tuple[Path, ...]]:
    """The maps of each scan, one from each folder: those of the same name belong together."""
    if len(folders) < 2:
        raise MapFileError("Members of an ensemble are two or more folders, each with a map of every scan.")
    by_folder = [name_scans(find_maps([folder], leave_out=out)) for folder in folders]
    everywhere = set.intersection(*(set(names) for names in by_folder))
    for folder, names in zip(folders, by_folder, strict=True):
        alone = sorted(set(names) - everywhere)
        if alone:
            raise MapFileError(
                f"Expected maps of the same names in all {len(folders)} folders, but {', '.join(alone[:5])}"
                f"{' and others' if len(alone) > 5 else ''} in {folder} have no counterpart in some other."
            )
    return {name: tuple(names[name] for names in by_folder) for name in by_folder[0]}


def counterpart(beside: Path, of: Path, *, suffix: str = "") -> Path:
    """The file that belongs to a map: the given one, or the one of the same name, and a suffix, in a folder."""
    if not beside.is_dir():
        return beside
    matches = namesakes(beside, of, suffix=suffix)
    if len(matches) > 1:  # the same name in several folders: the one whose folder is called as that of the map
        matches = [match for match in matches if match.parent.name == of.absolute().parent.name] or matches
    if len(matches) != 1:
        there = "is no file" if not matches else f"are {len(matches)} files"
        raise MapFileError(
            f"Expected one file called {scan_name(of)}{suffix} in {beside}, but there {there} of that name."
        )
    return matches[0]


def namesakes(folder: Path, of: Path, *, suffix: str = "") -> list[Path]:
    """The maps in a folder that have the name of a map, and a suffix."""
    return _maps_by_name(folder, folder.stat().st_mtime_ns).get(scan_name(of) + suffix, [])


def _is_below(path: Path, folder: Path) -> bool:
    parent = path.parent.resolve()
    return folder.resolve() in (parent, *parent.parents)


@lru_cache(maxsize=8)
def _maps_by_name(folder: Path, _changed: int) -> dict[str, list[Path]]:
    """All maps in a folder; looked through once for all scans of a run, and again when the folder has changed."""
    names: dict[str, list[Path]] = {}
    for path in _maps_in(folder):
        names.setdefault(scan_name(path), []).append(path)
    return names


def _maps_in(folder: Path) -> list[Path]:
    found = []
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        inside_zarr = any(part.endswith(".zarr") for part in relative.parts[:-1])
        hidden = any(part.startswith(".") for part in relative.parts)
        if inside_zarr or hidden or map_ending(path) is None or (path.is_dir() and map_ending(path) != ".zarr"):
            continue
        found.append(path)
    # nnU-Net writes the probabilities as .npz beside the segmentation of the same name: that one is not a map.
    probabilities = {path.with_suffix("") for path in found if path.suffix == ".npz"}
    found = _without_pictures(found)
    return [path for path in found if path.suffix == ".npz" or path.with_name(scan_name(path)) not in probabilities]


def _without_pictures(found: list[Path]) -> list[Path]:
    """Without PNG beside maps of other kinds: those are previews of them."""
    maps = [path for path in found if map_ending(path) != ".png"]
    return maps or found

"""Files, folders and globs → the maps in them, each with a name of its own."""

from __future__ import annotations

import glob
import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from lesioncount.errors import MapFileError
from lesioncount.io.formats import map_ending, scan_name


def find_maps(inputs: Iterable[str | Path], *, leave_out: Path | None = None) -> list[Path]:
    """All maps that are meant, in the order of the inputs and sorted within each.

    In folders, what lies below ``leave_out`` is no input: results of an earlier run may.
    """
    found: dict[Path, None] = {}
    for given in inputs:
        path = Path(given)
        if path.is_dir() and map_ending(path) != ".zarr":
            maps = [file for file in _maps_in(path) if leave_out is None or not _is_below(file, leave_out)]
            if not maps:
                raise MapFileError(
                    f"There are no maps in the folder {path}. Maps end in .nii.gz, .nii, .npz, .npy, .zarr, …"
                )
        elif path.exists():
            maps = [path]
        else:
            maps = sorted(Path(match) for match in glob.glob(str(given), recursive=True))  # noqa: PTH207 - patterns may be absolute
            if not maps:
                raise MapFileError(f"{given} does not exist, and matches no file.")
        found.update(dict.fromkeys(maps))
    return list(found)


def name_scans(paths: Iterable[Path]) -> dict[str, Path]:
    """A name for each path: that of the file, with as many folders before it as it takes to be unique."""
    paths = list(paths)
    names = {path: scan_name(path) for path in paths}
    depth = 1
    while repeated := {name for name, n in Counter(names.values()).items() if n > 1}:
        longer = {
            path: "_".join([*path.resolve().parts[-1 - depth : -1], scan_name(path)])
            if names[path] in repeated
            else names[path]
            for path in paths
        }
        if longer == names or depth > 64:  # same folder, same name, another ending
            longer = {p: f"{n}_{(map_ending(p) or '').strip('.')}" if n in repeated else n for p, n in names.items()}
        names, depth = longer, depth + 1
    return {re.sub(r"[^\w.+=-]", "_", name): path for path, name in names.items()}


def counterpart(beside: Path, of: Path) -> Path:
    """The file that belongs to a map: the given one, or the one of the same name in a folder."""
    if not beside.is_dir():
        return beside
    wanted = scan_name(of)
    matches = _maps_by_name(beside, beside.stat().st_mtime_ns).get(wanted, [])
    if len(matches) != 1:
        count = "no file" if not matches else f"{len(matches)} files"
        raise MapFileError(f"Expected one file called {wanted} in {beside}, but there is {count} of that name.")
    return matches[0]


def _is_below(path: Path, folder: Path) -> bool:
    return folder.resolve() in path.resolve().parents


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
    return [path for path in found if path.suffix == ".npz" or path.with_name(scan_name(path)) not in probabilities]

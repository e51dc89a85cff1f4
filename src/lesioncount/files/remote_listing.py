"""Patterns of names → files, here or in a bucket, which is listed level by level, without chunks of zarr stores."""

from __future__ import annotations

import fnmatch
import glob
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lesioncount.errors import MapFileError
from lesioncount.files.remote_objects import ObjectState, explained, obstore, store_of
from lesioncount.files.remote_path import RemotePath, to_path

# What marks a folder as a zarr array or group.
ZARR_MARKS = frozenset({".zarray", ".zgroup", "zarr.json"})


@dataclass(frozen=True)
class RemoteFolder:
    """One level below a name: its objects, and the names that others are below of."""

    files: tuple[RemotePath, ...]
    folders: tuple[RemotePath, ...]

    @property
    def is_zarr(self) -> bool:
        """Whether it is an array or a group of zarr."""
        return any(file.name in ZARR_MARKS for file in self.files)


def list_folder(path: RemotePath) -> RemoteFolder:
    """What lies directly below a name, in the order of names."""
    check_listed(path)
    with explained(path):
        found = obstore().list_with_delimiter(store_of(path), path.key or None)
    # Programs that make folders in a bucket leave empty objects of their names.
    files = [_in_bucket(path, one["path"]) for one in found["objects"] if one["path"].strip("/") != path.key]
    return RemoteFolder(tuple(sorted(files)), tuple(sorted(_in_bucket(path, one) for one in found["common_prefixes"])))


def is_prefix(path: RemotePath) -> bool:
    """Whether anything lies below a name."""
    found = list_folder(path)
    return bool(found.files or found.folders)


def objects_below(path: RemotePath) -> dict[RemotePath, ObjectState]:
    """All objects below a name, however deep, with their states, in the order of their names."""
    check_listed(path)
    found: dict[RemotePath, ObjectState] = {}
    with explained(path):
        for batch in obstore().list(store_of(path), path.key or None, chunk_size=1000):
            found |= {_in_bucket(path, one["path"]): ObjectState.of(one) for one in batch}
    return dict(sorted(found.items()))


def walk(path: RemotePath) -> Iterator[RemotePath]:
    """All objects below a name, and zarr stores as a whole; nothing hidden."""
    here = list_folder(path)
    if here.is_zarr:
        yield path
        return
    yield from _shown(here.files)
    for folder in _shown(here.folders):
        yield from walk(folder)


def matches_in_bucket(pattern: RemotePath) -> list[RemotePath]:
    """Objects and folders that a pattern means; ``**`` stands for any number of folders.

    Parameters
    ----------
    pattern : RemotePath
        With ``*``, ``?`` and ``[…]`` in its key.
    """
    check_listed(pattern)
    return sorted(set(_matches(RemotePath(*pattern.parts[:2]), pattern.parts[2:])))


def _matches(folder: RemotePath, parts: tuple[str, ...]) -> Iterator[RemotePath]:
    plain = next((place for place, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    folder, parts = folder.joinpath(*parts[:plain]), parts[plain:]
    if not parts:
        yield from (folder,) if folder.exists() else ()
        return
    here, (first, *rest) = list_folder(folder), parts
    if first == "**":
        yield from _matches(folder, tuple(rest)) if rest else _shown(here.files)
        for below in _shown(here.folders):
            yield from _matches(below, parts)
        return
    fits = re.compile(fnmatch.translate(first)).match
    found = [one for one in _shown((*here.files, *here.folders)) if fits(one.name)]
    if not rest:
        yield from found
    for below in found if rest else ():
        yield from _matches(below, tuple(rest))


def _shown(paths: Iterable[RemotePath]) -> list[RemotePath]:
    """Without what is hidden."""
    return [path for path in paths if not path.name.startswith(".")]


def check_listed(path: RemotePath) -> None:
    """Raise for a server, which cannot be asked what it has."""
    if not path.is_listed:
        raise MapFileError(
            f"Expected the address of a single map, but {path} is a folder or a pattern: what is on a server cannot be "
            "listed. Give the address of each map."
        )


def _in_bucket(path: RemotePath, key: str) -> RemotePath:
    return RemotePath(*path.parts[:2], *(part for part in key.split("/") if part))


def matches(pattern: str | Path, /, *, recursive: bool = False) -> list[Path]:
    """The files and folders that a pattern means, in the order of their names."""
    path = to_path(pattern)
    if isinstance(path, RemotePath):
        return list(matches_in_bucket(path))
    found = glob.glob(str(pattern), recursive=recursive)  # noqa: PTH207 - may be absolute
    return sorted(Path(match) for match in found)

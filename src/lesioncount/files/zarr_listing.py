"""What is in a zarr store, by one look at it: which files, how large, and whether they are the same afterwards."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lesioncount.errors import MapFileError
from lesioncount.files.remote_path import RemotePath

# What describes arrays and groups, in versions 2 and 3 of the format.
_DESCRIPTIONS = frozenset({".zarray", ".zgroup", ".zattrs", "zarr.json"})


class FileState(NamedTuple):
    """The size of a file, and what changes when it is changed or replaced.

    That is its time and its place on the disk, or what a bucket calls its version. Of a folder, it changes when a file
    is added or taken away.
    """

    size: int
    time_ns: int = 0
    inode: int = 0
    version: str | None = None

    @classmethod
    def of(cls, path: Path) -> FileState:
        """On this machine, as it is now; raise for what is neither file nor folder."""
        try:
            status = path.stat()
        except OSError as error:
            raise MapFileError(f"{path} cannot be looked at: {error.strerror}.") from None
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise MapFileError(f"{path} is not a regular file: a zarr array consists of files.")
        return cls(status.st_size, status.st_mtime_ns, status.st_ino)

    @property
    def tag(self) -> str | None:
        """What a bucket can be asked for: just this version of the object."""
        return self.version if self.version is not None and self.version.startswith('"') else None


@dataclass
class Listing:
    """What is in a store.

    Attributes
    ----------
    path : Path
    files : dict of Path to FileState
        In the order of their names. Of a server, which cannot be listed, there are none.
    folders : dict of Path to FileState
        Those on this machine.
    is_checked : bool
        Whether chunks were read as they are listed here, or not at all.
    """

    path: Path
    files: dict[Path, FileState]
    folders: dict[Path, FileState] = field(default_factory=dict)
    is_checked: bool = field(default=False, compare=False)

    def __hash__(self) -> int:
        return hash(self.path)

    @classmethod
    def of(cls, path: Path) -> Listing:
        """Look at a store."""
        if isinstance(path, RemotePath):
            return cls(path, _objects_in(path))
        files: dict[Path, FileState] = {}
        folders = {path: FileState.of(path)} if path.is_dir() else {}  # before they are listed
        for folder, below, names in os.walk(path):
            folders |= {Path(folder) / one: FileState.of(Path(folder) / one) for one in below}
            files |= {Path(folder) / one: FileState.of(Path(folder) / one) for one in names}
        return cls(path, dict(sorted(files.items())), folders)

    @property
    def version(self) -> str | None:
        """Of all objects in a bucket; None of a server: the description of an array does not change with its chunks."""
        if not isinstance(self.path, RemotePath) or not self.path.is_listed:
            return None
        digest = hashlib.sha256()
        for name, state in named_in(self.path, self.files).items():
            digest.update(f"{name}\t{state.size}\t{state.version}\n".encode())
        return f"etags {digest.hexdigest()}, {len(self.files)} objects"

    def below(self, folder: Path) -> dict[Path, FileState]:
        """The files in a folder of the store."""
        n = len(folder.parts)
        is_all = folder == self.path
        return {one: state for one, state in self.files.items() if is_all or one.parts[:n] == folder.parts}

    def is_unchanged(self) -> bool:
        """Whether the store is still the same; it is listed again only if there is no other way to know."""
        if not isinstance(self.path, RemotePath):
            try:
                return all(FileState.of(path) == state for path, state in (*self.files.items(), *self.folders.items()))
            except MapFileError:
                return False
        if not self.is_checked:
            return Listing.of(self.path) == self
        described = {file: state.tag for file, state in self.files.items() if file.name in _DESCRIPTIONS}
        return all(isinstance(file, RemotePath) and _has_tag(file, tag) for file, tag in described.items())


_SHARED: ContextVar[dict[Path, Listing] | None] = ContextVar("listings", default=None)


@contextmanager
def listed_once() -> Iterator[None]:
    """Look at each store once, whoever asks: what is recorded of it is then what was counted."""
    token = _SHARED.set({})
    try:
        yield
    finally:
        _SHARED.reset(token)


def listing_of(path: Path) -> Listing:
    """What is in a store, or in the store that a folder belongs to."""
    shared = _SHARED.get()
    if shared is None:
        return Listing.of(path)
    known = next((shared[one] for one in (path, *path.parents) if one in shared), None)
    return shared.setdefault(path, Listing.of(path)) if known is None else known


def named_in(folder: Path, files: Mapping[Path, FileState]) -> dict[str, FileState]:
    """Files by their names in a folder."""
    begin = len(str(folder)) + 1
    return {str(file)[begin:].replace(os.sep, "/"): state for file, state in files.items()}


def _objects_in(path: RemotePath) -> dict[Path, FileState]:
    if not path.is_listed:
        return {}
    from lesioncount.files.remote_listing import objects_below

    found = objects_below(path)
    if not found:
        raise MapFileError(f"{path} does not exist: nothing lies below that name.")
    return {file: FileState(state.size, version=state.version) for file, state in found.items()}


def _has_tag(file: RemotePath, tag: str | None) -> bool:
    """Whether an object is still there in this version."""
    from lesioncount.files.remote_objects import explained, key_of, obstore, store_of

    get = obstore().get
    from obstore.exceptions import PreconditionError

    with explained(file):
        try:
            get(store_of(file), key_of(file), options={"if_match": tag, "head": True})
        except (PreconditionError, FileNotFoundError):
            return False
    return True

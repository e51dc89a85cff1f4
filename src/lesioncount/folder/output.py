"""A folder that is written to: which files in it are ours, who is writing, and how a file is replaced."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import IO

from lesioncount.errors import MapFileError
from lesioncount.files.remote_path import check_local
from lesioncount.folder.atomic import certified, is_certified, remove_left_overs, replacing, write_quickly
from lesioncount.folder.journal import Journal

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not on Windows, where two runs at once are not noticed
    fcntl = None

# Hidden in the folder: what was written, a line per file; and who is writing, as long as somebody is.
_LEDGER, _LEDGERS, _LOCK = ".lesioncount.tsv", ".lesioncount.*.tsv", ".lesioncount.lock"

# Files that may list what was written with them, and then take the place of the ledger.
_LISTS = ("run.json", "evaluation.json", "summary.json")

# Of a file that we wrote and a power cut has emptied, nothing is lost.
_EMPTY = hashlib.sha256().hexdigest()

_CERTIFIED = (".json", ".html", ".svg", ".js")


class OutputFolder:
    """A folder of ours and other people's files, in which only ours are ever replaced or removed.

    A file is ours if it is just as we wrote it. Text that can carry a check sum does; of the others, name and SHA-256
    are kept in a ledger, which is written before the file takes its place. So whenever a process is killed, what it has
    left is either not there, or known as ours. Each process has a ledger of its own: several may write at once.

    Parameters
    ----------
    path : Path
        Made when something is written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = check_local(path)
        self._made: set[Path] = set()
        self._lists: dict[str, Mapping[str, str]] = {}

    def is_ours(self, name: str) -> bool:
        """Whether a file is there, and just as we wrote it."""
        path = self.path / name
        if not self._is_file(name):
            return False
        if _carries_checksum(name) and is_certified(path):
            return True
        return name in self._written and _sha256(path) in (*self._written[name], _EMPTY)

    def take_list(self, name: str, files: Mapping[str, str]) -> None:
        """Know which files one of ours lists, from whoever has read or written it: it is not read for that."""
        self._lists[name] = files
        self.__dict__.pop("_written", None)

    def check(self, names: Iterable[str]) -> None:
        """Raise if one of these files is there and not ours."""
        for name in names:
            if self._is_taken(name) and not self.is_ours(name):
                raise MapFileError(_foreign(self.path / name))

    @contextmanager
    def replacing(self, name: str, *, though_changed: bool = False) -> Iterator[Path]:
        """A temporary path; the file takes its final name when all went well, and is removed when not.

        Parameters
        ----------
        name : str
            Of the file, which is replaced if it is ours.
        though_changed : bool, default False
            Replace it also if it was changed since: the caller knows that it was ours.
        """
        final = self.path / name
        self._make(final.parent)
        # Not in a folder inside this one: what a killed process leaves is looked for here only.
        with replacing(final, made_in=self.path) as temporary:
            yield temporary
            if not though_changed:
                self.check([name])
            if not _carries_checksum(name):
                self._record({name: _sha256(temporary)})

    def write_text(self, name: str, text: str, *, though_changed: bool = False) -> None:
        """Write a text file, complete or not at all, with a check sum where its format allows for one."""
        text = certified(Path(name).name, text) if _carries_checksum(name) else text
        with self.replacing(name, though_changed=though_changed) as temporary:
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace")  # names may be no Unicode

    def announce(self, names: Iterable[str]) -> None:
        """Say which texts with a check sum are about to be written, and wait until that is on the disk.

        Whoever waits for the disk once for many small files need not wait for each: see `write_announced`.
        """
        self._make(self.path)
        free = (name for name in names if not self._is_taken(name) or self.is_ours(name))
        if hashes := dict.fromkeys(free, _EMPTY):
            self._record(hashes, wait=True)

    def write_announced(self, name: str, text: str, *, though_changed: bool = False) -> None:
        """Write a text with a check sum that was announced, complete or not at all, and do not wait for the disk.

        A power cut within the next half a minute may leave it empty, but it is known as ours then, and made again.
        """
        if not though_changed:
            self.check([name])
        self._make((self.path / name).parent)
        text = certified(Path(name).name, text)
        write_quickly(self.path / name, text.encode("utf-8", "backslashreplace"), made_in=self.path)

    def write_together(self, files: Mapping[str, bytes]) -> None:
        """Write several small files that can be made again, each complete or not at all, and none waited for.

        A power cut within the next half a minute may leave them empty. JSON gets its check sum, as always.
        """
        self.check(files)
        contents = {
            name: certified(name.rpartition("/")[2], content.decode()).encode() if _carries_checksum(name) else content
            for name, content in files.items()
        }
        for folder in {(self.path / name).parent for name in files}:
            self._make(folder)
        self._record({name: hashlib.sha256(content).hexdigest() for name, content in contents.items()})
        for name, content in contents.items():
            write_quickly(self.path / name, content, made_in=self.path)

    def append_line(self, name: str, line: bytes) -> None:
        """Append a line to a journal, and wait until it is on the disk.

        A journal is in no ledger, and changes all the time: so it is never ours to replace or to remove.
        """
        path = self.path / name
        self._make(path.parent)
        Journal(path).append(line)

    def make(self, name: str) -> None:
        """Make a folder in this one, unless it is there."""
        self._make(self.path / name)

    def remove(self, name: str) -> None:
        """Remove a file if it is ours."""
        if self.is_ours(name):
            (self.path / name).unlink(missing_ok=True)

    def remove_empty(self, name: str) -> None:
        """Remove a folder in this one, unless it is a link or holds something."""
        if not (self.path / name).is_symlink():
            with suppress(OSError):
                (self.path / name).rmdir()

    def names(self) -> frozenset[str]:
        """Names of all files that we wrote here, but for those that carry a check sum; some may be gone or changed."""
        return frozenset(self._written)

    def listed(self) -> dict[str, str]:
        """Name and SHA-256 of the files in the ledgers that are there and ours: for the file that lists them."""
        self.__dict__.pop("_written", None)  # others have written, too
        listed = sorted(name for name in self._written if not _carries_checksum(name))
        found = {name: _sha256(self.path / name) for name in listed if self._is_file(name)}
        return {name: sha256 for name, sha256 in found.items() if sha256 in (*self._written[name], _EMPTY)}

    @contextmanager
    def alone(self, *, listed_in: str | None = None) -> Iterator[None]:
        """Keep every other run out of this folder; raise if one is in it already.

        The lock goes with the process that holds it, however that ends.

        Parameters
        ----------
        listed_in : str, optional
            A file that lists what was written, at the end. Default: the hidden ledger.
        """
        with self._lock():
            remove_left_overs(self.path)
            try:
                yield
            finally:
                remove_left_overs(self.path)  # of a worker that was killed
            with suppress(OSError):
                self._settle(listed_in)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        lock = self.path / _LOCK
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            file = lock.open("a+", encoding="utf-8")
        except OSError as error:
            raise MapFileError(f"The folder {self.path} cannot be used: {error.strerror}.") from None
        with file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    is_gone = not lock.exists() or not os.path.samestat(os.fstat(file.fileno()), lock.stat())
                except OSError:
                    is_gone = False
                    raise MapFileError(_in_use(self.path, file)) from None
                if is_gone:  # the run that held it has ended this very moment
                    raise MapFileError(f"{self.path} was in use until a moment ago. Try again.")
            began = time.strftime("%Y-%m-%d %H:%M:%S")
            file.truncate(0)
            file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "began": began}))
            file.flush()
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)

    @cached_property
    def _written(self) -> dict[str, set[str]]:
        """What was written here: the hashes of each name."""
        written: dict[str, set[str]] = {}
        for ledger in (self.path / _LEDGER, *sorted(self.path.glob(_LEDGERS))):
            with suppress(OSError, UnicodeDecodeError):
                for line in ledger.read_text("utf-8").splitlines():
                    sha256, _, name = line.partition("\t")
                    written.setdefault(name, set()).add(sha256)
        for name in _LISTS:
            listed = self._lists[name] if name in self._lists else listed_in(self.path / name)
            for one, sha256 in listed.items():
                written.setdefault(one, set()).add(sha256)
        return written

    def _make(self, folder: Path) -> None:
        """Make this folder, or one in it, which must not be a link that leads elsewhere."""
        if folder in self._made:
            return
        if folder != self.path:
            self._make(folder.parent)
        try:
            folder.mkdir(parents=folder == self.path)
        except FileExistsError:
            if not folder.is_dir():
                raise MapFileError(f"The folder {folder} cannot be used: there is a file of that name.") from None
            if folder != self.path and folder.is_symlink() and self.path.resolve() not in folder.resolve().parents:
                raise MapFileError(f"{folder} is a link that leads out of {self.path}. Remove it.") from None
        except OSError as error:
            raise MapFileError(f"The folder {folder} cannot be used: {error.strerror}.") from None
        self._made.add(folder)

    def _is_file(self, name: str) -> bool:
        path = self.path / name
        return not os.path.islink(path) and os.path.isfile(path)  # noqa: PTH113, PTH114 - take any name

    def _is_taken(self, name: str) -> bool:
        return os.path.lexists(self.path / name)  # of a name that is too long: no

    def _record(self, hashes: Mapping[str, str], *, wait: bool = False) -> None:
        # In one piece, and on a line of its own even after one that a full disk has cut.
        with (self.path / f".lesioncount.{socket.gethostname()}-{os.getpid()}.tsv").open("ab", buffering=0) as ledger:
            lines = "".join(f"\n{sha256}\t{name}" for name, sha256 in hashes.items())
            ledger.write(lines.encode("utf-8", "backslashreplace"))
            if wait:
                os.fsync(ledger.fileno())
        if "_written" in self.__dict__:  # else it is read when it is needed, from this file, too
            for name, sha256 in hashes.items():
                self._written.setdefault(name, set()).add(sha256)

    def _settle(self, listed_in: str | None) -> None:
        """One list instead of many ledgers, while nobody else writes."""
        ledgers = [self.path / _LEDGER, *self.path.glob(_LEDGERS)]
        if listed_in is None:
            lines = "".join(f"{sha256}\t{name}\n" for name, sha256 in self.listed().items())
            with replacing(self.path / _LEDGER) as temporary:
                temporary.write_text(lines, "utf-8")
            ledgers.pop(0)
        elif not is_certified(self.path / listed_in):
            return
        for ledger in ledgers:
            ledger.unlink(missing_ok=True)


def _carries_checksum(name: str) -> bool:
    """Whether a file has room for a check sum. The description of a zarr array, which is JSON, has none."""
    return name.endswith(_CERTIFIED) and not name.endswith("/zarr.json")


def listed_in(path: Path) -> dict[str, str]:
    """The files that a file of ours lists; none if it is not ours, or somebody has forged it."""
    with suppress(OSError, ValueError, RecursionError):
        content = json.loads(path.read_text("utf-8")) if is_certified(path) else None
        files = content.get("files") if isinstance(content, dict) else None
        if isinstance(files, dict) and all(isinstance(sha256, str) for sha256 in files.values()):
            return files
    return {}


def _foreign(path: Path) -> str:
    return (
        f"{path} is not a result of an earlier run as lesioncount wrote it, and would be replaced. Move it, or choose "
        "another folder."
    )


def _in_use(path: Path, lock: IO[str]) -> str:
    who = "another run"
    with suppress(OSError, ValueError, KeyError, TypeError):
        lock.seek(0)
        owner = json.loads(lock.read(4096))
        who = f"process {int(owner['pid'])} on {str(owner['host'])[:80]}, since {str(owner['began'])[:30]}"
    return f"{path} is in use by {who}. Wait until it has finished, or choose another folder."


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

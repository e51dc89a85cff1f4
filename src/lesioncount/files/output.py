"""A folder that is written to: which files in it are ours, who is writing, and how a file is replaced."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import IO

from lesioncount.errors import MapFileError
from lesioncount.files.atomic import remove_left_overs, replacing

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not on Windows, where two runs at once are not noticed
    fcntl = None

# Hidden in each folder: what we have written there, and who is writing.
_KEPT = ".lesioncount"
_HASHED_AT_ONCE = 1 << 20


class OutputFolder:
    """Files that are written here are recorded by name and SHA-256; no other file is ever replaced or removed.

    The record of a file is written before the file takes its place. So whenever a process is killed, what it has left is
    either not there, or known as ours. Each process has a ledger of its own: several may write at once, on several
    machines.

    Parameters
    ----------
    path : Path
        Made when something is written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def check(self, names: Iterable[str]) -> None:
        """Raise if one of these files is there and not ours."""
        for name in names:
            if self._is_foreign(name):
                raise MapFileError(_foreign(self.path / name))

    def is_ours(self, name: str) -> bool:
        """Whether a file is there, and just as we have written it."""
        path = self.path / name
        return name in self._written and path.is_file() and _sha256(path) in self._written[name]

    @contextmanager
    def replacing(self, name: str) -> Iterator[Path]:
        """A temporary path; the file takes its final name when all went well, and is removed when not."""
        final = self.path / name
        try:
            final.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise MapFileError(f"The folder {final.parent} cannot be used: {error.strerror}.") from None
        with replacing(final) as temporary:
            yield temporary
            if self._is_foreign(name):
                raise MapFileError(_foreign(final))
            self._record(name, _sha256(temporary))

    def write_text(self, name: str, text: str) -> None:
        """Write a text file, complete or not at all."""
        with self.replacing(name) as temporary:
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace")  # names may be no Unicode

    def adopt(self, names: Iterable[str]) -> None:
        """Take files that are there as ours: those of a version that kept no ledger, which the caller has recognised."""
        for name in names:
            if (self.path / name).is_file():
                self._record(name, _sha256(self.path / name))

    @property
    def has_ledger(self) -> bool:
        """Whether anything was ever recorded here."""
        return bool(self._written)

    @property
    def names(self) -> list[str]:
        """The files that were written here and are still there, whoever has changed them since."""
        return [name for name in self._written if (self.path / name).is_file()]

    def remove(self, name: str) -> None:
        """Remove a file if it is ours."""
        if self.is_ours(name):
            (self.path / name).unlink(missing_ok=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every other run out of this folder; raise if one is in it already.

        The lock goes with the process that holds it, however that ends.
        """
        with self._lock() as file:
            file.seek(0)
            file.truncate()
            began = time.strftime("%Y-%m-%d %H:%M:%S")
            file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "began": began}))
            file.flush()
            remove_left_overs(self.path)
            try:
                yield
            finally:
                with suppress(OSError):
                    self._settle()
                    file.seek(0)
                    file.truncate()

    @contextmanager
    def _lock(self) -> Iterator[IO[str]]:
        try:
            self._kept.mkdir(parents=True, exist_ok=True)
            file = (self._kept / "lock").open("a+", encoding="utf-8")
        except OSError as error:
            raise MapFileError(f"The folder {self.path} cannot be used: {error.strerror}.") from None
        with file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise MapFileError(
                        f"{self.path} is in use by {_owner(file)}. Wait until it has finished, or choose another folder."
                    ) from None
            yield file

    @property
    def _kept(self) -> Path:
        return self.path / _KEPT

    @cached_property
    def _written(self) -> dict[str, set[str]]:
        """All that was ever written here: the hashes of each name."""
        written: dict[str, set[str]] = {}
        for ledger in sorted(self._kept.glob("written*.tsv")):
            with suppress(OSError, UnicodeDecodeError):
                for line in ledger.read_text("utf-8").splitlines():
                    sha256, _, name = line.partition("\t")
                    if name:
                        written.setdefault(name, set()).add(sha256)
        return written

    def _is_foreign(self, name: str) -> bool:
        path = self.path / name
        return (path.exists() or path.is_symlink()) and not self.is_ours(name)

    def _record(self, name: str, sha256: str) -> None:
        self._kept.mkdir(exist_ok=True)
        # In one piece, and on a line of its own even after one that a full disk has cut.
        with (self._kept / f"written-{socket.gethostname()}-{os.getpid()}.tsv").open("ab", buffering=0) as ledger:
            ledger.write(f"\n{sha256}\t{name}".encode("utf-8", "backslashreplace"))
        self._written.setdefault(name, set()).add(sha256)

    def _settle(self) -> None:
        """One ledger instead of many, of the files that are there; only while nobody else writes."""
        ledgers = list(self._kept.glob("written-*.tsv"))
        self.__dict__.pop("_written", None)  # others have written, too
        there = {name: hashes for name, hashes in self._written.items() if (self.path / name).exists()}
        lines = "".join(f"{sha256}\t{name}\n" for name, hashes in sorted(there.items()) for sha256 in sorted(hashes))
        with replacing(self._kept / "written.tsv") as temporary:
            temporary.write_text(lines, "utf-8")
        for ledger in ledgers:
            ledger.unlink(missing_ok=True)


def _foreign(path: Path) -> str:
    return (
        f"{path} was not written by lesioncount, or has been changed since, and would be replaced. Move it, or choose "
        "another folder."
    )


def _owner(file: IO[str]) -> str:
    try:
        file.seek(0)
        owner = json.loads(file.read(4096))
        return f"process {int(owner['pid'])} on {str(owner['host'])[:80]}, since {str(owner['began'])[:30]}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another run"


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_HASHED_AT_ONCE):
            digest.update(block)
    return digest.hexdigest()

"""The SHA-256 of files, taken of the bytes that are read for their voxels: no file is read twice."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from lesioncount.files.ahead import is_worth_a_thread
from lesioncount.files.remote_path import RemotePath

# Read and hashed at once.
_BLOCK = 1 << 19

_wanted: ContextVar[dict[Path, str] | None] = ContextVar("_wanted", default=None)


@contextmanager
def hashes_of_files_read() -> Iterator[dict[Path, str]]:
    """The SHA-256 of files whose voxels are read to the end from here on, by their paths.

    Of formats that a library reads, and of what lives elsewhere, there is none.
    """
    hashes: dict[Path, str] = {}
    before = _wanted.set(hashes)
    try:
        yield hashes
    finally:
        _wanted.reset(before)


@contextmanager
def reading(path: Path) -> Iterator[io.BufferedReader[Any]]:
    """A file whose voxels are read from the first to the last, hashed on the way where somebody wants that."""
    hashes = _wanted.get()
    if hashes is None or isinstance(path, RemotePath):
        with path.open("rb") as file:
            yield file
        return
    hashed = HashedFile(path)
    with io.BufferedReader(hashed) as file:
        yield file
        hashes[path] = hashed.sha256_of_all()


class HashedFile(io.RawIOBase):
    """A file that is hashed as it is read. It goes forward only.

    Where a core is left for it, a thread hashes each block, and reads the next one, while what is in it is decompressed
    and counted.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self._digest = hashlib.sha256()
        size = os.fstat(self._file.fileno()).st_size
        self._rooms = [memoryview(bytearray(min(size + 1, _BLOCK))) for _ in range(2)]
        self._block = self._unread = self._rooms[0][:0]
        self._thread = ThreadPoolExecutor(1) if is_worth_a_thread(size) else None
        self._next = self._begin_next()

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, into: Any) -> int:
        """Read at most so many bytes."""
        if not self._unread:
            self._unread = self._next_block()
        n = min(len(into), len(self._unread))
        into[:n], self._unread = self._unread[:n], self._unread[n:]
        return n

    def sha256_of_all(self) -> str:
        """The SHA-256 of the whole file, whose rest is read now."""
        while self._next_block():
            pass
        return self._digest.hexdigest()

    def close(self) -> None:
        """Read no more."""
        if self._thread is not None:
            self._thread.shutdown()
        self._file.close()
        super().close()

    def _next_block(self) -> memoryview:
        self._block = self._next()
        self._next = self._begin_next()
        return self._block

    def _begin_next(self) -> Callable[[], memoryview]:
        return self._hash_and_read if self._thread is None else self._thread.submit(self._hash_and_read).result

    def _hash_and_read(self) -> memoryview:
        """Hash the last block, and read the next one where nobody needs the one before any more."""
        self._digest.update(self._block)
        self._rooms.reverse()
        room = self._rooms[0]
        return room[: self._file.readinto(room)]

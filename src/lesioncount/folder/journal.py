"""A file that lines are appended to, each on the disk before anybody is told so; nothing in it is ever replaced."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from lesioncount.errors import MapFileError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not on Windows, where a line that a crash has cut is told from the next by its blank line only
    fcntl = None

# Not on Windows, which has few links and asks for text or bytes.
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class Journal:
    """An append-only file of lines, which several processes may write and read at the same time.

    A line is appended in one write, and is on the disk when `append` returns. What a crash has left of a line stays
    where it is, and the next begins on a line of its own. `news` gives the complete lines since it was last called.

    Parameters
    ----------
    path : Path
        Made when something is appended. A link is refused.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read_to = 0

    def append(self, line: bytes) -> None:
        """Append a line, given without its end, and wait until it is on the disk."""
        is_new = not self.path.exists()
        with self._opened(os.O_RDWR | os.O_CREAT | os.O_APPEND) as file, _locked(file):
            size = os.fstat(file).st_size
            is_cut = size > 0 and _byte_at(file, size - 1) != b"\n"
            content = (b"\n" if is_cut else b"") + line + b"\n"
            if os.write(file, content) != len(content):
                raise MapFileError(f"{self.path} cannot be written: the disk is full.")
            os.fsync(file)
        if is_new:
            _sync_folder(self.path.parent)

    def news(self) -> list[bytes]:
        """The lines that were appended since the last call, but for one that is not complete yet."""
        try:
            with self._opened(os.O_RDONLY) as file:
                os.lseek(file, self._read_to, os.SEEK_SET)
                content = b"".join(iter(lambda: os.read(file, 1 << 20), b""))
        except FileNotFoundError:
            return []
        complete = content[: content.rfind(b"\n") + 1]
        self._read_to += len(complete)
        return complete.splitlines()

    @contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        try:
            file = os.open(self.path, flags | _FLAGS, 0o666)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise MapFileError(f"{self.path} cannot be used: {error.strerror}.") from None
        try:
            yield file
        except OSError as error:
            if isinstance(error, MapFileError):
                raise
            raise MapFileError(f"{self.path} cannot be written or read: {error.strerror}.") from error
        finally:
            os.close(file)


@contextmanager
def _locked(file: int) -> Iterator[None]:
    """Alone, for as long as it takes to look at the end of a file and append to it. Closing it ends this, too."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX)
    yield


def _byte_at(file: int, place: int) -> bytes:
    os.lseek(file, place, os.SEEK_SET)
    return os.read(file, 1)


def _sync_folder(folder: Path) -> None:
    """Have the name of a new file on the disk, too, where folders can be opened."""
    if fcntl is None:
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

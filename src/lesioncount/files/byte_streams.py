"""Bytes of a file from some place on, decompressed as they are read, and read to the end, where the check sum is."""

from __future__ import annotations

import bz2
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from stat import S_ISREG
from typing import IO, Any, cast

from isal import igzip
from isal.igzip_lib import IsalError

from lesioncount.errors import LesionCountError, MapFileError
from lesioncount.files.hashed import reading
from lesioncount.files.remote_path import RemotePath

# How far bytes can expand: deflate cannot do more. bzip2 packs 45 MB of zeros into some 40 bytes; above the size of a
# map without lesions, a lower ratio keeps a small file from taking minutes.
HIGHEST_RATIO = {"raw": 1, "gzip": 1032, "zlib": 1032, "bzip2": 30_000}
_ZEROS_RATIO, _MOST_ZEROS = {"bzip2": 1_500_000}, 1 << 30

# What may follow the voxels in a compressed file, such as extensions. A file that goes on for longer is not what its
# header says, or a bomb.
_BEHIND = 1 << 26

_READ_AT_ONCE = 1 << 18

# Above the size of a piece. A zip archive, which has no `readinto` of its own, holds three times what is asked for.
_FILLED_AT_ONCE = 1 << 22

_DAMAGED = (igzip.BadGzipFile, cast("type[Exception]", IsalError), EOFError, zlib.error)


def check_regular(path: Path) -> None:
    """Raise unless a path is a regular file: a pipe or a device may never end, or never begin."""
    if isinstance(path, RemotePath):
        if path.state().size == 0:
            raise MapFileError(f"{path} is empty.")
        return
    with suppress(OSError, ValueError):  # what is wrong is told below: most files are as they should be
        status = path.stat()
        if S_ISREG(status.st_mode) and status.st_size:
            return
    try:
        there, regular = path.exists(), path.is_file()
    except OSError as error:  # a name that is too long
        raise MapFileError(f"{short(path)} cannot be looked at: {error.strerror}.") from None
    if there:
        raise MapFileError(
            f"{path} is {'empty' if regular else 'a folder' if path.is_dir() else 'not a regular file'}."
        )
    if path.is_symlink():
        raise MapFileError(f"{path} is a link that leads nowhere, or to itself.")
    raise MapFileError(f"{short(path)} does not exist.")


def short(path: Path) -> str:
    """A path for a message, which may be too long for a file system."""
    return str(path) if len(str(path)) <= 300 else f"{str(path)[:80]}…"


def encoding_of_file(path: Path) -> str:
    """Whether a file is compressed by gzip, by its first bytes: whatever the name says."""
    with path.open("rb") as file:
        return "gzip" if file.read(2) == b"\x1f\x8b" else "raw"


@contextmanager
def opened(path: Path, encoding: str = "raw", start: int = 0, *, whole: bool = False) -> Iterator[IO[bytes]]:
    """The bytes of a file from ``start`` on, decompressed; ``whole``: all of them will be read."""
    try:
        with reading(path) if whole else path.open("rb") as file:
            skip(path, file, start)
            with _DECOMPRESSED[encoding](file) as stream:
                yield stream
    except _DAMAGED as error:
        raise MapFileError(f"{path} is damaged or truncated: {error}.") from None
    except OSError as error:
        if isinstance(error, MapFileError) or encoding != "bzip2" or error.errno is not None:
            raise
        raise MapFileError(f"{path} is damaged or truncated: {error}.") from None  # of bz2, "Invalid data stream"


@contextmanager
def explained(path: Path, what: str) -> Iterator[None]:
    """Say what is wrong with a file that a library reads, whatever it is."""
    try:
        yield
    except (LesionCountError, MemoryError, ImportError, PermissionError):
        raise
    except Exception as error:  # noqa: BLE001 - damaged and incomplete files fail in many ways
        raise MapFileError(f"{path} {what}: {str(error)[:300].rstrip('.') or type(error).__name__}.") from None


def inflated_size(file: IO[bytes], n_bytes: int, most: int, window: int = zlib.MAX_WBITS) -> int:
    """How much the next bytes of a file become, which is known only by inflating them; not further than the most."""
    inflating, size = zlib.decompressobj(window), 0
    while (
        size <= most and not inflating.eof and (block := inflating.unconsumed_tail or file.read(min(n_bytes, 1 << 16)))
    ):
        n_bytes -= 0 if inflating.unconsumed_tail else len(block)
        size += len(inflating.decompress(block, 1 << 20))
    return size


def check_promise(path: Path, promised: int, *, encoding: str = "raw", start: int = 0) -> None:
    """Raise if a file is too short to hold what its header promises."""
    stored = max(0, (path.state().size if isinstance(path, RemotePath) else path.stat().st_size) - start)
    held = max(stored * HIGHEST_RATIO[encoding], min(stored * _ZEROS_RATIO.get(encoding, 0), _MOST_ZEROS))
    if promised > held:
        raise MapFileError(
            f"{path}: the header promises {promised:,} bytes, but the file cannot hold more than {held:,}. "
            "It is truncated, or its header is damaged."
        )


def fill(path: Path, file: IO[bytes], into: memoryview) -> None:
    """Read as many bytes as there is room for."""
    done = 0
    while done < len(into):
        got = file.readinto(into[done : done + _FILLED_AT_ONCE])  # type: ignore[attr-defined]  # all our kinds of file have it
        if not got:
            raise MapFileError(f"{path} is truncated: its voxels end before the header says they do.")
        done += got


def skip(path: Path, file: IO[bytes], n_bytes: int) -> None:
    """Go on by so many bytes."""
    if isinstance(file, io.BufferedReader) and file.seekable():
        file.seek(n_bytes, io.SEEK_CUR)
        return
    while n_bytes > 0:
        block = file.read(min(n_bytes, _READ_AT_ONCE))
        if not block:
            raise MapFileError(f"{path} is truncated: its voxels end before the header says they do.")
        n_bytes -= len(block)


def read_to_end(path: Path, file: IO[bytes], remaining: int) -> None:
    """Read what follows in a compressed file, so that its check sum is compared.

    Parameters
    ----------
    path : Path
    file : file
    remaining : int
        How many bytes of voxels follow.
    """
    most = remaining + _BEHIND
    while block := file.read(_READ_AT_ONCE):
        most -= len(block)
        if most < 0:
            raise MapFileError(
                f"{path} goes on for more than {_BEHIND >> 20} MB behind its voxels: its header does not describe what "
                "is in it. Is the shape right?"
            )


class _Inflated(io.RawIOBase):
    """A zlib stream, as MetaImage has it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._zlib = zlib.decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        view = memoryview(into).cast("B")
        while not self._zlib.eof and len(view):
            compressed = self._zlib.unconsumed_tail or self._file.read(_READ_AT_ONCE)
            inflated = self._zlib.decompress(compressed, len(view))
            view[: len(inflated)] = inflated
            if inflated:
                return len(inflated)
            if not compressed:
                raise EOFError("Compressed data ended before its end was marked")
        return 0


def _inflated(file: io.BufferedReader[Any]) -> IO[bytes]:
    """MetaImage's "compressed" may also be gzip."""
    is_gzip = file.peek(2)[:2] == b"\x1f\x8b"
    return cast(
        "IO[bytes]", igzip.IGzipFile(fileobj=file, mode="rb") if is_gzip else io.BufferedReader(_Inflated(file))
    )


_DECOMPRESSED: dict[str, Callable[[io.BufferedReader[Any]], AbstractContextManager[IO[bytes]]]] = {
    "raw": nullcontext,  # it is not ours to close
    "gzip": lambda file: cast("IO[bytes]", igzip.IGzipFile(fileobj=file, mode="rb")),
    "bzip2": lambda file: cast("IO[bytes]", bz2.BZ2File(file)),
    "zlib": _inflated,
}

"""Files that appear complete or not at all, and texts that carry a check sum over their name and content."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lesioncount.errors import MapFileError

# Of temporary names. What a run leaves behind that was killed can be told from everything else by it.
_PREFIX = ".lesioncount-unfinished-"


def remove_left_overs(folder: Path) -> None:
    """Remove what an earlier run was writing when it was killed."""
    for path in folder.glob(f"{_PREFIX}*"):
        if path.is_file() and not path.is_symlink():
            path.unlink(missing_ok=True)


@contextmanager
def replacing(path: Path, *, made_in: Path | None = None) -> Iterator[Path]:
    """A temporary path; it takes the place of the final one when all went well, and is removed when not.

    Parameters
    ----------
    path : Path
        The final one.
    made_in : Path, optional
        Folder of the temporary one, on the same disk. Default: that of the final one.
    """
    try:
        handle, name = tempfile.mkstemp(dir=made_in or path.parent, prefix=_PREFIX, suffix=_ending(path))
        os.close(handle)
        temporary = Path(name)
    except OSError as error:
        raise MapFileError(f"{path} cannot be written: {error.strerror}.") from error
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        if isinstance(error, MapFileError):
            raise
        raise MapFileError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, complete or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")  # names may be no Unicode


def write_quickly(path: Path, content: bytes, *, made_in: Path) -> None:
    """Write a file, complete or not at all, without waiting until it is on the disk.

    For many small files that can be made again: a power cut within the next half a minute may leave them empty.
    """
    temporary = made_in / f"{_PREFIX}{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as file:
            file.write(content)
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise MapFileError(f"{path} cannot be written: {error.strerror or error}.") from error
        raise


def _ending(path: Path) -> str:
    return ".nii.gz" if path.name.endswith(".nii.gz") else path.suffix


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# The last line but for a closing brace: in JSON a key; in pages, drawings and scripts, which take it too, a comment.
_MARK = re.compile(r'(?:^|\n)(?:"checksum": "|<!-- checksum: )([0-9a-f]{64})(?:"\n\}| -->)\n?\Z')
_LONGEST_MARK = 120


def certified(name: str, text: str) -> str:
    """A text with its check sum: JSON, written with a line per key, or HTML, SVG and scripts."""
    if text.endswith("\n}\n"):
        body = text.removesuffix("\n}\n") + ",\n"
        return f'{body}"checksum": "{_checksum(name, body)}"\n}}\n'
    body = text if text.endswith("\n") else f"{text}\n"
    return f"{body}<!-- checksum: {_checksum(name, body)} -->\n"


def is_certified(path: Path) -> bool:
    """Whether a file is as we wrote it, under this name."""
    try:
        text = path.read_text("utf-8", errors="strict")
    except (OSError, UnicodeDecodeError):
        return False
    return is_certified_text(path.name, text)


def is_certified_text(name: str, text: str) -> bool:
    """The same of the text of a file that was read."""
    return bool(checksum_in(name, text))


def checksum_in(name: str, text: str) -> str:
    """The check sum that a text of this name carries; nothing, if it is not as we wrote it."""
    mark = _MARK.search(text, max(0, len(text) - _LONGEST_MARK))
    if mark is None:
        return ""
    begin = mark.start() + (text[mark.start()] == "\n")
    return mark[1] if _checksum(name, text[:begin]) == mark[1] else ""


def _checksum(name: str, body: str) -> str:
    return hashlib.sha256(f"{name}\n{body}".encode("utf-8", "backslashreplace")).hexdigest()

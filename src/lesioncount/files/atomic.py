"""Files that appear complete or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lesioncount.errors import MapFileError

# Of temporary names. What a run leaves behind that was killed can be told from everything else by it.
_PREFIX = ".lesioncount-"


def remove_left_overs(folder: Path) -> None:
    """Remove what an earlier run was writing when it was killed."""
    for path in folder.glob(f"{_PREFIX}*"):
        path.unlink(missing_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside the final one; it takes its place when all went well, and is removed when not."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=_PREFIX, suffix=_ending(path))
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


def _ending(path: Path) -> str:
    return ".nii.gz" if path.name.endswith(".nii.gz") else path.suffix


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

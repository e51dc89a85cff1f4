"""Checkpoints with a check sum: what is read back is what was written, and nothing in a file is ever run."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lesioncount.errors import LesionCountError, MapFileError

CHECKSUM = "checksum"

# What every checkpoint holds: enough to predict.
_KEYS = ("network_options", "network", "shape")

# A file holds the weights once, and they are hashed twice: as Lightning's, and as ours. More than this many times its
# size is in no file of ours, but in one that refers to the same numbers over and over.
_HASHED_PER_BYTE = 16

# Arrays of few different numbers are compressed to a small part of their size, but not to less than this.
_UNPACKED_PER_BYTE = 100

# Bytes to which no limit applies.
_SMALL = 1 << 24


def write_checkpoint(content: Mapping[str, Any], path: Path) -> None:
    """Write a checkpoint with its check sum: SHA-256 over names, types, shapes and values of all it holds."""
    plain = {key: value for key, value in content.items() if key != CHECKSUM}
    torch.save(plain | {CHECKSUM: _checksum(plain)}, path)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint, and check that it is as it was written.

    Only numbers and plain options are loaded; no code from the file is run. The check sums that the file format has
    for its parts are compared as well, which torch does not do: they show damage, too.

    Raises
    ------
    MapFileError
        If there is no such file, if it is none of `lesioncount train`, or if it is damaged.
    """
    size = _size(path)
    try:
        is_whole = is_whole_archive(path)
    except zipfile.BadZipFile:
        raise _foreign(path) from None
    if not is_whole:
        raise _damaged(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        missing = [key for key in _KEYS if key not in content]
        found = None if missing else _checksum(content, limit=max(_HASHED_PER_BYTE * size, _SMALL))
    except Exception:  # noqa: BLE001 - whatever it was, and torch's own message advises to load the file without care
        raise _foreign(path) from None
    if missing or not isinstance(content, dict):
        raise _foreign(path)
    if CHECKSUM in content and content[CHECKSUM] != found:
        raise _damaged(path)
    return content


def is_whole_archive(path: Path) -> bool:
    """Whether the parts of a zip archive, such as a checkpoint or ``.npz``, are as their own check sums say.

    Raises
    ------
    zipfile.BadZipFile
        If it is no archive.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _is_of_our_kind(archive.infolist(), path.stat().st_size) and archive.testzip() is None
    except Exception as error:  # noqa: BLE001 - of a damaged archive, zipfile raises all kinds of errors
        raise zipfile.BadZipFile(str(error)) from None


def _is_of_our_kind(parts: list[zipfile.ZipInfo], n_bytes: int) -> bool:
    """Whether an archive would be unpacked to about its size: a small file may claim to be an enormous one."""
    is_plain = all(part.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for part in parts)
    return is_plain and sum(part.file_size for part in parts) <= max(_UNPACKED_PER_BYTE * n_bytes, _SMALL)


def _size(path: Path) -> int:
    try:
        if not path.exists():
            raise MapFileError(f"There is no checkpoint {path}.")
        if not path.is_file():
            raise MapFileError(f"{path} is no checkpoint of lesioncount train: it is no file.")
        with path.open("rb"):
            return path.stat().st_size
    except OSError as error:
        if isinstance(error, LesionCountError):
            raise
        raise MapFileError(f"The checkpoint {path} cannot be read: {error.strerror}.") from None


def _foreign(path: Path) -> MapFileError:
    return MapFileError(
        f"{path} is no checkpoint of lesioncount train, or it is damaged. Expected best.ckpt or last.ckpt of a "
        "training."
    )


def _damaged(path: Path) -> MapFileError:
    return MapFileError(
        f"{path} is damaged: its content does not have the check sum that it was written with. Use a copy of it, or "
        "train again."
    )


def _checksum(content: Mapping[str, Any], *, limit: int | None = None) -> str:
    hashed = _Hashed(limit)
    hashed.add({key: value for key, value in content.items() if key != CHECKSUM})
    return hashed.hexdigest()


class _Hashed:
    """SHA-256 of nested plain values and tensors, up to a limit in bytes."""

    def __init__(self, limit: int | None) -> None:
        self._digest, self._left = hashlib.sha256(), limit

    def hexdigest(self) -> str:
        return self._digest.hexdigest()

    def add(self, value: Any) -> None:
        if isinstance(value, Tensor):
            self._add_tensor(value)
        elif isinstance(value, Mapping):
            self._add_bytes("dict", b"%d" % len(value))
            for key, item in value.items():
                self.add(key)
                self.add(item)
        elif isinstance(value, list | tuple):
            self._add_bytes("list", b"%d" % len(value))
            for item in value:
                self.add(item)
        else:
            self._add_bytes(type(value).__name__, repr(value).encode("utf-8", "backslashreplace"))

    def _add_tensor(self, value: Tensor) -> None:
        n_bytes = value.numel() * value.element_size()
        if n_bytes > value.untyped_storage().nbytes():  # one number that claims to be many
            raise ValueError("a tensor that is larger than its storage")
        self._spend(n_bytes)  # before anything is copied
        self._add_bytes("tensor", f"{value.dtype} {tuple(value.shape)}".encode())
        self._digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)

    def _add_bytes(self, kind: str, value: bytes) -> None:
        self._spend(len(value) + len(kind))
        self._digest.update(f"{kind} {len(value)} ".encode() + value)

    def _spend(self, n_bytes: int) -> None:
        if self._left is not None:
            self._left -= n_bytes
            if self._left < 0:
                raise ValueError("more than a file of this size can hold")

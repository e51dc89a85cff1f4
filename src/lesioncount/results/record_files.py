"""Where the record of a scan is in a folder of results: beside the tables, or of very many scans in folders below.

Everybody who reads or writes records asks here, so that old folders and large ones are read alike.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from lesioncount.errors import MapFileError
from lesioncount.folder.output import OutputFolder

# A run of more scans has its records in folders: file managers and shells list so many files, but not many more.
MANY_SCANS = 10_000

# Of those folders, which are named after the first digits of a hash of the name: 256, with 400 records each of
# 100 000 scans.
_RECORDS, _DIGITS = "records", 2
SHARDS = "[0-9a-f]" * _DIGITS


def shard_of(name: str) -> str:
    """The folder of a scan among many, which depends on its name alone.

    Examples
    --------
    >>> shard_of("sub-01__prob")
    'da'
    """
    return hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:_DIGITS]


def is_sharded(out: Path) -> bool:
    """Whether the records of a folder are in folders."""
    return os.path.isdir(f"{out}/{_RECORDS}/00")  # noqa: PTH112 - asked for each record: a third of the time of pathlib


def make_shards(folder: OutputFolder, n_scans: int) -> None:
    """Prepare a folder for the records of so many scans. Those that are there already stay where they are."""
    if n_scans > MANY_SCANS and not is_sharded(folder.path):
        for number in range(16**_DIGITS):
            folder.make(f"{_RECORDS}/{number:0{_DIGITS}x}")


def record_name(name: str) -> str:
    """The file of a record beside the tables."""
    return f"{name}.json"


def record_in(out: Path, name: str) -> str:
    """The file of the record of a scan, in the folder of results: where it is, or is to be."""
    flat = record_name(name)
    if not is_sharded(out):
        return flat
    sharded = f"{_RECORDS}/{shard_of(name)}/{flat}"
    return flat if os.path.lexists(f"{out}/{flat}") and not os.path.lexists(f"{out}/{sharded}") else sharded


def no_record(out: Path, name: str) -> MapFileError:
    """What to say of a scan or a patient whose record cannot be read, though a run has written it."""
    path = out / record_in(out, name)
    return MapFileError(f"The record {path} is missing or not a valid record. Repeat the run with --resume.")


def edited_record(out: Path, name: str) -> MapFileError:
    """What to say of a record that somebody has changed since it was written."""
    path = out / record_in(out, name)
    return MapFileError(
        f"The record {path} was changed after it was written: its check sum does not fit, and neither may its numbers. "
        "Repeat the run with --resume, which makes it again, or put the original back."
    )


def check_records(out: Path, written: Iterable[str], found: Iterable[str]) -> None:
    """Raise if a record that a run has written is not among those found: nobody is left out without a word."""
    known = set(found)
    for name in written:
        if name not in known:
            raise no_record(out, name)


def records_in(out: Path) -> Iterator[str]:
    """All files of a folder that may be records."""
    for pattern in ("*.json", f"{_RECORDS}/{SHARDS}/*.json"):
        for path in out.glob(pattern):
            yield path.relative_to(out).as_posix()


def folder_of(record: Path) -> Path:
    """The folder of results that a record is in, given its path."""
    parents = record.absolute().parents
    is_below = len(parents) > 2 and parents[1].name == _RECORDS and is_sharded(parents[2])
    return parents[2] if is_below and parents[0].name == shard_of(record.stem) else record.parent

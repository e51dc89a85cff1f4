"""Patterns with wildcards → the files that they mean, here or in a bucket."""

from __future__ import annotations

import glob
from pathlib import Path

from lesioncount.files.remote_path import RemotePath, to_path


def matches(pattern: str | Path, /, *, recursive: bool = False) -> list[Path]:
    """The files and folders that a pattern means, in the order of their names."""
    path = to_path(pattern)
    if isinstance(path, RemotePath):
        from lesioncount.files.remote_listing import matches as matches_in_bucket

        return list(matches_in_bucket(path))
    found = glob.glob(str(pattern), recursive=recursive)  # noqa: PTH207 - may be absolute
    return sorted(Path(match) for match in found)

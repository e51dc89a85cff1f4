"""Paths of maps → the names of scans in results."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from lesioncount.files.formats import map_ending, scan_name


def name_scans(paths: Iterable[Path]) -> dict[str, Path]:
    """A name for each path: that of the file; where it is not unique, with its ending, folders, or a number.

    Names that differ only in case count as the same, because on some systems they are the same file.
    """
    names: dict[str, Path] = {}
    taken: set[str] = {"run"}  # run.json is that of the run
    paths = list(paths)
    often = Counter(_clean(scan_name(path)).casefold() for path in paths)
    for path in paths:
        plain = _clean(scan_name(path))
        name = plain if often[plain.casefold()] == 1 and plain.casefold() not in taken else _longer_name(path, taken)
        taken.add(name.casefold())
        names[name] = path
    return names


def _longer_name(path: Path, taken: set[str]) -> str:
    parent = _clean(path.absolute().parent.name)
    with_folder = f"{parent}_{_clean(scan_name(path))}"
    candidates = [with_folder, f"{with_folder}_{_clean((map_ending(path) or '').strip('.'))}"]
    numbered = (f"{with_folder}_{n}" for n in itertools.count(2))
    return next(name for name in itertools.chain(candidates, numbered) if name.casefold() not in taken)


def _clean(name: str) -> str:
    """Without what file systems, tables or shells might trip over."""
    return re.sub(r"[^\w.+=-]", "_", name.encode("utf-8", "replace").decode())

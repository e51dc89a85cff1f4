"""Files of the cache: written complete or not at all, known to be whole, and set aside when they are not."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ExperimentError
from lesioncount.folder.atomic import replacing
from lesioncount.learning.checkpoints import is_whole_archive


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays to a file that appears complete or not at all; what is there already is set aside."""
    path.parent.mkdir(parents=True, exist_ok=True)
    set_aside(path)
    with replacing(path) as temporary:
        np.savez_compressed(temporary, allow_pickle=False, **arrays)


@contextmanager
def kept_arrays(path: Path, prefix: str = "") -> Iterator[dict[str, NDArray[Any]]]:
    """The arrays of a file whose names begin so, for a block that makes something of them, or an `ExperimentError`."""
    try:
        with np.load(path, allow_pickle=False) as found:
            yield {name.removeprefix(prefix): found[name] for name in found.files if name.startswith(prefix)}
    except Exception as error:  # noqa: BLE001 - of a file that is not ours, anything can go wrong
        raise ExperimentError(
            f"{path} does not hold what lesioncount reproduce has written there ({type(error).__name__}). "
            "Move it, and run the same command again: then it is made anew."
        ) from None


def is_whole(path: Path) -> bool:
    """Whether a file of arrays is there, and not damaged."""
    try:
        return path.is_file() and is_whole_archive(path)
    except (OSError, zipfile.BadZipFile):
        return False


def set_aside(path: Path) -> None:
    """Give what is at this place another name: it is damaged, or not ours, and nothing is lost."""
    if path.exists() or path.is_symlink():
        names = (path.with_name(f"{path.name}.damaged{'' if i == 1 else f'-{i}'}") for i in count(1))
        path.rename(next(name for name in names if not name.exists() and not name.is_symlink()))

"""Files of the cache: written complete or not at all, known to be whole, and set aside when they are not."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ExperimentError, LesionCountError
from lesioncount.folder.atomic import replacing
from lesioncount.folder.plain import read_json
from lesioncount.learning.checkpoints import is_whole_archive, read_checkpoint
from lesioncount.learning.training_folder import BEST, LAST, has_best, kept_config


def save_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays to a file that appears complete or not at all; what is there already is set aside."""
    path.parent.mkdir(parents=True, exist_ok=True)
    set_aside(path)
    with replacing(path) as temporary:
        np.savez_compressed(temporary, allow_pickle=False, **arrays)


@contextmanager
def kept_arrays(path: Path) -> Iterator[dict[str, NDArray[Any]]]:
    """The arrays of a file, for a block that makes something of them; an `ExperimentError` if that is not possible."""
    try:
        with np.load(path, allow_pickle=False) as found:
            yield {name: found[name] for name in found.files}
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


def is_finished(done: Path) -> bool:
    """Whether a training is finished, which a file in its folder says, and all that it has left can be read."""
    try:
        return isinstance(read_json(done), dict) and (done.parent / BEST).exists() and not is_damaged(done.parent)
    except (OSError, ValueError, RecursionError):
        return False


def is_damaged(folder: Path) -> bool:
    """Whether the folder of a training has files that it cannot go on from."""
    try:
        kept_config(folder)
        found = {name: read_checkpoint(folder / name) for name in (LAST, BEST) if (folder / name).exists()}
    except LesionCountError:
        return True
    return BEST not in found and LAST in found and has_best(found[LAST])


def set_aside(path: Path) -> None:
    """Give what is at this place another name: it is damaged, or not ours, and nothing is lost."""
    if path.exists() or path.is_symlink():
        names = (path.with_name(f"{path.name}.damaged{'' if i == 1 else f'-{i}'}") for i in count(1))
        path.rename(next(name for name in names if not name.exists() and not name.is_symlink()))


def write_note(path: Path, content: dict[str, Any]) -> None:
    """Write plain values as JSON; what is there already is set aside."""
    set_aside(path)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content) + "\n", "utf-8")

"""Folders, files, patterns and lists → the pictures in them, each with a name, and a file for each channel."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lesioncount.cohort.inputs import common_folder, files_in, is_below
from lesioncount.cohort.whose import repeated_folders
from lesioncount.errors import CohortError, MapFileError, listed, reason_of
from lesioncount.files.remote_listing import matches
from lesioncount.learning.pictures import ENDINGS, picture_ending
from lesioncount.learning.plausible import text_of


@dataclass(frozen=True)
class PictureFiles:
    """A picture: its name, and its files.

    Attributes
    ----------
    name : str
        Its path below the folder that was given, without its ending, such as ``day1/dish3``. In a BIDS tree, folders
        that the name of the file repeats are left out.
    paths : tuple of Path
        One file, or one for each channel.
    """

    name: str
    paths: tuple[Path, ...]


def find_pictures(
    inputs: Iterable[str | Path], /, *, channels: Sequence[str] = (), leave_out: Sequence[Path] = ()
) -> list[PictureFiles]:
    """All pictures that are meant, in the order of the inputs and sorted within each.

    Parameters
    ----------
    inputs : iterable of path
        Folders, which are searched with everything below them; files; glob patterns; and lists: text files (``.txt``)
        with a path in each line.
    channels : sequence of str
        How the names of the files end, where each channel has a file of its own.
    leave_out : sequence of Path
        Folders that are not searched, such as that of the masks.
    """
    found: dict[str, PictureFiles] = {}
    for given in inputs:
        for root, path in _meant_by(given, leave_out):
            if channels and path.is_file() and _channel(_stem(path), channels) != channels[0]:
                if path == Path(given):
                    raise MapFileError(f"{path}: expected a file whose name ends in {channels[0]}, the first channel.")
                continue
            of = _picture(root, path, channels)
            before = found.get(of.name)
            if before is not None and before.paths != of.paths:
                raise CohortError(
                    f"{before.paths[0]} and {of.paths[0]} would both be called {of.name!r}. Rename one of them, or "
                    "give a folder that holds both."
                )
            found[of.name] = of
    if not found:
        ending = f" that end in {channels[0]}" if channels else ""
        raise MapFileError(
            f"There are no pictures{ending} in {', '.join(map(str, inputs)) or 'nothing'}. Pictures end in "
            f"{', '.join(ENDINGS)}."
        )
    return list(found.values())


def _picture(root: Path, path: Path, channels: Sequence[str]) -> PictureFiles:
    stem = _stem(path)
    plain = stem[: len(stem) - len(channels[0])] if channels else stem
    folders = Path(os.path.relpath(path.parent, root)).parts
    folder = Path(*folders[: len(folders) - repeated_folders(folders, stem)])
    if not channels:
        return PictureFiles((folder / stem).as_posix(), (path,))
    ending = path.name[len(stem) :]
    paths = tuple(path.with_name(f"{plain}{suffix}{ending}") for suffix in channels)
    missing = [other.name for other in paths if not other.is_file()]
    if missing:
        raise CohortError(f"{path}: expected a file for each channel beside it, but there is no {', '.join(missing)}.")
    return PictureFiles((folder / (plain.rstrip("_-. ") or stem)).as_posix(), paths)


def _channel(stem: str, channels: Sequence[str]) -> str | None:
    """Which channel a file is: ``_ce-gadolinium_T1w`` also ends in ``_T1w``, and the longest ending counts."""
    return max((channel for channel in channels if stem.endswith(channel)), key=len, default=None)


def _stem(path: Path) -> str:
    ending = picture_ending(path) or ""
    return path.name[: len(path.name) - len(ending)]


def _meant_by(given: str | Path, leave_out: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Paths of pictures, each with the folder that its name begins in."""
    path = Path(given)
    if not str(given).strip():
        raise MapFileError("One of the inputs is empty. For the current folder write .")
    if path.is_dir():
        yield from ((path, file) for file in _inside(path, leave_out))
    elif path.exists() and path.suffix.lower() == ".txt":
        files = _listed(path)
        yield from ((_root(files), file) for file in files)
    elif path.exists() or path.is_symlink():
        yield path.parent, path
    else:
        found = matches(path, recursive=True)
        if not found:
            raise MapFileError(f"{given} does not exist, and matches no file.")
        files = [match for match in found if match.is_file() and picture_ending(match)]
        yield from ((_root(files), file) for file in files)


def _root(files: Sequence[Path]) -> Path:
    return common_folder([Path(os.path.abspath(file.parent)) for file in files])  # noqa: PTH100 - `absolute` keeps ..


def _inside(folder: Path, leave_out: Sequence[Path]) -> list[Path]:
    found = files_in(folder, lambda path, is_folder: not is_folder and picture_ending(path) is not None)
    apart = [other for other in leave_out if other.resolve() != folder.resolve()]
    return [path for path in found if path.is_file() and not any(is_below(path.parent, other) for other in apart)]


def _listed(path: Path) -> list[Path]:
    """The files of a list, which lie where its lines say: as seen from the list or, if not there, from here."""
    try:
        lines = [line.strip() for line in text_of(path).splitlines()]
    except (OSError, ValueError) as error:
        raise MapFileError(f"The list {path} cannot be read: {reason_of(error)}.") from None
    files = [_placed(path, line) for line in lines if line and not line.startswith("#")]
    missing = [file for file in files if not file.is_file()]
    if missing:
        raise MapFileError(
            f"{path} lists files that are not there: {listed(missing)}. Paths are taken from the folder of the list."
        )
    return files


def _placed(path: Path, line: str) -> Path:
    beside = path.parent / line
    return Path(line) if not beside.exists() and Path(line).exists() else beside

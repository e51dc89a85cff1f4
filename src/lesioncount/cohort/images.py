"""Courses and a folder, a pattern or a file → the image of each session, never by guess."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from lesioncount.cohort.inputs import root_of
from lesioncount.cohort.item import FileFacts
from lesioncount.cohort.pairing import pair
from lesioncount.errors import MapFileError


def session_images(
    courses: Sequence[Sequence[FileFacts]], where: Path, *, suffix: str = "", none_is_error: bool = True
) -> list[tuple[Path | None, ...]]:
    """The image of each session of each course; None for those that have none.

    Parameters
    ----------
    courses : sequence of sequence of FileFacts
        The maps, in the order of time.
    where : Path
        A folder, a pattern or a file, as `lesioncount.cohort.pairing.pair` takes it. The maps of several times often
        have the same names: they are told apart by their folders, which ``{folder}`` stands for.
    suffix : str
        What the name of an image adds to that of its map, or has in place of its last part.
    none_is_error : bool, default True
        Whether to raise when there is no image of any session.
    """
    maps = [files for course in courses for files in course]
    root = root_of([files.path for files in maps]) if maps else Path()
    names = {files.path: Path(os.path.relpath(files.path, root)).as_posix() for files in maps}
    asked = {names[files.path]: replace(files, relative=names[files.path]) for files in maps}
    found = pair(asked, where, role="image", suffix=suffix, none_is_error=none_is_error)
    images = [tuple(found.get(names[files.path]) for files in course) for course in courses]
    if not where.is_file():  # one that is given for all is meant for all
        for course, own in zip(courses, images, strict=True):
            _check_apart(course, own)
    return images


def _check_apart(course: Sequence[FileFacts], images: Sequence[Path | None]) -> None:
    """Raise if one image would be shown as two times."""
    taken: dict[Path, FileFacts] = {}
    for files, image in zip(course, images, strict=True):
        if image is not None and (other := taken.setdefault(image, files)) is not files:
            raise MapFileError(
                f"{image} would be the image of both {other.path} and {files.path}. Say which image is of which time, "
                "with folders of the same names as those of the maps, or with a pattern (--images "
                "'images/{folder}/{name}.nii.gz')."
            )

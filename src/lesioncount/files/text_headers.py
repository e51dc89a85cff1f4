"""What NRRD and MetaImage have in common: a text header, numbers in it, and voxels in this file or one beside it."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapFileError
from lesioncount.files.byte_streams import check_regular
from lesioncount.files.geometry import VoxelGrid

# More than any header needs; what is read of a file before it is known to be a map.
HEADER_BYTES = 1 << 18

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


def whole_numbers(path: Path, field: str, text: str) -> tuple[int, ...]:
    """The whole numbers of a field."""
    words = text.split()
    if not words or not all(_WHOLE.fullmatch(word) for word in words):
        raise MapFileError(f"{path}: expected whole numbers as {field}, but got {text[:60]!r}.")
    return tuple(int(word) for word in words)


def real_numbers(path: Path, field: str, text: str) -> tuple[float, ...]:
    """The numbers of a field, which must be finite."""
    try:
        numbers = tuple(float(word) for word in text.split())
    except ValueError:
        numbers = ()
    if not numbers or not all(map(math.isfinite, numbers)):
        raise MapFileError(f"{path}: expected numbers as {field}, but got {text[:60]!r}.")
    return numbers


def flag(path: Path, field: str, text: str) -> bool:
    """A field that is true or false."""
    word = text.strip().lower()
    if word not in ("true", "t", "1", "false", "f", "0"):
        raise MapFileError(f"{path}: expected {field} to be True or False, but got {text[:60]!r}.")
    return word in ("true", "t", "1")


def data_file(header: Path, name: str) -> Path:
    """The file with the voxels that a header names: one, in the folder of the header."""
    is_plain = name not in ("", ".", "..") and not set(name) & set("/\\%\0") and name.isprintable()
    if not is_plain or len(name) > 255 or re.fullmatch(r"LIST( .*)?|.* -?\d+ -?\d+ -?\d+( \d+)?", name):
        raise MapFileError(
            f"{header}: expected its voxels in one file in the same folder, but the header names {name[:60]!r}. Lists, "
            "patterns and other folders are not followed. Save the map as one file."
        )
    path = header.parent / name
    check_regular(path)
    return path


def lps_grid(
    path: Path, shape: tuple[int, ...], columns: NDArray[np.float64], origin: NDArray[np.float64]
) -> VoxelGrid:
    """The grid of axes and an origin in two or three dimensions, in millimetres to the left, to the back and up."""
    affine = np.eye(4)
    n = len(origin)
    affine[:n, : columns.shape[1]] = columns
    affine[:n, 3] = origin
    if columns.shape[1] < n:  # a slice in space
        normal = np.cross(columns[:, 0], columns[:, 1])
        affine[:3, 2] = normal / max(float(np.linalg.norm(normal)), 1e-300)
    affine[:2] *= -1
    return VoxelGrid.placed(path, shape, affine)

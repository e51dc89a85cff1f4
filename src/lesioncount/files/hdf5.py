"""HDF5 as ilastik exports it, with its axes, through h5py: piece by piece, none of which is kept."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapFileError
from lesioncount.files.byte_streams import HIGHEST_RATIO
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.source import PIECE_BYTES, MapSource, chosen_channel
from lesioncount.optional import optional

ENDINGS = (".h5", ".hdf5")

# What ilastik calls its array, and the attribute that names its axes.
_EXPORTED, _AXES = "exported_data", "axistags"

# Axes of files that do not name them, by their number: as of ``.npy``.
_USUAL = {2: "yx", 3: "zyx", 4: "czyx"}

# Arrays up to this size are read however little of them is stored.
_SMALL_BYTES = 1 << 26

# Names that a message repeats, and arrays that are looked at.
_SHOWN, _MOST_ARRAYS = 5, 1000


def open_hdf5(path: Path, channel: int | None = None) -> MapSource:
    """An HDF5 file with one array, or with that of ilastik: axes z, y, x or y, x, and perhaps one of channels."""
    with _array(path) as array:
        axes, shape, dtype = _axes(path, array), tuple(map(int, array.shape)), np.dtype(array.dtype)
        if dtype.kind not in "biuf":
            raise MapFileError(f"{path}: values of type {dtype} cannot be probabilities.")
        _check_size(path, array)
        depth = array.chunks[_space(axes)[0]] if array.chunks else 1
    n_channels = shape[axes.index("c")] if "c" in axes else 1
    chosen = chosen_channel(path, n_channels, channel)
    grid = VoxelGrid(path, tuple(shape[i] for i in _space(axes)), why_unplaced="HDF5 does not say where its voxels lie")
    whole = int(np.iinfo(dtype).max) if dtype.kind in "iu" else None
    pieces = partial(_pieces, path, axes, chosen, int(depth))
    return MapSource(grid, "HDF5", dtype, 0, pieces, n_channels=n_channels, full_scale=whole)


def _pieces(path: Path, axes: str, channel: int, depth: int) -> Iterator[NDArray[Any]]:
    """Some planes after the others: whole chunks, so that each is decoded once."""
    with _array(path) as array:
        space = _space(axes)
        place: list[Any] = [slice(None) if i in space else channel if axes[i] == "c" else 0 for i in range(len(axes))]
        plane = math.prod(array.shape[i] for i in space[1:]) * array.dtype.itemsize
        step = depth * max(PIECE_BYTES // (plane * depth), 1)
        for first in range(0, array.shape[space[0]], step):
            place[space[0]] = slice(first, first + step)
            yield np.asarray(array[tuple(place)])


def _space(axes: str) -> list[int]:
    return [i for i, axis in enumerate(axes) if axis in "zyx"]


def _axes(path: Path, array: Any) -> str:
    """A letter for each axis. An axis z of length 1 remains; others, such as time, must have this length."""
    tags = array.attrs.get(_AXES)
    named = _USUAL.get(array.ndim, "") if tags is None else "".join(str(one["key"]) for one in json.loads(tags)["axes"])
    spatial = [axis for axis in named if axis in "zyx"]
    others = [named[i] for i in range(min(len(named), array.ndim)) if named[i] not in "zyxc" and array.shape[i] != 1]
    is_known = len(named) == array.ndim and spatial in (["y", "x"], ["z", "y", "x"]) and named.count("c") <= 1
    if not is_known or others or array.size == 0:
        raise MapFileError(
            f"{path}: a map has axes z, y and x, or y and x, and perhaps one of channels (c), but this array has "
            f"{named!r} of lengths {array.shape}. Export it in this order, at one point in time."
        )
    return named


def _check_size(path: Path, array: Any) -> None:
    """Raise for an array that is larger than what is stored can become, or whose voxels are in another file."""
    if array.is_virtual or array.external:
        raise MapFileError(f"{path}: its voxels are in other files, which are not opened. Save them in one file.")
    stored, promised = int(array.id.get_storage_size()), math.prod(array.shape) * array.dtype.itemsize
    if promised > max(_SMALL_BYTES, stored * HIGHEST_RATIO["gzip"]):
        raise MapFileError(
            f"{path}: {stored:,} bytes promise to become {promised:,}, which no map does. It is damaged, or a bomb."
        )


@contextmanager
def _array(path: Path) -> Iterator[Any]:
    """The array of a file. Links to other files are not followed."""
    h5py = optional("h5py", "hdf5", "Reading HDF5")
    try:
        with h5py.File(path, "r", locking=False) as file:
            yield file[_name(path, file, h5py.Dataset)]
    except (MapFileError, MemoryError, PermissionError):
        raise
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        why = str(error)[:300].rstrip(".") or type(error).__name__
        raise MapFileError(f"{path} is damaged, or not an HDF5 file that can be read: {why}.") from None


def _name(path: Path, file: Any, kind: Any) -> str:
    found: list[str] = []

    def look(name: str, one: Any) -> bool | None:
        if isinstance(one, kind) and one.shape:
            found.append(name)
        return True if len(found) > _MOST_ARRAYS else None

    file.visititems(look)
    if _EXPORTED in found:
        return _EXPORTED
    if len(found) != 1:
        shown = f" ({', '.join(found[:_SHOWN])}{' …' if len(found) > _SHOWN else ''})" if found else ""
        raise MapFileError(
            f"{path} holds {len(found)} arrays{shown}, but a map is one array, or one called {_EXPORTED!r}, as ilastik "
            "writes it."
        )
    return found[0]

"""numpy files: ``.npy``, and ``.npz`` with one array. Never unpickled."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import LesionCountError, MapFileError
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.source import MapSource, chosen_channel, planes_per_piece

_BROKEN = (
    ValueError, EOFError, OSError, KeyError, AttributeError, SyntaxError, TypeError, OverflowError, NotImplementedError,
    RuntimeError, zipfile.BadZipFile, zlib.error, tokenize.TokenError, struct.error,
)  # fmt: skip


def open_npy(path: Path, channel: int | None = None) -> MapSource:
    """A ``.npy`` file, read through a memory map."""
    with _explained(path):
        return source_of_array(path, np.load(path, mmap_mode="r", allow_pickle=False), channel, "npy")


def open_npz(path: Path, channel: int | None = None) -> MapSource:
    """A ``.npz`` file that holds one array."""
    return source_of_array(path, load_array(path), channel, "npz")


def load_array(path: Path, name: str | None = None) -> NDArray[Any]:
    """The array of this name in an ``.npz`` file, or its only one."""
    # Opened here, because numpy leaves files open that turn out to be damaged.
    with _explained(path), path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        names = list(archive)
        if name is None and len(names) != 1:
            raise MapFileError(f"{path} holds {len(names)} arrays ({', '.join(names)}), but a map is one array.")
        array: NDArray[Any] = archive[name or names[0]]
        if not isinstance(array, np.ndarray):
            raise MapFileError(f"{path} holds something else than an array.")
        return array


def source_of_array(
    path: Path, array: NDArray[Any], channel: int | None, format_name: str, grid: VoxelGrid | None = None
) -> MapSource:
    """A source of an array that is in memory, or mapped to it; of four axes the first is the channel."""
    if array.ndim not in (2, 3, 4) or array.size == 0:
        raise MapFileError(f"{path}: a map has two or three axes with voxels, but this array's shape is {array.shape}.")
    if array.dtype.kind not in "biuf":
        raise MapFileError(f"{path}: values of type {array.dtype} cannot be probabilities.")
    n_channels = array.shape[0] if array.ndim == 4 else 1
    chosen = chosen_channel(path, n_channels, channel)
    volume = array[chosen] if array.ndim == 4 else array
    axis = volume.ndim - 1 if volume.flags.f_contiguous and not volume.flags.c_contiguous else 0

    def pieces() -> Iterator[NDArray[Any]]:
        n = planes_per_piece(volume.shape, axis, volume.dtype.itemsize)
        for begin in range(0, volume.shape[axis], n):
            yield volume[(slice(None),) * axis + (slice(begin, begin + n),)]

    grid = VoxelGrid(path, volume.shape, why_unplaced="an array has no place in space") if grid is None else grid
    return MapSource(grid, format_name, volume.dtype, axis, pieces, n_channels=n_channels)


def _is_numpy(path: Path) -> bool:
    """Whether a file begins like an array or an archive; numpy takes all others for pickles."""
    with path.open("rb") as file:
        return file.read(4) in (b"\x93NUM", b"PK\x03\x04")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except LesionCountError:
        raise
    except MemoryError:
        raise MapFileError(
            f"{path}: the header promises more than fits into memory. It is damaged, or too large."
        ) from None
    except _BROKEN as error:
        if _is_numpy(path) and any(word in str(error) for word in ("pickle", "Python objects", "Object arrays")):
            raise MapFileError(
                f"{path} holds pickled Python objects, which can run code when they are opened. Save the probabilities "
                "as a plain array."
            ) from None
        raise MapFileError(f"{path} is damaged, or not a numpy file: {error}.") from None

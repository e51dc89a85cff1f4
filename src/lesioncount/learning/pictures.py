"""A picture or a scan in a file → its channels: PNG, JPG, BMP, TIFF and NIfTI, in two dimensions or three."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import CohortError, LesionCountError, MapFileError, ShapeError, reason_of
from lesioncount.files import nifti, tiff
from lesioncount.files.byte_streams import check_regular
from lesioncount.files.formats import open_map
from lesioncount.files.geometry import VoxelGrid, check_same_grid
from lesioncount.learning.plausible import MOST_VOXELS
from lesioncount.optional import optional

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", *tiff.ENDINGS, *nifti.ENDINGS)

_MOST_CHANNELS = 4096


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture in a file, or in one file for each channel. It has not been read yet.

    Attributes
    ----------
    grid : VoxelGrid
        Where its voxels lie, in the order of the file.
    shape : tuple of int
        (y, x) or (z, y, x).
    n_channels : int
    read : callable
        Gives the values as they are stored, an array (channels, *shape) for each file.
    """

    grid: VoxelGrid
    shape: tuple[int, ...]
    n_channels: int
    read: Callable[[], list[NDArray[Any]]]

    def __str__(self) -> str:
        """Its size in words, for messages."""
        size = f"{' × '.join(map(str, self.shape))} {'pixels' if len(self.shape) == 2 else 'voxels'}"
        return f"{channels_in_words(self.n_channels)} of {size}"


def channels_in_words(n: int) -> str:
    """So many channels, for messages."""
    return f"{n} channel{'' if n == 1 else 's'}"


def picture_ending(path: Path) -> str | None:
    """The ending of a path that may be a picture, None for others."""
    name = path.name.lower()
    return next((ending for ending in ENDINGS if name.endswith(ending) and name != ending), None)


def open_picture(paths: Sequence[Path], /, *, labels: bool = False) -> Picture:
    """Open a picture; of several files, which must lie pixel on pixel, the channels follow each other.

    Parameters
    ----------
    paths : sequence of Path
    labels : bool, default False
        Whether values are labels: those of a picture with a palette are then its numbers, and not its colours.
    """
    first, *others = [_open(path, labels=labels) for path in paths]
    for other in others:
        check_lies_on(first.grid, other.grid, "the channel")
    every = [first, *others]
    return Picture(
        first.grid,
        first.shape,
        sum(one.n_channels for one in every),
        lambda: [values for one in every for values in one.read()],
    )


def check_lies_on(grid: VoxelGrid, other: VoxelGrid, what: str) -> None:
    """Raise a `CohortError` unless a channel or a mask lies pixel on pixel with a picture."""
    try:
        check_same_grid(grid, other, what)
    except ShapeError as error:
        raise CohortError(f"{grid.path}: channels and masks must lie pixel on pixel with it. {error}") from None


def _open(path: Path, *, labels: bool) -> Picture:
    ending = picture_ending(path)
    if ending is None:
        raise MapFileError(f"{path} is not a kind of picture that is known. Known are {', '.join(ENDINGS)}.")
    if ending in (*tiff.ENDINGS, *nifti.ENDINGS):
        found = _volume(path, is_reversed=ending in nifti.ENDINGS, labels=labels)
    else:
        found = _photograph(path, labels=labels)
    if not 1 <= found.n_channels <= _MOST_CHANNELS or found.n_channels * math.prod(found.shape) > MOST_VOXELS:
        raise CohortError(f"{path} is too large to learn from: {found}. Make it smaller, or cut it into pieces.")
    return found


def _volume(path: Path, *, is_reversed: bool, labels: bool) -> Picture:
    """A file as maps are read; axes of NIfTI are x, y and z. In masks, NaN is outside."""
    first = open_map(path, channel=0)

    def read() -> list[NDArray[Any]]:
        maps = [first, *(open_map(path, channel=i) for i in range(1, first.n_channels))]
        channels = np.stack([one.values() for one in maps])
        if channels.dtype.kind == "f" and not labels and not np.isfinite(channels).all():
            raise CohortError(f"{path} has values that are not finite.")
        return [np.moveaxis(channels.T, -1, 0) if is_reversed else channels]

    return Picture(first.grid, first.shape[::-1] if is_reversed else first.shape, first.n_channels, read)


# Of EXIF: how a camera was held. From 5 on, height and width are swapped.
_ORIENTATION, _FIRST_SIDEWAYS = 0x0112, 5


def _photograph(path: Path, *, labels: bool) -> Picture:
    """A picture of pixels, turned as its camera says; transparency is left out."""

    def read() -> list[NDArray[Any]]:
        with _explained(path), _pillow().open(path) as picture:
            turned = optional("PIL.ImageOps", "train", "Reading pictures").exif_transpose(picture)
            if picture.mode == "P" and labels:
                return [np.asarray(turned)[None]]
            if picture.mode in ("P", "CMYK", "YCbCr", "HSV", "LAB", "PA"):
                turned = turned.convert("RGB")
            values = np.asarray(turned)
            values = values[None] if values.ndim == 2 else values.transpose(2, 0, 1)
            return [np.ascontiguousarray(values[: _n_colours(picture)])]

    with _explained(path), _pillow().open(path) as picture:
        sideways = picture.getexif().get(_ORIENTATION, 1) >= _FIRST_SIDEWAYS
        shape = picture.size if sideways else picture.size[::-1]
        n_channels = 1 if picture.mode == "P" and labels else _n_colours(picture)
    return Picture(VoxelGrid(path, shape), shape, n_channels, read)


def _n_colours(picture: Any) -> int:
    """The number of channels, without transparency. Those of palettes and of print are red, green and blue."""
    return 1 if picture.mode[0] in "1LIF" and picture.mode != "LAB" else 3


def _pillow() -> Any:
    return optional("PIL.Image", "train", "Reading pictures")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    check_regular(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries, about files that they read nevertheless
            yield
    except (LesionCountError, ImportError):
        raise
    except MemoryError:
        raise MapFileError(f"{path} does not fit into memory. It is damaged, or too large.") from None
    except Exception as error:  # noqa: BLE001 - of a damaged file, the libraries raise all kinds of errors
        raise MapFileError(f"{path} cannot be read as a picture: {reason_of(error)}.") from None


def resized(images: NDArray[np.float32], shape: tuple[int, ...], *, smooth: bool) -> NDArray[np.float32]:
    """Channels at another size; a mask, which is not smooth, keeps its values.

    Made smaller, each new voxel is the mean over its place in the old picture; made larger, they are interpolated.
    """
    import torch
    from torch.nn import functional

    if images.shape[1:] == shape:
        return images
    given = torch.from_numpy(np.ascontiguousarray(images, dtype=np.float32))[None]
    if not smooth:
        changed = functional.interpolate(given, size=shape, mode="nearest-exact")
    elif all(new <= old for new, old in zip(shape, images.shape[1:], strict=True)):
        changed = functional.interpolate(given, size=shape, mode="area")
    else:
        mode = "bilinear" if len(shape) == 2 else "trilinear"
        changed = functional.interpolate(given, size=shape, mode=mode, align_corners=False)
    return np.asarray(changed[0].numpy(), dtype=np.float32)

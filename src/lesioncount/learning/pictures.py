"""A picture or a scan in a file → its channels: PNG, JPG, TIFF and NIfTI, in two dimensions or three."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import CohortError, LesionCountError, MapFileError, reason_of
from lesioncount.files.byte_streams import check_regular
from lesioncount.files.formats import open_map
from lesioncount.files.nifti import ENDINGS as NIFTI
from lesioncount.learning.plausible import MOST_VOXELS
from lesioncount.optional import optional

_PILLOW, _TIFF = (".png", ".jpg", ".jpeg", ".bmp"), (".tif", ".tiff")
ENDINGS = (*_PILLOW, *_TIFF, *NIFTI)

# Axes of a TIFF file: of space, of channels (S: red, green and blue), and of pages that nobody has named, which are
# planes.
_SPACE, _CHANNELS, _PAGES = "ZYX", "CS", "QI"

_MOST_CHANNELS = 4096


@dataclass(frozen=True, eq=False)
class Picture:
    """The voxels of a file.

    Attributes
    ----------
    values : ndarray, shape (channels, y, x) or (channels, z, y, x)
        As they are stored.
    affine : ndarray, shape (4, 4), or None
        Of a NIfTI file: from voxel index in its own order, (x, y, z), to millimetres.
    spacing_mm : tuple of float, or None
        Of a NIfTI file: voxel size along x, y and z.
    """

    values: NDArray[Any]
    affine: NDArray[np.float64] | None = None
    spacing_mm: tuple[float, ...] | None = None


@dataclass(frozen=True)
class PictureSize:
    """What the head of a file says.

    Attributes
    ----------
    n_channels : int
    shape : tuple of int
        (y, x) or (z, y, x).
    """

    n_channels: int
    shape: tuple[int, ...]

    def __str__(self) -> str:
        """In words, for messages."""
        channels = f"{self.n_channels} channel{'' if self.n_channels == 1 else 's'}"
        return f"{channels} of {' × '.join(map(str, self.shape))} {'pixels' if len(self.shape) == 2 else 'voxels'}"


def picture_ending(path: Path) -> str | None:
    """The ending of a path that may be a picture, None for others."""
    name = path.name.lower()
    return next((ending for ending in ENDINGS if name.endswith(ending) and name != ending), None)


def is_nifti(path: Path) -> bool:
    """Whether a file is called like a NIfTI file."""
    return picture_ending(path) in NIFTI


def picture_size(path: Path) -> PictureSize:
    """Number of channels and size of a picture, without its voxels."""
    with _explained(path):
        size = _size(path, picture_ending(path))
    if not 1 <= size.n_channels <= _MOST_CHANNELS or size.n_channels * math.prod(size.shape) > MOST_VOXELS:
        raise CohortError(f"{path} is too large to learn from: {size}. Make it smaller, or cut it into pieces.")
    return size


def read_picture(path: Path, /, *, labels: bool = False) -> Picture:
    """The voxels of a picture. Turned as its camera says; transparency is left out.

    Parameters
    ----------
    path : Path
    labels : bool, default False
        Whether values are labels: those of a picture with a palette are then its numbers, and not its colours.
    """
    picture_size(path)
    with _explained(path):
        ending = picture_ending(path)
        if ending in NIFTI:
            return _read_nifti(path)
        return Picture(_read_tiff(path) if ending in _TIFF else _read_pillow(path, labels=labels))


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


def _size(path: Path, ending: str | None) -> PictureSize:
    if ending is None:
        raise MapFileError(f"{path} is not a kind of picture that is known. Known are {', '.join(ENDINGS)}.")
    if ending in NIFTI:
        source = open_map(path, channel=0)
        return PictureSize(source.n_channels, source.shape[::-1])
    if ending in _TIFF:
        with _tifffile().TiffFile(path) as file:
            series = file.series[0]
            sizes = dict(zip(_tiff_axes(path, series), series.shape, strict=True))
        shape = tuple(int(sizes[axis]) for axis in _SPACE if axis in sizes)
        return PictureSize(math.prod(int(sizes[axis]) for axis in _CHANNELS if axis in sizes), shape)
    with _pillow().open(path) as picture:
        sideways = picture.getexif().get(_ORIENTATION, 1) >= _FIRST_SIDEWAYS
        width, height = reversed(picture.size) if sideways else picture.size
        return PictureSize(len(_bands(picture)), (height, width))


def _read_nifti(path: Path) -> Picture:
    first = open_map(path, channel=0)
    channels = [open_map(path, channel=i).values().T for i in range(first.n_channels)]
    return Picture(np.stack(channels), first.affine, first.spacing_mm)


def _read_tiff(path: Path) -> NDArray[Any]:
    with _tifffile().TiffFile(path) as file:
        series = file.series[0]
        axes, values = _tiff_axes(path, series), np.asarray(series.asarray())
    if values.dtype.kind not in "biuf":
        raise MapFileError(f"{path}: values of type {values.dtype} are no picture.")
    order = [axes.index(axis) for axis in (*_CHANNELS, *_SPACE) if axis in axes]
    values = values.transpose(order)
    n_space = sum(axis in _SPACE for axis in axes)
    return values.reshape(-1, *values.shape[values.ndim - n_space :])


def _tiff_axes(path: Path, series: Any) -> str:
    """The axes of a TIFF file, where pages that follow each other are planes."""
    axes = "".join("Z" if axis in _PAGES and "Z" not in series.axes else axis for axis in series.axes)
    known = set(axes) <= {*_SPACE, *_CHANNELS} and {"Y", "X"} <= set(axes) and len(set(axes)) == len(axes)
    if not known:
        raise MapFileError(
            f"{path}: expected planes, height, width and channels, but its axes are {series.axes} of "
            f"{tuple(series.shape)}. Save one picture, or one stack, per file."
        )
    return axes


# Of EXIF: how a camera was held. From 5 on, height and width are swapped.
_ORIENTATION, _FIRST_SIDEWAYS = 0x0112, 5


def _read_pillow(path: Path, *, labels: bool) -> NDArray[Any]:
    pillow: Any = _pillow()
    with pillow.open(path) as picture:
        bands = _bands(picture)
        turned = optional("PIL.ImageOps", "train", "Reading pictures").exif_transpose(picture)
        if picture.mode == "P" and labels:
            return np.asarray(turned)[None]
        if picture.mode in ("P", "CMYK", "YCbCr", "HSV", "LAB", "PA"):
            turned = turned.convert("RGB")
        values = np.asarray(turned)
    values = values[None] if values.ndim == 2 else values.transpose(2, 0, 1)
    return np.ascontiguousarray(values[: len(bands)])


def _bands(picture: Any) -> str:
    """The channels, without transparency. Those of palettes and of print are red, green and blue."""
    return {"1": "L", "L": "L", "LA": "L", "La": "L"}.get(picture.mode, "L" if picture.mode[0] in "IF" else "RGB")


def _pillow() -> Any:
    return optional("PIL.Image", "train", "Reading pictures")


def _tifffile() -> Any:
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # of a damaged file, our message says enough
    return optional("tifffile", "tiff", "Reading TIFF")


def as_unit(values: NDArray[Any]) -> NDArray[np.float32]:
    """Values as numbers: those of bytes and 16 bits from 0 to 1, others as they are."""
    if values.dtype.kind == "u" and values.dtype.itemsize <= 2:
        return (values / np.float32(np.iinfo(values.dtype).max)).astype(np.float32)
    return values.astype(np.float32)


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

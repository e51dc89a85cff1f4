"""TIFF stacks, ImageJ's and OME-TIFF with their voxel size, through tifffile: page by page, none of which is kept."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapFileError
from lesioncount.files.byte_streams import HIGHEST_RATIO, inflated_size
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.source import MapSource, chosen_channel
from lesioncount.files.stored import StoredVoxels
from lesioncount.files.tiff_header import MOST_PLANES, count_directories, voxel_size_mm
from lesioncount.optional import how_to_install, optional

ENDINGS = (".ome.tif", ".ome.tiff", ".tif", ".tiff")

# How far the codes of TIFF can expand: raw, LZW (strings of 4096 bytes for 12 bits), deflate by two codes, PackBits.
_RATIOS = {1: 1, 5: 2731, 8: HIGHEST_RATIO["gzip"], 32946: HIGHEST_RATIO["gzip"], 32773: 64}
_DEFLATE = (8, 32946)

# Of other codes, such as Zstandard: higher than what maps reach, unless they are all zeros.
_OTHER_RATIO = 30_000

# A compressed strip is not much longer than what it holds; and what may become more than this is inflated to be sure.
_SLACK, _MOST_INFLATED = 1 << 12, 1 << 28

# One value for each voxel, 0 being the lowest: not a palette of colours, and not black for 1.
_MIN_IS_WHITE, _PALETTE = 0, 3

# What is the same for all planes of an image.
_ALIKE = (
    "shape", "dtype", "axes", "bitspersample", "compression", "predictor", "fillorder", "photometric", "planarconfig",
    "chunks",
)  # fmt: skip


@dataclass(frozen=True)
class _Layout:
    """Which axes of a file are those of space, and which one is that of channels."""

    shape: tuple[int, ...]
    space: tuple[int, ...]
    channel: int | None

    @classmethod
    def of(cls, path: Path, axes: str, shape: tuple[int, ...]) -> _Layout:
        """The layout of a series, whose axes have letters: Z, Y, X, C(hannel), S(ample), T(ime); Q and I are any."""
        if min(shape, default=0) < 1:
            raise MapFileError(f"{path}: a map has axes with voxels, but this file's shape is {shape}.")
        used = [i for i, n in enumerate(shape) if n != 1 or axes[i] in "YX"]
        plane = [i for i in used if axes[i] in "YX"]
        others = [i for i in used if i not in plane]
        depth = [i for i in others if axes[i] == "Z"] or [i for i in others if axes[i] in "QI"][-1:]
        rest = [i for i in others if i not in depth]
        if len(plane) != 2 or len(depth) > 1 or len(rest) > 1 or [axes[i] for i in plane] != ["Y", "X"]:
            raise MapFileError(
                f"{path}: a map has axes Z, Y and X, or Y and X, and perhaps one of channels, but this file has "
                f"{axes} of lengths {shape}. Save the map in a file of its own."
            )
        return cls(shape, tuple(sorted((*depth, *plane))), rest[0] if rest else None)

    @property
    def spatial_shape(self) -> tuple[int, ...]:
        return tuple(self.shape[i] for i in self.space)

    @property
    def n_channels(self) -> int:
        return 1 if self.channel is None else self.shape[self.channel]


def open_tiff(path: Path, channel: int | None = None) -> MapSource:
    """A TIFF file that holds one image: a plane, or a stack of planes, of one channel or several."""
    with _series(path) as series:
        page = series.keyframe
        layout = _Layout.of(path, series.axes, tuple(map(int, series.shape)))
        dtype = np.dtype(series.dtype).newbyteorder(series.parent.byteorder if series.dataoffset is not None else "=")
        if dtype.kind not in "biuf":
            raise MapFileError(f"{path}: values of type {dtype} cannot be probabilities.")
        if not isinstance(page.photometric, int):
            raise MapFileError(f"{path} is damaged: what its numbers stand for is {page.photometric!r}.")
        if page.photometric in (_MIN_IS_WHITE, _PALETTE) and dtype.kind != "b":  # masks are saved either way
            raise MapFileError(f"{path}: its numbers stand for colours or have white as 0, and are no probabilities.")
        size = voxel_size_mm(series, len(layout.space))
        is_raw, start, bits = series.dataoffset is not None, series.dataoffset, int(page.bitspersample)
        _check_alike(path, series)
        if not is_raw:
            _check_planes(path, series)
    grid = VoxelGrid(path, layout.spatial_shape, None, size, "a TIFF does not say where its voxels lie")
    whole = {"u": (1 << bits) - 1, "i": (1 << (bits - 1)) - 1}.get(dtype.kind)
    if is_raw:
        kept = [i for i, n in enumerate(layout.shape) if i in layout.space or i == layout.channel]
        fastest_first = tuple(layout.shape[i] for i in reversed(kept))
        channels = None if layout.channel is None else len(kept) - 1 - kept.index(layout.channel)
        voxels = StoredVoxels(path, dtype, fastest_first, channels, int(start))
        voxels.check()
        return voxels.source(grid, "TIFF", channel, in_c_order=True, full_scale=whole)
    chosen = chosen_channel(path, layout.n_channels, channel)
    pieces = partial(_planes, path, layout, chosen)
    return MapSource(grid, "TIFF", dtype, 0, pieces, n_channels=layout.n_channels, full_scale=whole)


def _planes(path: Path, layout: _Layout, channel: int) -> Iterator[NDArray[Any]]:
    """A plane after the other, each decoded when it is asked for."""
    with _series(path) as series:
        n_leading = len(layout.shape) - len(series.keyframe.shape)
        leading = layout.shape[:n_leading]
        for place in np.ndindex(leading):
            if layout.channel is not None and layout.channel < n_leading and place[layout.channel] != channel:
                continue
            page = series.pages[int(np.ravel_multi_index(place, leading)) if leading else 0]
            # Not squeezed: axes of length 1 are those of the series.
            plane = page.asarray(squeeze=False, maxworkers=1).reshape(series.keyframe.shape)
            if layout.channel is not None and layout.channel >= n_leading:
                plane = np.take(plane, channel, axis=layout.channel - n_leading)
            flat = plane.reshape([n for i, n in enumerate(layout.shape) if i in layout.space and i >= n_leading])
            yield flat[None] if len(layout.space) == 3 else flat


def _check_alike(path: Path, series: Any) -> None:
    """Raise unless planes are stored alike: tifffile reads all as it reads the first, and takes it that they follow."""
    first, start = series.keyframe, series.dataoffset
    n_planes = math.prod(series.shape[: len(series.shape) - len(first.shape)])
    if n_planes > min(MOST_PLANES, path.stat().st_size):
        raise MapFileError(f"{path}: {n_planes:,} planes are more than the file can hold. It is damaged.")
    if len(series.pages) not in (1, n_planes):
        raise MapFileError(f"{path}: {len(series.pages)} planes do not make an image of shape {tuple(series.shape)}.")
    for number, plane in enumerate(series.pages):
        if plane is None:
            raise MapFileError(f"{path}: plane {number} of {n_planes} is missing. It is in another file, or damaged.")
        own = plane.aspage()
        if any(getattr(own, name) != getattr(first, name) for name in _ALIKE):
            raise MapFileError(f"{path}: plane {number} is stored in another way than the first. It is damaged.")
        if start is not None and tuple(own.dataoffsets)[:1] != (start + number * first.nbytes,):
            raise MapFileError(f"{path}: plane {number} does not follow the one before it. It is damaged.")


def _check_planes(path: Path, series: Any) -> None:
    """Raise unless planes can hold what they promise, before room is made for one of them."""
    size, page = path.stat().st_size, series.keyframe
    if len(page.axes) not in (2, 3) or "Z" in page.axes or series.axes[-len(page.axes) :] != page.axes:
        raise MapFileError(f"{path}: its pages are no planes, but have axes {page.axes}.")
    n_segments, segment = math.prod(page.chunked), math.prod(page.chunks) * page.dtype.itemsize
    promised = n_segments * segment if page.is_tiled else page.nbytes  # tiles may reach beyond the plane
    promised = promised * int(page.bitspersample) // (8 * page.dtype.itemsize)  # of masks, eight to a byte
    ratio = _RATIOS.get(int(page.compression), _OTHER_RATIO)
    with path.open("rb") as file:
        for number, plane in enumerate(series.pages):
            counts, starts = tuple(plane.databytecounts), tuple(plane.dataoffsets)
            if (
                len(counts) != n_segments
                or len(starts) != n_segments
                or min(*counts, *starts) < 1
                or max(start + n for start, n in zip(starts, counts, strict=True)) > size
            ):
                raise MapFileError(f"{path} is truncated, or damaged: part of plane {number} is not in the file.")
            if promised > sum(counts) * ratio or max(counts) > 2 * segment + _SLACK:
                raise MapFileError(
                    f"{path}: plane {number} promises {promised:,} bytes, which {sum(counts):,} bytes cannot be. It is "
                    "damaged."
                )
            if int(page.compression) in _DEFLATE:
                _check_inflated(path, file, plane, segment)


def _check_inflated(path: Path, file: IO[bytes], plane: Any, segment: int) -> None:
    """Raise for a strip that becomes far more than it should, which is known only by inflating it."""
    for start, n in zip(plane.dataoffsets, plane.databytecounts, strict=True):
        if n * HIGHEST_RATIO["gzip"] <= _MOST_INFLATED:
            continue
        file.seek(start)
        if inflated_size(file, n, segment + _SLACK) > segment + _SLACK:
            raise MapFileError(f"{path}: a strip becomes more than {segment:,} bytes. It is damaged, or a bomb.")


@contextmanager
def _series(path: Path) -> Iterator[Any]:
    """The image in a file. What other files it names are not opened."""
    tifffile = optional("tifffile", "tiff", "Reading TIFF")
    n_directories = count_directories(path)
    with _explained(path), _silent(), tifffile.TiffFile(path, _multifile=False) as file:
        is_ome = "openmicroscopy.org" in (file.pages.first.description or "")
        series = file.series
        if is_ome and (not series or series[0].kind != "ome"):
            raise MapFileError(f"{path}: its description as OME-XML cannot be understood. It is damaged.")
        if len(series) != 1:
            shapes = ", ".join(str(tuple(one.shape)) for one in series[:5])
            raise MapFileError(
                f"{path} holds {len(series)} images, of shapes {shapes}. Save that of the probabilities in a file of "
                "its own."
            )
        shape, plane = tuple(series[0].shape), series[0].keyframe.shape
        if n_directories > math.prod(shape[: len(shape) - len(plane)]):
            raise MapFileError(
                f"{path} has {n_directories} planes, but its image, of shape {shape}, has fewer. It is damaged, or the "
                "others are copies of it; save the image alone."
            )
        yield series[0]


@contextmanager
def _silent() -> Iterator[None]:
    """Without what tifffile writes to the log about damaged files: it is said by an error, or does not matter."""
    logger = logging.getLogger("tifffile")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (MapFileError, MemoryError, ImportError, PermissionError):
        raise
    except Exception as error:  # noqa: BLE001 - incomplete files fail in many ways
        why = str(error)[:300].rstrip(".") or type(error).__name__
        if "imagecodecs" in why:
            why = f"it is compressed in a way that needs the package imagecodecs: {how_to_install('tiff')} ({why})"
        raise MapFileError(f"{path} is damaged, or not a TIFF file that can be read: {why}.") from None

"""PNG pictures as 2-D maps, through Pillow. Whole numbers: the scale must be given."""

from __future__ import annotations

import struct
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapFileError
from lesioncount.files.byte_streams import check_promise, explained
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.source import MapSource, chosen_channel, planes_of
from lesioncount.optional import optional

ENDINGS = (".png",)

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_READ_AT_ONCE = 1 << 18

# Numbers for each pixel, by the kind of colour; a palette has none that could be probabilities.
_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}


class _Header(NamedTuple):
    width: int
    height: int
    depth: int
    colour: int


def open_png(path: Path, channel: int | None = None) -> MapSource:
    """A picture: in shades of grey, or one of its colours as channel."""
    header = _header(path)
    if header.colour not in _CHANNELS:
        raise MapFileError(
            f"{path} is a picture with a palette of colours, which are no probabilities. Save it as grey."
        )
    n_channels = _CHANNELS[header.colour]
    if header.depth == 16 and n_channels > 1:
        raise MapFileError(
            f"{path} has {n_channels} channels of 16 bits, of which one is the map. Save it alone, as grey."
        )
    check_promise(path, header.width * header.height * n_channels * header.depth // 8, encoding="zlib")
    _check_sums(path)
    chosen = chosen_channel(path, n_channels, channel)
    dtype = np.dtype({1: np.bool_, 16: np.uint16}.get(header.depth, np.uint8))

    def pieces() -> Iterator[NDArray[Any]]:
        pixels = _pixels(path, dtype, (header.height, header.width))
        return planes_of(pixels[..., chosen] if n_channels > 1 else pixels)

    grid = VoxelGrid(path, (header.height, header.width), why_unplaced="a picture has no place in space")
    # Shades of 2 and 4 bits are read as those of 8.
    whole = None if dtype.kind == "b" else (1 << 8 * dtype.itemsize) - 1
    return MapSource(grid, "PNG", dtype, 0, pieces, n_channels=n_channels, full_scale=whole)


def _header(path: Path) -> _Header:
    with path.open("rb") as file:
        head = file.read(33)
    if len(head) < 33 or head[:8] != _SIGNATURE or head[12:16] != b"IHDR":
        raise MapFileError(f"{path} is damaged, or not a PNG file: it does not begin like one.")
    header = _Header(*struct.unpack(">IIBB", head[16:26]))
    if min(header[:2]) < 1:
        raise MapFileError(
            f"{path}: a picture of {header.width} by {header.height} pixels shows nothing. It is damaged."
        )
    return header


def _check_sums(path: Path) -> None:
    """Raise unless the check sum of every part is right: not all of them are compared when a picture is decoded."""
    with path.open("rb") as file:
        file.seek(len(_SIGNATURE))
        kind = b""
        while kind != b"IEND":
            head = file.read(8)
            if len(head) < 8:
                raise MapFileError(f"{path} is truncated: it ends before the picture does.")
            left, kind = struct.unpack(">I", head[:4])[0], head[4:]
            total = zlib.crc32(kind)
            while left and (block := file.read(min(left, _READ_AT_ONCE))):
                total, left = zlib.crc32(block, total), left - len(block)
            if left or file.read(4) != struct.pack(">I", total):
                raise MapFileError(f"{path} is damaged or truncated: a check sum is not that of its content.")


def _pixels(path: Path, dtype: np.dtype[Any], shape: tuple[int, int]) -> NDArray[Any]:
    pillow = optional("PIL.Image", "tiff", "Reading PNG")
    with explained(path, "is damaged, or not a PNG file"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of large pictures: this one holds what it promises
        try:
            with pillow.open(path, formats=("PNG",)) as image:
                pixels = np.asarray(image).astype(dtype, copy=False)
        except pillow.DecompressionBombError:
            raise MapFileError(
                f"{path}: {shape[0]} by {shape[1]} pixels are too many for a PNG. Save it as TIFF."
            ) from None
    if pixels.shape[:2] != shape:
        raise MapFileError(f"{path} is damaged: its header says {shape}, but it holds {pixels.shape[:2]}.")
    return pixels

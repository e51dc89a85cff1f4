"""Pixels → the address of a picture that holds them, as pages take it."""

from __future__ import annotations

import base64
import struct
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.optional import optional

# A picture with more pixels is finer than its place on the page.
_MOST_PIXELS = 512

# Of isal: a map is mostly one shade, which the quickest way packs well.
_PACKING = 1

# Colours of a map: no eye tells more apart, and faint noise, which does not pack, becomes one of them.
SHADES = 32

# Photographs of slices look the same from here on, at a quarter of the bytes of PNG.
_JPEG_QUALITY = 80

# In a PNG: eight bits, and whether they are shades of grey or places in a palette.
_BITS, _IN_PALETTE = 8, 3


def address_of(pixels: NDArray[np.uint8], palette: bytes | None) -> str:
    """The address of a picture: of a map in colours, without loss; of an image in grey, as a photograph.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (rows, columns)
    palette : bytes or None
        Red, green and blue of `SHADES` shades.
    """
    # A step of whole pixels: the outline is drawn apart, in voxels.
    step = -(-max(pixels.shape) // _MOST_PIXELS)
    pixels = np.ascontiguousarray(pixels[::step, ::step])
    kind, data = ("jpeg", _jpeg(pixels)) if palette is None else ("png", _png(pixels, palette))
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def _jpeg(pixels: NDArray[np.uint8]) -> bytes:
    file = BytesIO()
    image: Any = optional("PIL.Image", "report", "Writing the report").fromarray(pixels)
    image.save(file, format="JPEG", quality=_JPEG_QUALITY)
    return file.getvalue()


def _png(pixels: NDArray[np.uint8], palette: bytes) -> bytes:
    """A picture in a palette; packed by isal, which takes a tenth of the time of other writers."""
    from isal import isal_zlib

    height, width = pixels.shape
    lines = np.zeros((height, width + 1), np.uint8)  # each begins with its filter: none
    np.floor_divide(pixels, 256 // SHADES, out=lines[:, 1:])
    header = struct.pack(">2I5B", width, height, _BITS, _IN_PALETTE, 0, 0, 0)
    packed = isal_zlib.compress(lines.tobytes(), level=_PACKING)
    chunks = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", packed), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", isal_zlib.crc32(name + data))
        for name, data in chunks
    )

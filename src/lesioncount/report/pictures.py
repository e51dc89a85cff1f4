"""Planes through candidates → drawings on the page: pixels, outlines, the peak, the bridge, and which side is which."""

from __future__ import annotations

import base64
import html
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.optional import optional

# A picture with more pixels is finer than its place on the page.
_MOST_PIXELS = 512

# Of zlib: a map is mostly one shade, which the quickest way packs well.
_PACKING = 1

# Colours of a map: no eye tells more apart, and faint noise, which does not pack, becomes one of them.
SHADES = 32

# Photographs of slices look the same from here on, at a quarter of the bytes of PNG.
_JPEG_QUALITY = 80

# In a PNG: eight bits, and whether they are shades of grey or places in a palette.
_BITS, _IN_PALETTE = 8, 3

# In hundredths of the width of all planes of a candidate: arms and gap of the cross, radius of the ring.
_ARM, _GAP, _RADIUS = 3.4, 1.4, 1.3


@dataclass(frozen=True)
class Plane:
    """One picture: pixels, the outline of the candidate, its peak, and where it touches its neighbours.

    Attributes
    ----------
    name : str
    width_mm, height_mm : float
    n_columns, n_rows : int
    picture : str
        The pixels, as an address that holds them.
    outline : str
        SVG path around the candidate, in pixels.
    neighbours : str
        SVG path around the other candidates.
    peak : tuple of float
        Column and row of the middle of the peak voxel, in pixels.
    bridge : tuple of float, or None
        The same of the voxel at which it joins a higher peak, if there is one.
    is_bridge_here : bool
        Whether that voxel is in this plane, or in front of it or behind.
    letters : tuple of str, or None
        What lies to the left, to the right, at the top and at the bottom; None when the map does not say.
    near : tuple of float, or None
        Left, top, width and height of the close-up, in mm; None where the picture is one already.
    """

    name: str
    width_mm: float
    height_mm: float
    n_columns: int
    n_rows: int
    picture: str
    outline: str
    neighbours: str
    peak: tuple[float, float]
    bridge: tuple[float, float] | None
    is_bridge_here: bool
    letters: tuple[str, str, str, str] | None
    near: tuple[float, float, float, float] | None = None


def picture(plane: Plane, what: str, planes: Sequence[Plane]) -> str:
    """One of the planes of a candidate, as an element of the page.

    Parameters
    ----------
    plane : Plane
    what : str
        What it shows, for those who do not see it: "Candidate 3", say.
    planes : sequence of Plane
        All of them: they are drawn to one scale.
    """
    w, h = plane.width_mm, plane.height_mm
    sx, sy = w / plane.n_columns, h / plane.n_rows
    far = f"0 0 {w:.5g} {h:.5g}"
    near = "" if plane.near is None else f' data-far="{far}" data-near="{" ".join(f"{one:.5g}" for one in plane.near)}"'
    scale = f'transform="scale({sx:.6g} {sy:.6g})"'
    unit = sum(one.width_mm for one in planes) / 100
    neighbours = f'<path class="neighbours" {scale} d="{plane.neighbours}"/>' if plane.neighbours else ""
    return (
        f'<svg viewBox="{far}"{near} role="img" aria-label="{html.escape(what)}, plane {plane.name} through its peak">'
        f'<image href="{plane.picture}" width="{w:.5g}" height="{h:.5g}" preserveAspectRatio="none"/>'
        f'{neighbours}<path {scale} d="{plane.outline}"/>'
        f"{_bridge(plane, sx, sy, unit)}{_cross(plane.peak[0] * sx, plane.peak[1] * sy, unit)}</svg>{_letters(plane)}"
    )


def _cross(x: float, y: float, unit: float) -> str:
    arm, gap = _ARM * unit, _GAP * unit
    d = (
        f"M{x - arm:.5g} {y:.5g}H{x - gap:.5g}M{x + gap:.5g} {y:.5g}H{x + arm:.5g}"
        f"M{x:.5g} {y - arm:.5g}V{y - gap:.5g}M{x:.5g} {y + gap:.5g}V{y + arm:.5g}"
    )
    return f'<path class="halo" d="{d}"/><path class="cross" d="{d}"/>'


def _bridge(plane: Plane, sx: float, sy: float, unit: float) -> str:
    if plane.bridge is None:
        return ""
    place = f'cx="{plane.bridge[0] * sx:.5g}" cy="{plane.bridge[1] * sy:.5g}" r="{_RADIUS * unit:.4g}"'
    kind = "" if plane.is_bridge_here else ' class="elsewhere"'
    return f'<circle class="halo" {place}/><circle{kind} {place}/>'


def _letters(plane: Plane) -> str:
    """Over the picture, not in it: a close-up has them, too."""
    if plane.letters is None:
        return ""
    return f'<span class="ends" aria-hidden="true">{"".join(f"<i>{letter}</i>" for letter in plane.letters)}</span>'


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
    """A picture in a palette. The same pixels are the same bytes: isal, twice as fast, has packed some in two ways."""
    height, width = pixels.shape
    lines = np.zeros((height, width + 1), np.uint8)  # each begins with its filter: none
    np.floor_divide(pixels, 256 // SHADES, out=lines[:, 1:])
    header = struct.pack(">2I5B", width, height, _BITS, _IN_PALETTE, 0, 0, 0)
    packed = zlib.compress(lines.tobytes(), _PACKING)
    chunks = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", packed), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def outline(labels: NDArray[Any]) -> str:
    """The edges between pixels of different labels, as an SVG path in pixels; outside, all are 0.

    Examples
    --------
    >>> import numpy as np
    >>> outline(np.array([[False, True, True]]))
    'M1 0h2M1 1h2M1 0v1M3 0v1'
    """
    rows = np.flatnonzero(labels.any(axis=1))
    if rows.size == 0:
        return ""
    # Around the part that has some: most of a whole slice has none.
    top, inner = int(rows[0]), labels[rows[0] : rows[-1] + 1]
    columns = np.flatnonzero(inner.any(axis=0))
    left, inner = int(columns[0]), inner[:, columns[0] : columns[-1] + 1]
    padded = np.zeros((inner.shape[0] + 2, inner.shape[1] + 2), inner.dtype)
    padded[1:-1, 1:-1] = inner
    horizontal = _runs(padded[1:, 1:-1] != padded[:-1, 1:-1])
    vertical = _runs((padded[1:-1, 1:] != padded[1:-1, :-1]).T)
    return "".join(
        [f"M{start + left} {row + top}h{n}" for row, start, n in horizontal]
        + [f"M{row + left} {start + top}v{n}" for row, start, n in vertical]
    )


def _runs(edges: NDArray[np.bool_]) -> list[tuple[int, int, int]]:
    """Row, first column and length of the runs of True."""
    padded = np.zeros((edges.shape[0], edges.shape[1] + 2), np.int8)
    padded[:, 1:-1] = edges
    steps = padded[:, 1:] - padded[:, :-1]
    rows, starts = np.nonzero(steps == 1)
    stops = np.nonzero(steps == -1)[1]
    return list(zip(rows.tolist(), starts.tolist(), (stops - starts).tolist(), strict=True))

"""Small valid TIFF and PNG files, and each with a change that its format gives meaning to."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzzing.damage import damaged, packed_edge
from fuzzing.odd_text import odd_text

Rng = np.random.Generator
Plan = dict[str, Any]

_KINDS = ("<f4", "<f4", "<f8", "<f2", "<u1", "<u2")
_COMPRESSIONS = (None, None, "zlib", "lzw", "packbits", "zstd", "lzma")


def _values(rng: Rng, ndim: int) -> tuple[NDArray[Any], float | None]:
    """A map, and the scale that its numbers need."""
    values = rng.random(tuple(int(n) for n in rng.integers(2, 12, ndim))) ** 6
    kind = np.dtype(_KINDS[int(rng.integers(len(_KINDS)))])
    if kind.kind == "f":
        return values.astype(kind), None
    most = np.iinfo(kind).max
    return np.round(values * most).astype(kind), 1 / most


def make_tiff(rng: Rng, _: Path, folder: Path) -> Plan:
    """Stacks as tifffile, ImageJ and OME write them: entries of the directory, the description, or any bytes."""
    import tifffile

    values, scale = _values(rng, 2 if rng.random() < 0.2 else 3)
    has_channels = values.ndim == 3 and rng.random() < 0.15
    if has_channels:
        values = np.stack([values, values[::-1]])
    axes = "CZYX"[4 - values.ndim :]
    kind, name = _kind(rng, axes)
    if values.dtype.itemsize == 2 and values.dtype.kind == "f":
        kind.pop("ome", None)  # which does not have it
    if kind.get("imagej") and (values.dtype.str not in ("<f4", "|u1", "<u2") or has_channels):
        kind = {}
    compression = _COMPRESSIONS[int(rng.integers(len(_COMPRESSIONS)))]
    if compression and not kind.get("imagej"):
        kind |= {"compression": compression, "predictor": bool(compression != "packbits" and rng.random() < 0.4)}
    if rng.random() < 0.2 and not kind.get("imagej"):
        kind["tile"] = (16, 16)
    stream = io.BytesIO()
    order = "<>"[int(rng.integers(2))]
    tifffile.imwrite(stream, values, photometric="minisblack", byteorder=order, **kind)
    content, roll = stream.getvalue(), rng.random()
    if roll < 0.55:
        for _ in range(int(rng.integers(1, 3))):
            content = _odd_entry(rng, content, order)
    elif roll < 0.7:
        content = _odd_description(rng, content)
    elif roll < 0.95:
        content = damaged(rng, content)
    (folder / name).write_bytes(content)
    channel = int(rng.integers(2)) if has_channels or rng.random() < 0.05 else None
    return {"path": name, "channel": channel, "scale": scale}


def _kind(rng: Rng, axes: str) -> tuple[dict[str, Any], str]:
    roll = rng.random()
    if roll < 0.25:
        sizes = {f"PhysicalSize{axis}": 0.5 for axis in "XYZ"}
        return {"metadata": {"axes": axes} | sizes, "ome": True}, "map.ome.tif"
    if roll < 0.4:
        return {"imagej": True, "metadata": {"spacing": 2.0, "unit": "um"}, "resolution": (2.0, 2.0)}, "map.tif"
    if roll < 0.6:
        return {"metadata": None}, "map.tiff"
    return {"metadata": {"axes": axes}, "bigtiff": bool(rng.random() < 0.3)}, "map.tif"


def _odd_entry(rng: Rng, content: bytes, order: str) -> bytes:
    """An entry of a directory with another tag, type, number of values, or value."""
    is_big = struct.unpack_from(f"{order}H", content, 2)[0] == 43
    number, size, first = ("Q", 20, 8) if is_big else ("H", 12, 2)
    at = struct.unpack_from(f"{order}{'Q' if is_big else 'I'}", content, 8 if is_big else 4)[0]
    if not 8 <= at < len(content) - first:
        return damaged(rng, content)
    n = struct.unpack_from(f"{order}{number}", content, at)[0]
    entry = at + first + size * int(rng.integers(max(1, min(n, 64))))
    where = ((0, 2), (2, 2), (4, 8 if is_big else 4), (12, 8) if is_big else (8, 4))[
        int(rng.choice(4, p=(0.1, 0.1, 0.3, 0.5)))
    ]
    value = packed_edge(rng, where[1])
    if rng.random() < 0.4 and entry + where[0] + where[1] <= len(content):  # near what it was
        was = int.from_bytes(content[entry + where[0] :][: where[1]], "little" if order == "<" else "big")
        near = max(0, was + int(rng.integers(-3, 4))) % (1 << 8 * where[1])
        value = near.to_bytes(where[1], "little" if order == "<" else "big")
    begin = entry + where[0]
    return content[:begin] + value + content[begin + len(value) :]


def _odd_description(rng: Rng, content: bytes) -> bytes:
    """Another description, of the same length: OME-XML, ImageJ's lines, or JSON."""
    for begins in (b"<?xml", b"ImageJ=", b'{"shape"'):
        at = content.find(begins)
        if at >= 0:
            end = content.find(b"\0", at)
            text = odd_text(rng, content[at:end].decode("utf-8", "replace")).encode("utf-8", "replace")
            return content[:at] + text[: end - at].ljust(end - at) + content[end:]
    return damaged(rng, content)


def make_png(rng: Rng, _: Path, folder: Path) -> Plan:
    """Pictures of 8 or 16 bits: fields of the header, with the right check sum or without, or any bytes."""
    from PIL import Image

    values = rng.random(tuple(int(n) for n in rng.integers(2, 40, 2))) ** 6
    most = 65535 if rng.random() < 0.4 else 255
    pixels = np.round(values * most).astype(np.uint16 if most > 255 else np.uint8)
    is_colour = most == 255 and rng.random() < 0.15
    if is_colour:
        pixels = np.stack([pixels, pixels[::-1], pixels], axis=-1)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG", compress_level=int(rng.integers(0, 10)))
    content, roll = stream.getvalue(), rng.random()
    if roll < 0.5:
        content = _odd_header(rng, content)
    elif roll < 0.7:
        content = _odd_stream(rng, content)
    elif roll < 0.95:
        content = damaged(rng, content)
    (folder / "map.png").write_bytes(content)
    return {"path": "map.png", "channel": int(rng.integers(3)) if is_colour else None, "scale": 1 / most}


def _odd_header(rng: Rng, content: bytes) -> bytes:
    fields = bytearray(content[16:29])
    if rng.random() < 0.6:
        begin = 4 * int(rng.integers(2))
        fields[begin : begin + 4] = packed_edge(rng, 4)
    else:
        fields[8 + int(rng.integers(5))] = int(rng.integers(20))
    return content[:16] + bytes(fields) + struct.pack(">I", zlib.crc32(b"IHDR" + bytes(fields))) + content[33:]


def _odd_stream(rng: Rng, content: bytes) -> bytes:
    """Other compressed bytes, with the check sum that belongs to them."""
    at = content.find(b"IDAT")
    n = struct.unpack_from(">I", content, at - 4)[0]
    inside = zlib.decompress(content[at + 4 : at + 4 + n]) if rng.random() < 0.5 else content[at + 4 : at + 4 + n]
    changed = damaged(rng, inside)
    data = zlib.compress(changed) if inside is not content[at + 4 : at + 4 + n] and rng.random() < 0.9 else changed
    chunk = struct.pack(">I", len(data)) + b"IDAT" + data + struct.pack(">I", zlib.crc32(b"IDAT" + data))
    return content[: at - 4] + chunk + content[at + 8 + n :]

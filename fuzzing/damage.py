"""Bytes → damaged bytes: flipped, cut, doubled, overwritten."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

Rng = np.random.Generator

# Numbers at which sizes, signs and types end, in the widths and orders that headers have.
_WIDTHS = ("b", "h", "i", "q")
_EDGES = (0, 1, -1, 2, 127, 255, 32767, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, -(2**31), -(2**63))
_FLOATS = (0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e-45, 1e308, -1e308, 3.4e38, 0.1, 255.0)

# Headers are at the beginning, where a change says more than one among voxels.
_HEADER = 512


def damaged(rng: Rng, content: bytes) -> bytes:
    """The bytes with one to three kinds of damage."""
    for _ in range(int(rng.integers(1, 4))):
        content = _KINDS[int(rng.integers(len(_KINDS)))](rng, content)
    return content


def edge_number(rng: Rng) -> int | float:
    """A number that is easily forgotten."""
    several = (*_EDGES, *_FLOATS)
    return several[int(rng.integers(len(several)))]


def packed_edge(rng: Rng, size: int | None = None) -> bytes:
    """Such a number as bytes of some width and order."""
    order = "<>"[int(rng.integers(2))]
    if rng.random() < 0.3 and size in (None, 4, 8):
        kind = "f" if size == 4 or (size is None and rng.random() < 0.5) else "d"
        with np.errstate(over="ignore"):
            value = float(np.float32(_pick(rng, _FLOATS))) if kind == "f" else _pick(rng, _FLOATS)
        return struct.pack(order + kind, value)
    width = _pick(rng, _WIDTHS) if size is None else {1: "b", 2: "h", 4: "i", 8: "q"}[size]
    n_bytes = struct.calcsize(width)
    return (_pick(rng, _EDGES) % (1 << 8 * n_bytes)).to_bytes(n_bytes, "little" if order == "<" else "big")


def set_field(rng: Rng, header: bytes, dtype: np.dtype[Any]) -> bytes:
    """A binary header in which one field, or one number of it, has an extreme value."""
    assert dtype.fields is not None  # noqa: S101 - headers are structures
    name = _pick(rng, tuple(dtype.fields))
    kind, offset = dtype.fields[name][:2]
    base = kind.base
    n = int(np.prod(kind.shape, dtype=int)) if kind.shape else 1
    at = offset + int(rng.integers(n)) * base.itemsize
    value = packed_edge(rng, base.itemsize) if base.itemsize in (1, 2, 4, 8) else rng.bytes(base.itemsize)
    return header[:at] + value + header[at + len(value) :]


def _pick(rng: Rng, of: Any) -> Any:
    return of[int(rng.integers(len(of)))]


def _place(rng: Rng, content: bytes) -> int:
    end = min(len(content), _HEADER) if rng.random() < 0.5 else len(content)
    return int(rng.integers(max(end, 1)))


def _flip(rng: Rng, content: bytes) -> bytes:
    changed = bytearray(content or b"\0")
    for _ in range(int(rng.integers(1, 5))):
        changed[_place(rng, changed)] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _cut(rng: Rng, content: bytes) -> bytes:
    return content[: _place(rng, content)]


def _take_out(rng: Rng, content: bytes) -> bytes:
    at = _place(rng, content)
    return content[:at] + content[at + int(rng.integers(1, 65)) :]


def _double(rng: Rng, content: bytes) -> bytes:
    at = _place(rng, content)
    end = at + int(rng.integers(1, 257))
    return content[:end] + content[at:end] + content[end:]


def _overwrite(rng: Rng, content: bytes) -> bytes:
    at, n = _place(rng, content), int(rng.integers(1, 65))
    filling = (bytes(n), b"\xff" * n, rng.bytes(n), b"%n%s" * n)[int(rng.integers(4))][:n]
    return content[:at] + filling + content[at + n :]


def _write_number(rng: Rng, content: bytes) -> bytes:
    at, number = _place(rng, content), packed_edge(rng)
    return content[:at] + number + content[at + len(number) :]


def _append(rng: Rng, content: bytes) -> bytes:
    return content + rng.bytes(int(rng.integers(1, 1000)))


_KINDS: tuple[Callable[[Rng, bytes], bytes], ...] = (
    _flip, _flip, _cut, _take_out, _double, _overwrite, _write_number, _write_number, _append,
)  # fmt: skip

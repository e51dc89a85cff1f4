"""The directories of a TIFF, one for each plane, followed to their end before anything is read; and its voxel size."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.etree import ElementTree as ET

from lesioncount.errors import MapFileError

# More planes than this are no scan; each has a directory of its own, which takes time and memory.
MOST_PLANES = 1 << 16

# A directory has some twenty entries, and a hundred where a microscope adds its own.
_MOST_ENTRIES = 4096

# How many bytes a value has, by its type.
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}


class _Form(NamedTuple):
    """How numbers are written: in a TIFF, or in a BigTIFF, which may be larger than 4 GB."""

    number: struct.Struct
    entry: struct.Struct
    offset: struct.Struct


def count_directories(path: Path) -> int:
    """How many there are; an error if they lead in a circle, out of the file, or to more values than it can hold."""
    size = path.stat().st_size
    with path.open("rb") as file:
        form, place = _begin(path, file)
        seen: set[int] = set()
        while place:
            if place in seen or len(seen) >= MOST_PLANES:
                raise MapFileError(f"{path} is damaged: its planes lead in a circle, or are more than {MOST_PLANES:,}.")
            seen.add(place)
            place = _next(path, file, form, place, size)
    if not seen:
        raise MapFileError(f"{path} is a TIFF without an image.")
    return len(seen)


def _begin(path: Path, file: IO[bytes]) -> tuple[_Form, int]:
    head = file.read(16)
    order = {b"II": "<", b"MM": ">"}.get(head[:2])
    kind = struct.unpack(f"{order}H", head[2:4])[0] if order and len(head) >= 8 else 0
    if kind not in (42, 43) or (kind == 43 and len(head) < 16):
        raise MapFileError(f"{path} is damaged, or not a TIFF file: it does not begin like one.")
    number, entry, offset = ("H", "HHI4s", "I") if kind == 42 else ("Q", "HHQ8s", "Q")
    form = _Form(*(struct.Struct(order + code) for code in (number, entry, offset)))  # type: ignore[operator]  # checked
    return form, form.offset.unpack_from(head, 4 if kind == 42 else 8)[0]


def _next(path: Path, file: IO[bytes], form: _Form, place: int, size: int) -> int:
    """Where the directory after this one is; 0 where it is the last."""
    n = form.number.unpack(_read(path, file, place, form.number.size, size))[0]
    if n > _MOST_ENTRIES:
        raise MapFileError(f"{path} is damaged: a plane is described by {n:,} entries.")
    content = _read(path, file, place + form.number.size, n * form.entry.size + form.offset.size, size)
    for _, kind, count, _ in form.entry.iter_unpack(content[: n * form.entry.size]):
        if count * _SIZES.get(kind, 1) > size:
            raise MapFileError(f"{path} is damaged: its description promises {count:,} values, more than it can hold.")
    following: int = form.offset.unpack(content[n * form.entry.size :])[0]
    return following


def _read(path: Path, file: IO[bytes], place: int, n: int, size: int) -> bytes:
    if place + n > size:
        raise MapFileError(f"{path} is truncated, or damaged: the description of a plane is not in the file.")
    file.seek(place)
    return file.read(n)


# What units are in millimetres, as OME and ImageJ write them. Others, such as pixels, are no lengths.
_MILLIMETRES = {
    "µm": 1e-3, "μm": 1e-3, "um": 1e-3, "micron": 1e-3, "microns": 1e-3, "micrometer": 1e-3, "\\u00b5m": 1e-3,
    "nm": 1e-6, "å": 1e-7, "pm": 1e-9, "mm": 1.0, "millimeter": 1.0, "cm": 10.0, "dm": 100.0, "m": 1e3, "inch": 25.4,
    "in": 25.4,
}  # fmt: skip

# Of the tag that says what the resolution is counted in. Inches are left out: 72 or 300 of them are those of a screen
# or printer, which programs fill in, and say nothing about tissue.
_CENTIMETRES = 3


def voxel_size_mm(series: Any, n_axes: int) -> tuple[float, ...] | None:
    """The voxel size along Z, Y and X, or Y and X; None where the file does not say it for all of them."""
    if series.kind == "ome":
        zyx = _of_ome(series.parent.ome_metadata)
    elif series.kind == "imagej":
        zyx = _of_imagej(series)
    else:
        zyx = _of_tags(series.keyframe)
    sizes = zyx[3 - n_axes :]
    known = tuple(size for size in sizes if size is not None and math.isfinite(size) and size > 0)
    return known if len(known) == n_axes else None


_Sizes = tuple[float | None, float | None, float | None]


def _of_ome(text: str) -> _Sizes:
    pixels = ET.fromstring(text).find(".//{*}Pixels")  # noqa: S314 - the parser limits how far entities expand
    if pixels is None:
        return None, None, None
    z, y, x = (
        _length(pixels.get(f"PhysicalSize{axis}"), pixels.get(f"PhysicalSize{axis}Unit", "µm")) for axis in "ZYX"
    )
    return z, y, x


def _of_imagej(series: Any) -> _Sizes:
    """ImageJ leaves out a depth of 1, and writes pixels for each unit."""
    said = series.parent.imagej_metadata or {}
    unit = str(said.get("unit", ""))
    units = [str(said.get(name, unit)) for name in ("zunit", "yunit")]
    x, y = series.keyframe.resolution
    return _length(said.get("spacing", 1.0), units[0]), _length(_inverse(y), units[1]), _length(_inverse(x), unit)


def _of_tags(page: Any) -> _Sizes:
    if int(page.resolutionunit) != _CENTIMETRES:
        return None, None, None
    x, y = page.resolution
    return None, _length(_inverse(y), "cm"), _length(_inverse(x), "cm")


def _inverse(per_unit: float) -> float | None:
    return 1 / per_unit if per_unit > 0 else None


def _length(number: object, unit: str) -> float | None:
    factor = _MILLIMETRES.get(unit.strip().lower())
    try:
        return None if factor is None or number is None else abs(float(str(number))) * factor
    except ValueError:
        return None

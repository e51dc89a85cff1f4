"""How large the voxels of a TIFF are: as OME-XML, ImageJ or the tags say it."""

from __future__ import annotations

import math
from typing import Any
from xml.etree import ElementTree as ET

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

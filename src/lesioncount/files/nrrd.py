"""NRRD: ``.nrrd``, and ``.nhdr`` with its voxels in another file."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lesioncount.errors import MapFileError
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.source import MapSource
from lesioncount.files.stored import StoredVoxels
from lesioncount.files.text_headers import HEADER_BYTES, data_file, lps_grid, real_numbers, whole_numbers

ENDINGS = (".nrrd", ".nhdr")

_TYPES = {
    name: dtype
    for dtype, names in {
        "i1": "signed char,int8,int8_t",
        "u1": "uchar,unsigned char,uint8,uint8_t",
        "i2": "short,short int,signed short,signed short int,int16,int16_t",
        "u2": "ushort,unsigned short,unsigned short int,uint16,uint16_t",
        "i4": "int,signed int,int32,int32_t",
        "u4": "uint,unsigned int,uint32,uint32_t",
        "i8": "longlong,long long,long long int,signed long long,signed long long int,int64,int64_t",
        "u8": "ulonglong,unsigned long long,unsigned long long int,uint64,uint64_t",
        "f4": "float",
        "f8": "double",
    }.items()
    for name in names.split(",")
}
_ENCODINGS = {"raw": "raw", "gzip": "gzip", "gz": "gzip", "bzip2": "bzip2", "bz2": "bzip2"}

# All that there are, without spaces.
_FIELDS = {
    "axismaxs", "axismins", "blocksize", "byteskip", "centerings", "centers", "content", "datafile", "dimension",
    "encoding", "endian", "kinds", "labels", "lineskip", "max", "measurementframe", "min", "number", "oldmax", "oldmin",
    "sampleunits", "sizes", "space", "spacedimension", "spacedirections", "spaceorigin", "spaceunits", "spacings",
    "thicknesses", "type", "units",
}  # fmt: skip

# Axes of these kinds, or of none said, are axes of space or time; all others hold several values of one voxel.
_DOMAIN = ("", "???", "domain", "space", "time")

# What makes of them left-posterior-superior, in which ITK takes all others.
_TO_LPS = {"right-anterior-superior": (-1, -1, 1), "ras": (-1, -1, 1), "left-anterior-superior": (1, -1, 1)}
_TO_LPS["las"] = _TO_LPS["left-anterior-superior"]


@dataclass(frozen=True)
class _Header:
    path: Path
    fields: dict[str, str]
    end: int

    def words(self, name: str) -> list[str]:
        return self.fields.get(name, "").split()


def open_nrrd(path: Path, channel: int | None = None) -> MapSource:
    """A ``.nrrd`` or ``.nhdr`` file, raw or compressed by gzip or bzip2."""
    header = _read_header(path)
    voxels = _voxels(header)
    return voxels.source(_grid(header, voxels), "NRRD", channel)


def _read_header(path: Path) -> _Header:
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES)
    if not re.match(rb"NRRD000[1-9]\r?\n", head):
        raise MapFileError(f"{path} is not a NRRD file: it does not begin like one.")
    end = re.search(rb"\r?\n\r?\n", head)
    if end is None and len(head) == HEADER_BYTES:
        raise MapFileError(f"{path} is not a NRRD file: its header does not end within {HEADER_BYTES:,} bytes.")
    fields: dict[str, str] = {}
    for line in head[: end.start() if end else None].decode("utf-8", "replace").split("\n")[1:]:
        name, _, value = line.partition(":")
        if line.startswith("#") or value.startswith("="):  # comments, and what programs tell themselves
            continue
        key = re.sub(r"\s", "", name).lower()
        if key not in _FIELDS and line.strip():
            raise MapFileError(f"{path}: the header has a line that is no field of NRRD, {line[:40]!r}. It is damaged.")
        if key in fields:
            raise MapFileError(f"{path}: the header has two fields {name.strip()[:40]!r}. It is damaged.")
        if key:
            fields[key] = value.strip()
    return _Header(path, fields, end.end() if end else len(head))


def _voxels(header: _Header) -> StoredVoxels:
    path, fields = header.path, header.fields
    for name in ("dimension", "type", "sizes", "encoding"):
        if name not in fields:
            raise MapFileError(f"{path}: the header has no field {name!r}. It is damaged.")
    axes = whole_numbers(path, "sizes", fields["sizes"])
    if whole_numbers(path, "dimension", fields["dimension"]) != (len(axes),):
        raise MapFileError(
            f"{path}: the header has {len(axes)} sizes, but its dimension is {fields['dimension'][:20]}."
        )
    encoding = _ENCODINGS.get(fields["encoding"].lower())
    if encoding is None:
        raise MapFileError(
            f"{path}: expected the encoding raw, gzip or bzip2, but got {fields['encoding'][:40]!r}. Save it as gzip."
        )
    file, start = (data_file(path, fields["datafile"]), 0) if "datafile" in fields else (path, header.end)
    voxels = StoredVoxels(file, _dtype(header), axes, _channel_axis(header, len(axes)), start, 0, encoding)
    voxels = _behind_skipped(header, voxels)
    voxels.check()
    return voxels


def _dtype(header: _Header) -> np.dtype[np.generic]:
    name = " ".join(header.words("type")).lower()
    if name not in _TYPES:
        raise MapFileError(f"{header.path}: values of type {name[:40]!r} cannot be probabilities.")
    dtype = np.dtype(_TYPES[name])
    endian = header.fields.get("endian", "").lower()
    if dtype.itemsize > 1 and endian not in ("little", "big"):
        raise MapFileError(f"{header.path}: expected the field endian to be little or big, but got {endian[:20]!r}.")
    return dtype.newbyteorder(">" if endian == "big" else "<")


def _channel_axis(header: _Header, n_axes: int) -> int | None:
    kinds = [kind.lower() for kind in header.words("kinds")] or [""] * n_axes
    directions = _directions(header) or [(0.0,)] * n_axes
    if len(kinds) != n_axes or len(directions) != n_axes:
        raise MapFileError(f"{header.path}: expected a kind and a direction for each of {n_axes} axes. It is damaged.")
    of_values = [axis for axis in range(n_axes) if kinds[axis] not in _DOMAIN or directions[axis] is None]
    if len(of_values) > 1:
        raise MapFileError(f"{header.path}: expected at most one axis of channels, but there are {len(of_values)}.")
    if of_values:
        return of_values[0]
    return 3 if n_axes == 4 else None  # a series of maps


def _directions(header: _Header) -> list[tuple[float, ...] | None]:
    """The direction of each axis, None for those outside of space; empty if there are none."""
    text = header.fields.get("spacedirections", "")
    parts = re.findall(r"none|\([^()]*\)|[^\s()]+", text)
    return [
        None if part == "none" else real_numbers(header.path, "space directions", part.strip("()").replace(",", " "))
        for part in parts
    ]


def _behind_skipped(header: _Header, voxels: StoredVoxels) -> StoredVoxels:
    """The voxels behind lines and bytes that the header says are not theirs."""
    path, fields = header.path, header.fields
    [lines] = whole_numbers(path, "line skip", fields.get("lineskip", "0"))[:1]
    [n_bytes] = whole_numbers(path, "byte skip", fields.get("byteskip", "0"))[:1]
    if lines < 0 or n_bytes < -1 or (n_bytes == -1 and voxels.encoding != "raw"):
        raise MapFileError(
            f"{path}: the header skips {lines} lines and {n_bytes} bytes, which cannot be. It is damaged."
        )
    start = voxels.start + _length_of_lines(voxels.path, voxels.start, lines)
    if n_bytes == -1:
        return replace(voxels, start=max(0, voxels.path.stat().st_size - voxels.n_bytes))
    return replace(voxels, start=start, skip=n_bytes)


def _length_of_lines(path: Path, start: int, n_lines: int) -> int:
    if not n_lines:
        return 0
    with path.open("rb") as file:
        file.seek(start)
        ends = [match.end() for match in re.finditer(rb"\n", file.read(HEADER_BYTES))]
    if len(ends) < n_lines:
        raise MapFileError(f"{path}: expected {n_lines} lines before the voxels, but there are {len(ends)}.")
    return ends[n_lines - 1]


def _grid(header: _Header, voxels: StoredVoxels) -> VoxelGrid:
    vectors = [vector for axis, vector in enumerate(_directions(header)) if axis != voxels.channel_axis and vector]
    shape = voxels.shape
    if len(vectors) != len(shape):
        return _unplaced(header, voxels)
    n = len(vectors[0])
    origin = header.fields.get("spaceorigin", "").strip("()").replace(",", " ")
    at = real_numbers(header.path, "space origin", origin) if origin else (0.0,) * n
    if n not in (2, 3, 4) or n < len(shape) or {len(vector) for vector in [*vectors, at]} != {n}:
        raise MapFileError(f"{header.path}: the directions of the axes and the origin do not fit together.")
    n = min(n, 3)  # without time
    signs = np.array(_TO_LPS.get(header.fields.get("space", "").lower().removesuffix("-time"), (1, 1, 1))[:n], float)
    columns = np.array([vector[:n] for vector in vectors], dtype=np.float64).T
    return lps_grid(header.path, shape, columns * signs[:, None], np.array(at[:n]) * signs)


def _unplaced(header: _Header, voxels: StoredVoxels) -> VoxelGrid:
    """Sizes at most: older files, and those of programs that know no space."""
    sizes = [word for axis, word in enumerate(header.words("spacings")) if axis != voxels.channel_axis]
    spacing = None
    if len(sizes) == len(voxels.shape) and "nan" not in [size.lower() for size in sizes]:
        spacing = real_numbers(header.path, "spacings", " ".join(sizes))
        if min(spacing) <= 0:
            raise MapFileError(f"{header.path}: expected spacings above 0, but got {spacing}.")
    why = "its header has no space directions"
    return VoxelGrid(header.path, voxels.shape, spacing_mm=spacing, why_unplaced=why)

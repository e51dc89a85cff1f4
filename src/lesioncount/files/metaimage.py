"""MetaImage: ``.mha``, and ``.mhd`` with its voxels in another file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lesioncount.errors import MapFileError
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.source import MapSource
from lesioncount.files.stored import StoredVoxels
from lesioncount.files.text_headers import HEADER_BYTES, data_file, flag, lps_grid, real_numbers, whole_numbers

ENDINGS = (".mha", ".mhd")

_TYPES = {
    "MET_CHAR": "i1", "MET_UCHAR": "u1", "MET_SHORT": "i2", "MET_USHORT": "u2", "MET_INT": "i4", "MET_UINT": "u4",
    "MET_LONG": "i4", "MET_ULONG": "u4", "MET_LONG_LONG": "i8", "MET_ULONG_LONG": "u8", "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}  # fmt: skip

# Old versions of ITK write the size of compressed voxels with six digits.
_ROUNDED = 1e-5

# The last field of a header; where its voxels are in the same file, they begin on the next line.
_LAST = re.compile(rb"^[ \t]*ElementDataFile[ \t]*=([^\n]*)(\n|\Z)", re.MULTILINE)


@dataclass(frozen=True)
class _Header:
    path: Path
    fields: dict[str, str]
    end: int

    def reals(self, n: int, default: float, *names: str) -> tuple[float, ...]:
        """The n numbers of the first of these fields that is there."""
        for name in names:
            if name in self.fields:
                numbers = real_numbers(self.path, name, self.fields[name])
                if len(numbers) != n:
                    raise MapFileError(f"{self.path}: expected {n} numbers as {name}, but there are {len(numbers)}.")
                return numbers
        return (default,) * n

    def flag(self, *names: str, default: bool = False) -> bool:
        """Whether the first of these fields that is there is true."""
        for name in names:
            if name in self.fields:
                return flag(self.path, name, self.fields[name])
        return default


def open_metaimage(path: Path, channel: int | None = None) -> MapSource:
    """A ``.mha`` or ``.mhd`` file, raw or compressed."""
    header = _read_header(path)
    voxels = _voxels(header)
    return voxels.source(_grid(header, voxels), "MetaImage", channel)


def _read_header(path: Path) -> _Header:
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES)
    last = _LAST.search(head)
    if last is None:
        raise MapFileError(f"{path} is not a MetaImage file: its header has no ElementDataFile.")
    fields: dict[str, str] = {}
    for line in head[: last.end()].decode("utf-8", "replace").split("\n"):
        name, equals, value = line.partition("=")
        # Other readers take the first for the beginning of the next field, and end names at a null character.
        if (not equals and line.strip()) or "\0" in line:
            raise MapFileError(f"{path}: the header has a line without a field, {line.strip()[:40]!r}. It is damaged.")
        if name.strip() in fields:
            raise MapFileError(f"{path}: the header has two fields {name.strip()[:40]!r}. It is damaged.")
        if equals:
            fields[name.strip()] = value.strip()
    return _Header(path, fields, last.end())


def _voxels(header: _Header) -> StoredVoxels:
    path, fields = header.path, header.fields
    for name in ("NDims", "DimSize", "ElementType"):
        if name not in fields:
            raise MapFileError(f"{path}: the header has no field {name}. It is damaged.")
    axes = whole_numbers(path, "DimSize", fields["DimSize"])
    if whole_numbers(path, "NDims", fields["NDims"]) != (len(axes),):
        raise MapFileError(f"{path}: the header has {len(axes)} sizes, but NDims is {fields['NDims'][:20]}.")
    if not header.flag("BinaryData", default=True):
        raise MapFileError(f"{path}: the voxels are stored as text. Save them as binary data.")
    kind = fields["ElementType"]
    if kind not in _TYPES:
        raise MapFileError(f"{path}: values of type {kind[:40]!r} cannot be probabilities.")
    is_big = header.flag("BinaryDataByteOrderMSB", "ElementByteOrderMSB")
    dtype = np.dtype(_TYPES[kind]).newbyteorder(">" if is_big else "<")
    [n_values] = whole_numbers(path, "ElementNumberOfChannels", fields.get("ElementNumberOfChannels", "1"))[:1]
    channel_axis = 3 if len(axes) == 4 else None  # a series of maps
    if n_values != 1:
        if channel_axis is not None:
            raise MapFileError(f"{path}: expected either a series of maps or several channels, but got both.")
        axes, channel_axis = (n_values, *axes), 0
    name = fields["ElementDataFile"]
    is_here = name in ("LOCAL", "Local", "local")
    file, start = (path, header.end) if is_here else (data_file(path, name), 0)
    encoding = "zlib" if header.flag("CompressedData") else "raw"
    voxels = StoredVoxels(file, dtype, axes, channel_axis, start, encoding=encoding)
    voxels = StoredVoxels(file, dtype, axes, channel_axis, _start(header, voxels), encoding=encoding)
    voxels.check()
    _check_compressed_size(header, voxels)
    return voxels


def _start(header: _Header, voxels: StoredVoxels) -> int:
    """Where the voxels begin, with what HeaderSize says is before them; -1 is up to the last ones."""
    [size] = whole_numbers(header.path, "HeaderSize", header.fields.get("HeaderSize", "0"))[:1]
    if size < -1 or (size and voxels.encoding != "raw"):
        raise MapFileError(f"{header.path}: a HeaderSize of {size} is not possible here. The header is damaged.")
    if size == -1:
        return max(0, voxels.path.stat().st_size - voxels.n_bytes)
    return voxels.start if size == 0 else size


def _check_compressed_size(header: _Header, voxels: StoredVoxels) -> None:
    """Raise if there are more or fewer compressed bytes than the header says, if it does."""
    held = voxels.path.stat().st_size - voxels.start
    [said] = header.reals(1, held, "CompressedDataSize")
    if voxels.encoding != "raw" and abs(said - held) > _ROUNDED * held:
        raise MapFileError(
            f"{header.path}: the header says that the compressed voxels take {said:g} bytes, but there are {held:,}. "
            "It is damaged, or they are truncated."
        )


def _grid(header: _Header, voxels: StoredVoxels) -> VoxelGrid:
    """Places in space, which for MetaImage are in millimetres to the left, to the back and upwards."""
    n = len(voxels.axes) - (voxels.channel_axis == 0)
    spatial = len(voxels.shape)
    spacing = np.array(header.reals(n, 1.0, "ElementSpacing", "ElementSize"))
    origin = np.array(header.reals(n, 0.0, "Offset", "Position", "Origin"))
    matrix = header.reals(n * n, np.nan, "TransformMatrix", "Rotation", "Orientation")
    directions = np.eye(n) if np.isnan(matrix).any() else np.reshape(matrix, (n, n)).T
    columns = (directions * spacing)[:spatial, :spatial]
    return lps_grid(header.path, voxels.shape, columns, origin[:spatial])

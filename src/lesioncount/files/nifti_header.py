"""The header of a NIfTI file ↔ what it says: shape, type, scale and place of the voxels. Both versions, both orders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapFileError
from lesioncount.files.geometry import VoxelGrid


def _layout(size: int, **fields: tuple[str, int]) -> np.dtype[Any]:
    """The fields that are read or written, by type and first byte; the others are 0."""
    kinds, places = zip(*fields.values(), strict=True)
    return np.dtype({"names": list(fields), "formats": kinds, "offsets": places, "itemsize": size})


# The names are those of nifti1.h and nifti2.h.
_FIRST = _layout(
    348,
    sizeof_hdr=("<i4", 0),
    dim=("<8i2", 40),
    intent_code=("<i2", 68),
    datatype=("<i2", 70),
    bitpix=("<i2", 72),
    pixdim=("<8f4", 76),
    vox_offset=("<f4", 108),
    scl_slope=("<f4", 112),
    scl_inter=("<f4", 116),
    xyzt_units=("u1", 123),
    qform_code=("<i2", 252),
    sform_code=("<i2", 254),
    quatern=("<3f4", 256),
    qoffset=("<3f4", 268),
    srow=("<(3,4)f4", 280),
    magic=("S4", 344),
)
_SECOND = _layout(
    540,
    sizeof_hdr=("<i4", 0),
    magic=("S8", 4),
    datatype=("<i2", 12),
    bitpix=("<i2", 14),
    dim=("<8i8", 16),
    pixdim=("<8f8", 104),
    vox_offset=("<i8", 168),
    scl_slope=("<f8", 176),
    scl_inter=("<f8", 184),
    qform_code=("<i4", 344),
    sform_code=("<i4", 348),
    quatern=("<3f8", 352),
    qoffset=("<3f8", 376),
    srow=("<(3,4)f8", 400),
    xyzt_units=("<i4", 500),
    intent_code=("<i4", 504),
)
LONGEST_HEADER = _SECOND.itemsize

# Larger axes do not fit into the 16 bits that the first version has for them.
_LONGEST_AXIS = (1 << 15) - 1

_TYPES = {
    2: "u1",
    4: "i2",
    8: "i4",
    16: "f4",
    64: "f8",
    256: "i1",
    512: "u2",
    768: "u4",
    1024: "i8",
    1280: "u8",
}
_CODES = {np.dtype(kind): code for code, kind in _TYPES.items()}
_OTHER_TYPES = {
    1: "bits",
    32: "complex numbers",
    128: "colours",
    1536: "numbers of 128 bits",
    1792: "complex numbers",
    2048: "complex numbers",
    2304: "colours",
}

# By the unit code. Unknown is taken as millimetres, as everyone does.
_MILLIMETRES = {1: 1000.0, 3: 0.001}
_UNIT_MM = 2

_INTENTS = {"none": 0, "label": 1002}
_ALIGNED = 2

# Quaternions are stored with 24 bits: the square of the part that is left out may come out this much below 0.
_ROUNDING = 3 * float(np.finfo(np.float32).eps)


@dataclass(frozen=True, eq=False)
class NiftiHeader:
    """What a header says of the voxels.

    Attributes
    ----------
    shape : tuple of int
        All axes, those behind space too.
    dtype : dtype
    offset : int
        The first byte of the voxels.
    scale, shift : float
        Stored numbers are multiplied and added to.
    affine : ndarray, shape (4, 4)
        From voxel index to RAS millimetres.
    is_placed : bool
        Whether the affine is the file's. If not, it only has the sizes of voxels.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int
    scale: float
    shift: float
    affine: NDArray[np.float64]
    is_placed: bool


def header_of(path: Path, head: bytes) -> NiftiHeader:
    """The header at the beginning of a file; raises where it is none, or contradicts itself."""
    fields = _fields(path, head)
    if bytes(fields["magic"])[:2] != b"n+":
        raise MapFileError(f"{path} is half of a NIfTI pair: header and voxels must be in one file.")
    begin = float(fields["vox_offset"])
    if not (begin == 0 or fields.dtype.itemsize <= begin < 2**31):
        raise MapFileError(f"{path}: the voxels cannot begin at byte {begin:g}. The header is damaged.")
    slope, intercept = float(fields["scl_slope"]), float(fields["scl_inter"])
    is_scaled = bool(np.isfinite(slope)) and slope != 0
    if is_scaled and not np.isfinite(intercept):
        raise MapFileError(f"{path} is not a NIfTI file: its values have a slope, but the intercept {intercept}.")
    affine, is_placed = _affine(path, fields)
    affine[:3] *= _MILLIMETRES.get(int(fields["xyzt_units"]) & 7, 1.0)
    return NiftiHeader(
        _shape(path, fields["dim"]),
        _dtype(path, fields),
        int(begin) or _first_voxel(fields.dtype),
        slope if is_scaled else 1.0,
        intercept if is_scaled else 0.0,
        affine,
        is_placed,
    )


def _fields(path: Path, head: bytes) -> NDArray[Any]:
    for layout in (_FIRST, _SECOND):
        for ordered in (layout, layout.newbyteorder()):
            if len(head) >= layout.itemsize:
                fields = np.frombuffer(head[: layout.itemsize], ordered)[0]
                if int(fields["sizeof_hdr"]) == layout.itemsize and bytes(fields["magic"])[:1] == b"n":
                    return fields  # type: ignore[no-any-return]  # a record of the array
    raise MapFileError(f"{path} is not a NIfTI file: it does not begin like one.")


def _first_voxel(layout: np.dtype[Any]) -> int:
    """Behind the header and the four bytes that say whether extensions follow."""
    return layout.itemsize + 4


def _shape(path: Path, dim: NDArray[Any]) -> tuple[int, ...]:
    n = int(dim[0])
    if not 0 <= n <= 7:
        raise MapFileError(f"{path} is not a NIfTI file: it has {n} axes.")
    return tuple(int(length) for length in dim[1 : n + 1])


def _dtype(path: Path, fields: NDArray[Any]) -> np.dtype[Any]:
    code = int(fields["datatype"])
    if code in _OTHER_TYPES:
        raise MapFileError(f"{path}: voxels that are {_OTHER_TYPES[code]} cannot be probabilities.")
    if code not in _TYPES:
        raise MapFileError(f"{path} is not a NIfTI file: its header has the unknown type {code} of voxels.")
    return np.dtype(_TYPES[code]).newbyteorder(fields.dtype["sizeof_hdr"].byteorder)


def _affine(path: Path, fields: NDArray[Any]) -> tuple[NDArray[np.float64], bool]:
    """From voxel index to RAS, in the unit of the file; the matrix before the quaternion, as other readers have it."""
    affine = np.eye(4)
    if int(fields["sform_code"]) > 0:
        affine[:3] = fields["srow"]
        return affine, True
    sizes = fields["pixdim"][1:4].astype(np.float64)
    if int(fields["qform_code"]) <= 0:
        affine[:3, :3] = np.diag(sizes)
        return affine, False
    handedness = float(fields["pixdim"][0])
    if handedness not in {-1.0, 1.0} or (sizes < 0).any():
        raise MapFileError(
            f"{path} is not a NIfTI file: its voxels have the sizes {sizes.tolist()} and the handedness {handedness:g}."
        )
    affine[:3, :3] = _rotation(path, fields["quatern"].astype(np.float64)) * sizes * (1, 1, handedness)
    affine[:3, 3] = fields["qoffset"]
    return affine, True


def _rotation(path: Path, quaternion: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of a unit quaternion whose first part follows from the others."""
    b, c, d = quaternion
    square = 1 - float(quaternion @ quaternion)
    if not square >= -_ROUNDING:
        raise MapFileError(f"{path} is not a NIfTI file: ({b:g}, {c:g}, {d:g}) does not describe a rotation.")
    a = np.sqrt(max(square, 0.0))
    scale = 2 / float(a * a + quaternion @ quaternion)  # slightly off 1 after rounding
    return np.array(
        [
            [1 - scale * (c * c + d * d), scale * (b * c - a * d), scale * (b * d + a * c)],
            [scale * (b * c + a * d), 1 - scale * (b * b + d * d), scale * (c * d - a * b)],
            [scale * (b * d - a * c), scale * (c * d + a * b), 1 - scale * (b * b + c * c)],
        ]
    )


def header_bytes(voxels: NDArray[Any], grid: VoxelGrid, intent: str, slope: float) -> bytes:
    """The header of voxels on a grid, and all else that comes before them; of the first version where that will do."""
    layout = _FIRST if max(voxels.shape) <= _LONGEST_AXIS else _SECOND
    fields = np.zeros((), layout)
    fields["sizeof_hdr"] = layout.itemsize
    fields["magic"] = b"n+1\0" if layout is _FIRST else b"n+2\0\r\n\x1a\n"
    fields["datatype"], fields["bitpix"] = _CODES[voxels.dtype], 8 * voxels.dtype.itemsize
    fields["dim"] = (voxels.ndim, *voxels.shape, *(1,) * (7 - voxels.ndim))
    fields["pixdim"] = 1
    if grid.spacing_mm is not None:
        fields["pixdim"][1 : voxels.ndim + 1] = grid.spacing_mm[: voxels.ndim]
    if grid.affine is not None:
        fields["sform_code"], fields["srow"] = _ALIGNED, grid.affine[:3]
    fields["xyzt_units"], fields["intent_code"] = _UNIT_MM, _INTENTS[intent]
    fields["scl_slope"] = slope
    fields["vox_offset"] = _first_voxel(layout)
    return fields.tobytes() + bytes(4)

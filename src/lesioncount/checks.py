"""What callers pass → what the steps take: checked once, at the door."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.errors import MapError, ProtocolError, ShapeError, SpacingError, VoxelTypeError
from lesioncount.protocol import CountingProtocol
from lesioncount.voxels import is_inside

# Columns are counted in 32 bits.
_LONGEST_AXIS = 2**31 - 1


def checked_protocol(protocol: CountingProtocol | str | None) -> CountingProtocol:
    """The protocol, that of the paper if there is none."""
    if protocol is None:
        return CountingProtocol()
    if isinstance(protocol, str):
        return CountingProtocol.named(protocol)
    if not isinstance(protocol, CountingProtocol):
        raise ProtocolError(
            f"Expected a CountingProtocol, such as CountingProtocol.named('paper'), but got {protocol!r}."
        )
    return protocol


def checked_spacing(spacing_mm: ArrayLike | None, ndim: int, protocol: CountingProtocol) -> tuple[float, ...] | None:
    """The voxel size as a tuple, or an error."""
    if spacing_mm is None:
        if protocol.needs_spacing:
            raise SpacingError(
                "The protocol has a smallest size in millimetres, but the voxel size is unknown. Pass spacing_mm=, for "
                "example spacing_mm=(1, 1, 3), or use min_voxels instead."
            )
        return None
    try:
        spacing = tuple(np.asarray(spacing_mm, dtype=np.float64).ravel().tolist())
    except (TypeError, ValueError):
        raise SpacingError(f"Expected the voxel size along each axis, but spacing_mm is {spacing_mm!r}.") from None
    if len(spacing) not in ((3,) if ndim == 3 else (2, 3)):
        raise SpacingError(f"Expected the voxel size along each of {ndim} axes, but spacing_mm is {spacing}.")
    if not all(math.isfinite(size) and size > 0 for size in spacing):
        raise SpacingError(f"Expected voxel sizes greater than 0, but spacing_mm is {spacing}.")
    return spacing


def checked_threads(threads: object) -> int:
    """A number of threads."""
    if not isinstance(threads, Integral) or threads < 1:
        raise MapError(f"Expected at least one thread, but got threads={threads!r}.")
    return int(threads)


def checked_map(probabilities: ArrayLike) -> NDArray[Any]:
    """The map as an array of two or three axes."""
    try:
        voxels = np.asarray(probabilities)
    except ValueError as error:
        raise ShapeError(f"Expected a 2-D or 3-D array of probabilities, but it is no array: {error}") from None
    if voxels.dtype == object and voxels.ndim == 0:
        raise ShapeError(
            f"Expected a 2-D or 3-D array of probabilities, but got {type(probabilities).__name__}. Load the file, "
            "for example nibabel.load(path).get_fdata()."
        )
    if voxels.ndim not in (2, 3):
        one = 0 if voxels.ndim and voxels.shape[0] == 1 else 1
        advice = f"Choose one channel or one scan first, such as probabilities[{one}]." if voxels.ndim > 3 else ""
        raise ShapeError(f"Expected a 2-D or 3-D map, but its shape is {voxels.shape}. {advice}".rstrip())
    if voxels.size == 0:
        raise ShapeError(f"Expected a map with voxels, but its shape is {voxels.shape}.")
    if max(voxels.shape) > _LONGEST_AXIS:
        raise ShapeError(f"Expected axes of at most {_LONGEST_AXIS} voxels, but the map's shape is {voxels.shape}.")
    return voxels


def checked_mask(mask: ArrayLike | None, shape: tuple[int, ...], probabilities: ArrayLike) -> NDArray[np.bool_] | None:
    """Where to look: what the mask says, and what a masked array does not hide; None for everywhere."""
    hidden = np.ma.getmask(probabilities) if isinstance(probabilities, np.ma.MaskedArray) else np.ma.nomask
    if mask is None:
        return None if hidden is np.ma.nomask else np.asarray(~hidden)
    inside = np.asarray(mask)
    if inside.shape != shape:
        raise ShapeError(f"Expected a mask of the map's shape {shape}, but the mask has shape {inside.shape}.")
    if inside.dtype.kind not in "biuf":
        raise VoxelTypeError(f"Expected a mask of booleans or numbers, but its dtype is {inside.dtype}.")
    inside = is_inside(inside)
    return inside if hidden is np.ma.nomask else inside & ~hidden

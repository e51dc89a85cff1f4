"""What callers pass → what the steps take: checked once, at the door."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.errors import (
    MapError,
    ProtocolError,
    ShapeError,
    SpacingError,
    UnknownOptionError,
    VoxelTypeError,
)
from lesioncount.images import image_of
from lesioncount.protocol import CountingProtocol
from lesioncount.sweep.sizes import VoxelSize
from lesioncount.sweep.voxels import is_inside

# Of a scan. Nobody counts further by eye, and scores of calibrated counts take memory in proportion: for 20 scans,
# 70 MB with a count of this size, and 340 MB with one that is ten times as large.
MOST_LESIONS = 1_000_000

# Columns are counted in 32 bits.
_LONGEST_AXIS = 2**31 - 1

# A cube of ten kilometres: no voxel is larger.
_LARGEST_VOXEL_MM3 = 1e21


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


def defined(
    protocol: CountingProtocol | str | None, definition: Mapping[str, Any], function: Callable[..., Any]
) -> CountingProtocol:
    """The protocol with the fields that were given as keywords of a function in place of its own."""
    base = checked_protocol(protocol)
    if not definition:
        return base
    known = [field.name for field in fields(CountingProtocol)]
    for name in definition:
        if name not in known:
            raise UnknownOptionError(_no_such_option(name, [*inspect.signature(function).parameters, *known]))
    return CountingProtocol.from_dict(base.to_dict() | dict(definition))


def _no_such_option(name: str, known: list[str]) -> str:
    import difflib  # not at the top: for those only who mistype

    options = [option for option in dict.fromkeys(known) if option not in ("self", "definition", "probabilities")]
    near = difflib.get_close_matches(name, options, n=1)
    near = near or [option for option in options if option.startswith(name) or name.startswith(option)]
    advice = f"Did you mean {near[0]}=?" if near else f"There are {', '.join(options)}."
    return f"There is no option {name[:80]!r}. {advice}"


def checked_spacing(spacing_mm: ArrayLike | None, ndim: int, protocol: CountingProtocol) -> VoxelSize | None:
    """The voxel size, from one number for each axis or from the edges of a voxel as columns, or an error."""
    if spacing_mm is None:
        if protocol.needs_spacing:
            raise SpacingError(
                "The protocol has a smallest size in millimetres, but the voxel size is unknown. Pass spacing_mm=, for "
                "example spacing_mm=(1, 1, 3), or use min_voxels instead."
            )
        return None
    try:
        sizes = np.array(spacing_mm, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise SpacingError(f"Expected the voxel size along each axis, but spacing_mm is {shown(spacing_mm)}.") from None
    if sizes.shape not in ((ndim,), (3,), (ndim, ndim)):
        raise SpacingError(f"Expected the voxel size along each of {ndim} axes, but spacing_mm is {shown(spacing_mm)}.")
    found = VoxelSize(sizes, ndim)
    with np.errstate(all="ignore"):
        is_known = min(found.spacing_mm) > 0 and 0 < found.volume_mm3 < _LARGEST_VOXEL_MM3
    if not is_known:
        raise SpacingError(f"Expected voxel sizes greater than 0, but spacing_mm is {shown(spacing_mm)}.")
    return found


def checked_threads(threads: object) -> int:
    """A number of threads."""
    if not isinstance(threads, Integral) or threads < 1:
        raise MapError(f"Expected at least one thread, but got threads={threads!r}.")
    return int(threads)


def checked_plane(shape: object) -> tuple[int, ...]:
    """The shape of a plane: one or two whole numbers, each at least 1."""
    try:
        sizes = np.asarray(shape)
        plane = tuple(sizes.ravel().tolist()) if sizes.dtype.kind in "iu" and sizes.ndim < 2 else ()
    except (ValueError, TypeError, OverflowError):
        plane = ()
    if len(plane) not in (1, 2) or min(plane) < 1:
        raise ShapeError(
            f"Expected the shape of a plane to be one or two whole numbers of at least 1, but got {shown(shape)}."
        )
    if max(plane) > _LONGEST_AXIS:
        raise ShapeError(
            f"Expected axes of at most {_LONGEST_AXIS} voxels, but the shape of a plane is {shown(shape)}."
        )
    return plane


def checked_dtype(dtype: object) -> np.dtype[Any]:
    """A dtype; None is not one, though numpy takes it for float64."""
    try:
        if dtype is not None:
            return np.dtype(dtype)  # type: ignore[call-overload, no-any-return]  # whatever it is, this is the check
    except (TypeError, ValueError, OverflowError, SyntaxError):
        pass
    raise VoxelTypeError(f"Expected the dtype of the planes, such as numpy.float32, but got {shown(dtype)}.")


def checked_axis(axis: object, ndim: int) -> int:
    """An axis of a map, counted from the first."""
    if not isinstance(axis, int | np.integer) or isinstance(axis, bool) or not -ndim <= axis < ndim:
        raise ShapeError(f"Expected axis to be one of the {ndim} axes of the map, but got {shown(axis)}.")
    return int(axis) % ndim


def checked_array(array: object, what: str) -> NDArray[Any]:
    """Anything as an array."""
    try:
        return np.asanyarray(array)
    except (ValueError, TypeError, OverflowError) as error:
        raise ShapeError(f"Expected {what} as an array, but got {type(array).__name__}: {error}") from None


def shown(value: object) -> str:
    """A value for a message, however long it is."""
    try:
        text = repr(value)
    except ValueError:  # integers of more than 4300 digits
        text = f"a very long {type(value).__name__}"
    return text if len(text) <= 100 else f"{text[:100]}…"


def checked_map(probabilities: ArrayLike) -> NDArray[Any]:
    """The map as an array of two or three axes."""
    try:
        voxels = np.asarray(probabilities)
    except ValueError as error:
        raise ShapeError(f"Expected a 2-D or 3-D array of probabilities, but it is no array: {error}") from None
    if voxels.dtype == object and voxels.ndim == 0:
        raise ShapeError(
            f"Expected a 2-D or 3-D array of probabilities, but got {type(probabilities).__name__}. Load the file, "
            "for example nibabel.load(path), or count it with lesioncount.count_file(path)."
        )
    if voxels.dtype.kind in "SU" and voxels.ndim == 1:
        raise ShapeError(
            "Expected a 2-D or 3-D array of probabilities, but got a list of names. To count several files, use "
            "lesioncount.count_files(paths)."
        )
    if voxels.ndim not in (2, 3):
        advice = f"Choose one channel or one scan first, such as {_one_of(voxels.shape)}." if voxels.ndim > 3 else ""
        raise ShapeError(f"Expected a 2-D or 3-D map, but its shape is {voxels.shape}. {advice}".rstrip())
    if voxels.size == 0:
        raise ShapeError(f"Expected a map with voxels, but its shape is {voxels.shape}.")
    if max(voxels.shape) > _LONGEST_AXIS:
        raise ShapeError(f"Expected axes of at most {_LONGEST_AXIS} voxels, but the map's shape is {voxels.shape}.")
    return voxels


def _one_of(shape: tuple[int, ...]) -> str:
    """How to take one map of several: channels are the shorter of the first axis and the last."""
    is_last = shape[-1] < shape[0]
    one = 0 if 1 in (shape[0], shape[-1]) else 1
    return f"probabilities[..., {one}]" if is_last else f"probabilities[{one}]"


def checked_mask(mask: ArrayLike | None, shape: tuple[int, ...], probabilities: ArrayLike) -> NDArray[np.bool_] | None:
    """Where to look: what the mask says, and what a masked array does not hide; None for everywhere."""
    hidden = np.ma.getmask(probabilities) if isinstance(probabilities, np.ma.MaskedArray) else np.ma.nomask
    if mask is None:
        return None if hidden is np.ma.nomask else np.asarray(~hidden)
    inside = np.asarray(image_of(mask, "a mask as an array").voxels)
    if inside.shape != shape:
        raise ShapeError(f"Expected a mask of the map's shape {shape}, but the mask has shape {inside.shape}.")
    if inside.dtype.kind not in "biuf":
        raise VoxelTypeError(f"Expected a mask of booleans or numbers, but its dtype is {inside.dtype}.")
    inside = is_inside(inside)
    return inside if hidden is np.ma.nomask else inside & ~hidden


def too_many(counts: NDArray[Any]) -> str | None:
    """What to say of true counts of which one is more than is taken; None if none is."""
    if not counts.size or counts.max() <= MOST_LESIONS:
        return None
    return (
        f"Expected true counts of at most {MOST_LESIONS:,}, but that of scan {counts.argmax()} is {counts.max():.0f}."
    )

"""Images of other libraries → their voxels and voxel size. None of these libraries is imported here.

An image is known by what it can do: nibabel's has ``dataobj``, SimpleITK's ``GetSpacing``, MONAI's tensor ``pixdim``,
xarray's array ``dims`` and ``coords``.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ShapeError, VoxelTypeError

# What one unit of a coordinate is in millimetres; without a unit it is one.
_MILLIMETRES = {
    "": 1.0, "mm": 1.0, "millimeter": 1.0, "millimetre": 1.0, "millimeters": 1.0, "millimetres": 1.0,
    "um": 1e-3, "µm": 1e-3, "μm": 1e-3, "micrometer": 1e-3, "micrometre": 1e-3, "micrometers": 1e-3, "micron": 1e-3,
    "microns": 1e-3, "nm": 1e-6, "nanometer": 1e-6, "nanometre": 1e-6, "cm": 10.0, "centimeter": 10.0,
    "centimetre": 10.0, "m": 1e3, "meter": 1e3, "metre": 1e3, "meters": 1e3, "metres": 1e3,
}  # fmt: skip

# Coordinates in single precision step by what differs in the sixth digit.
_EVEN = 1e-4


@dataclass(frozen=True, eq=False)
class ImageOfMap:
    """What an image says about itself.

    Attributes
    ----------
    voxels : array_like
        Whatever it was, as something that numpy takes.
    spacing_mm : array_like, or None
        Voxel size along each axis, or the edges of a voxel as columns, where the image knows it.
    affine : ndarray, shape (4, 4), or None
        From voxel index to millimetres, of a volume that says where its voxels lie.
    """

    voxels: Any
    spacing_mm: tuple[float, ...] | NDArray[np.float64] | None = None
    affine: NDArray[np.float64] | None = None


def image_of(given: Any, what: str = "a 2-D or 3-D array of probabilities") -> ImageOfMap:
    """The voxels of an image, and their size; anything that is no image is passed on as it is."""
    if isinstance(given, str | bytes | os.PathLike):
        raise ShapeError(
            f"Expected {what}, but got the path {str(given)[:200]!r}. To count the map in a file, use "
            "lesioncount.count_file(path), for several lesioncount.count_files(paths)."
        )
    if hasattr(given, "requires_grad") and hasattr(given, "detach"):
        _check_tensor(given)
    if hasattr(given, "dataobj") and hasattr(given, "affine"):
        return _of_nibabel(given)
    if callable(getattr(given, "GetSpacing", None)):
        return _of_itk(given)
    if hasattr(given, "pixdim") and hasattr(given, "affine"):
        return _of_meta_tensor(given)
    if hasattr(given, "dims") and hasattr(given, "coords") and hasattr(given, "values"):
        return ImageOfMap(given.values, _xarray_spacing(given))
    return ImageOfMap(given)


def _check_tensor(tensor: Any) -> None:
    """Raise if a tensor cannot become an array as it is, and say what makes it one."""
    steps = ".detach()" if tensor.requires_grad else ""
    if "bfloat16" in str(tensor.dtype):
        steps += ".float()"
    if getattr(getattr(tensor, "device", None), "type", "cpu") != "cpu":
        steps += ".cpu()"
    if not steps:
        return
    why = {
        ".detach()": "requires grad",
        ".float()": "is bfloat16, which numpy does not have",
        ".cpu()": "is on a device",
    }
    reasons = " and ".join(reason for step, reason in why.items() if step in steps)
    train = " To train through the count, use lesioncount.torch.CountLoss." if tensor.requires_grad else ""
    raise VoxelTypeError(f"Expected an array, but this tensor {reasons}. Pass tensor{steps}.{train}")


def _of_nibabel(image: Any) -> ImageOfMap:
    voxels = np.asanyarray(image.dataobj)
    while voxels.ndim > 3 and voxels.shape[-1] == 1:
        voxels = voxels[..., 0]
    unit = 1.0
    if hasattr(image.header, "get_xyzt_units"):
        unit = _MILLIMETRES.get(image.header.get_xyzt_units()[0], 1.0)
    affine = np.array(image.header.get_best_affine() if image.affine is None else image.affine, dtype=np.float64)
    affine[:3] *= unit
    return _placed(voxels, affine)


def _of_itk(image: Any) -> ImageOfMap:
    """SimpleITK has its axes the other way round: x first in sizes, last in arrays."""
    package = sys.modules[type(image).__module__.partition(".")[0]]
    view = getattr(package, "GetArrayViewFromImage", None)
    voxels = np.asarray(image) if view is None else view(image)
    return ImageOfMap(voxels, _fitting(tuple(map(float, image.GetSpacing()))[::-1], voxels))


def _of_meta_tensor(tensor: Any) -> ImageOfMap:
    voxels = np.asarray(tensor)
    if getattr(tensor, "is_batch", False):
        return ImageOfMap(voxels)
    if voxels.ndim == 4 and len(voxels) == 1:
        voxels = voxels[0]  # MONAI's images have channels, and this one a single one
    return _placed(voxels, np.asarray(tensor.affine, dtype=np.float64))


def _placed(voxels: NDArray[Any], affine: NDArray[np.float64]) -> ImageOfMap:
    matrix = affine[:-1, :-1]
    if voxels.ndim not in (2, 3) or matrix.shape[0] < voxels.ndim or not np.isfinite(matrix).all():
        return ImageOfMap(voxels)
    if voxels.ndim == 3 and np.linalg.det(matrix) != 0:
        return ImageOfMap(voxels, matrix, affine)
    sizes = np.sqrt((matrix**2).sum(axis=0))[: voxels.ndim]
    return ImageOfMap(voxels, tuple(sizes.tolist()) if sizes.all() else None)


def _fitting(spacing: tuple[float, ...], voxels: NDArray[Any]) -> tuple[float, ...] | None:
    """The voxel size, where it has a number for each axis."""
    return spacing if len(spacing) == voxels.ndim else None


def _xarray_spacing(array: Any) -> tuple[float, ...] | None:
    """The steps of the coordinates; None where an axis has none, or they are uneven, or no lengths."""
    steps = [_step(array.coords[dim]) if dim in array.coords else None for dim in array.dims]
    known = tuple(step for step in steps if step is not None)
    return known if len(known) == len(steps) else None


def _step(coordinate: Any) -> float | None:
    values = np.asarray(coordinate.values)
    unit = _MILLIMETRES.get(str(getattr(coordinate, "attrs", {}).get("units", "")).strip().lower())
    if unit is None or values.ndim != 1 or len(values) < 2 or values.dtype.kind not in "iuf":
        return None
    steps = np.diff(values.astype(np.float64))
    step = float(steps.mean())
    if not np.isfinite(step) or step == 0 or np.abs(steps - step).max() > _EVEN * abs(step):
        return None
    return abs(step) * unit

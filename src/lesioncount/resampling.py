"""A map on the grid of another one in the same space, through the affines of both."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ShapeError

# Voxels of the new grid that are made at once: coordinates and eight neighbours of each take some 100 MB.
_AT_ONCE = 1 << 20

# Rounding of affines in headers: a voxel this far outside of a grid, in voxels, is on its edge.
_ON_THE_EDGE = 1e-3

# Grids whose voxels lie no farther apart than this share of a voxel are the same.
_SAME = 0.01


def resampled(
    values: NDArray[Any], affine: NDArray[np.float64], shape: tuple[int, ...], to_affine: NDArray[np.float64], /
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """A volume on another grid, linear between voxels and 0 outside; and which voxels of that grid it covers.

    Parameters
    ----------
    values : ndarray, three axes
    affine : ndarray, shape (4, 4)
        From its voxel indices to millimetres.
    shape, to_affine
        Of the other grid.

    Raises
    ------
    ShapeError
        If the two do not overlap.

    Examples
    --------
    >>> half, covered = resampled(np.ones((2, 2, 2)), np.eye(4), (4, 2, 2), np.diag([0.5, 1, 1, 1]))
    >>> half[:, 0, 0], covered[:, 0, 0]
    (array([1., 1., 1., 0.], dtype=float32), array([ True,  True,  True, False]))
    """
    if values.ndim != 3 or len(shape) != 3:
        raise ShapeError("Only volumes have a place in space, and can be resampled; pictures must have the same size.")
    step = np.linalg.solve(affine, to_affine)  # from an index of the other grid to one of this
    out, covered = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=bool)
    planes = max(1, _AT_ONCE // (shape[1] * shape[2]))
    for begin in range(0, shape[0], planes):
        part = slice(begin, begin + planes)
        index = np.indices(out[part].shape, dtype=np.float64)
        index[0] += begin
        place = np.tensordot(step[:3, :3], index, axes=1) + step[:3, 3, None, None, None]
        covered[part] = _is_inside(place, values.shape)
        out[part][covered[part]] = _between(values, place[:, covered[part]])
    if not covered.any():
        raise ShapeError(
            f"The two maps do not overlap in space. Are they of one patient, and registered?\nShape {values.shape}, "
            f"affine:\n{affine}\nShape {shape}, affine:\n{to_affine}"
        )
    return out, covered


def same_place(affine: NDArray[np.float64], other: NDArray[np.float64], shape: tuple[int, ...]) -> bool:
    """Whether the voxels of two grids of one shape lie in the same places, up to rounding of headers."""
    corners = np.array(np.meshgrid(*[(0, n - 1) for n in shape], indexing="ij")).reshape(3, -1)
    step = np.linalg.solve(affine, other)
    return bool(np.abs(step[:3, :3] @ corners + step[:3, 3:] - corners).max() <= _SAME)


def _is_inside(place: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Whether places (3, …), in voxels, lie between the voxels of a grid."""
    last = np.array(shape)[:, None, None, None] - 1
    return np.asarray(((place >= -_ON_THE_EDGE) & (place <= last + _ON_THE_EDGE)).all(axis=0))


def _between(values: NDArray[Any], place: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values at places (3, n) between voxels."""
    last = np.array(values.shape)[:, None] - 1
    place = np.clip(place, 0, last)
    low = np.minimum(np.floor(place), np.maximum(last - 1, 0)).astype(np.intp)
    share = place - low
    found = np.zeros(place.shape[1])
    for corner in itertools.product((0, 1), repeat=3):
        weight = np.prod([part if up else 1 - part for part, up in zip(share, corner, strict=True)], axis=0)
        at = tuple(np.minimum(one + up, n - 1) for one, up, n in zip(low, corner, values.shape, strict=True))
        found += np.where(weight > 0, weight * values[at], 0.0)  # a neighbour without weight may be NaN
    return found

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
) -> tuple[NDArray[np.float32], float]:
    """A volume on another grid, linear between voxels and 0 outside; and how much of that grid it covers.

    Parameters
    ----------
    values : ndarray, three axes
    affine : ndarray, shape (4, 4)
        From its voxel indices to millimetres.
    shape, to_affine
        Of the other grid.

    Returns
    -------
    resampled : ndarray of float32
    share : float
        Of the voxels of the other grid that lie inside of the first.

    Examples
    --------
    >>> half, share = resampled(np.ones((2, 2, 2)), np.eye(4), (4, 2, 2), np.diag([0.5, 1, 1, 1]))
    >>> half[:, 0, 0], share
    (array([1., 1., 1., 0.], dtype=float32), 0.75)
    """
    if values.ndim != 3 or len(shape) != 3:
        raise ShapeError("Only volumes have a place in space, and can be resampled; pictures must have the same size.")
    step = np.linalg.solve(affine, to_affine)  # from an index of the other grid to one of this
    out = np.empty(shape, dtype=np.float32)
    planes = max(1, _AT_ONCE // (shape[1] * shape[2]))
    n_inside = 0
    for begin in range(0, shape[0], planes):
        index = np.indices((min(planes, shape[0] - begin), *shape[1:]), dtype=np.float64)
        index[0] += begin
        place = np.tensordot(step[:3, :3], index, axes=1) + step[:3, 3, None, None, None]
        out[begin : begin + planes], inside = _at(values, place)
        n_inside += inside
    return out, n_inside / out.size


def same_place(affine: NDArray[np.float64], other: NDArray[np.float64], shape: tuple[int, ...]) -> bool:
    """Whether the voxels of two grids of one shape lie in the same places, up to rounding of headers."""
    corners = np.array(np.meshgrid(*[(0, n - 1) for n in shape], indexing="ij")).reshape(3, -1)
    step = np.linalg.solve(affine, other)
    return bool(np.abs(step[:3, :3] @ corners + step[:3, 3:] - corners).max() <= _SAME)


def overlapping(
    values: NDArray[Any], affine: NDArray[np.float64], shape: tuple[int, ...], to_affine: NDArray[np.float64]
) -> NDArray[np.float32]:
    """A map on another grid of the same space; raise if they do not overlap."""
    found, share = resampled(values, affine, shape, to_affine)
    if share == 0:
        raise ShapeError(
            f"The two maps do not overlap in space. Are they of one patient, and registered?\nShape {values.shape}, "
            f"affine:\n{affine}\nShape {shape}, affine:\n{to_affine}"
        )
    return found


def _at(values: NDArray[Any], place: NDArray[np.float64]) -> tuple[NDArray[np.float32], int]:
    """Values between voxels, at places (3, …) in voxels; and how many of these lie inside."""
    last = np.array(values.shape)[:, None, None, None] - 1
    inside = ((place >= -_ON_THE_EDGE) & (place <= last + _ON_THE_EDGE)).all(axis=0)
    place = np.clip(place[:, inside], 0, last[:, :, 0, 0])
    low = np.minimum(np.floor(place), np.maximum(last[:, :, 0, 0] - 1, 0)).astype(np.intp)
    share = place - low
    found = np.zeros(place.shape[1])
    for corner in itertools.product((0, 1), repeat=3):
        weight = np.prod([part if up else 1 - part for part, up in zip(share, corner, strict=True)], axis=0)
        at = tuple(np.minimum(one + up, n - 1) for one, up, n in zip(low, corner, values.shape, strict=True))
        found += np.where(weight > 0, weight * values[at], 0.0)  # a neighbour without weight may be NaN
    out = np.zeros(inside.shape, dtype=np.float32)
    out[inside] = found
    return out, int(np.count_nonzero(inside))

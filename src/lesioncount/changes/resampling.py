"""A map on the grid of another one in the same space, through the affines of both."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ShapeError

# Voxels of the new grid that are made at once: coordinates and neighbours take a few MB, and stay in the cache.
_AT_ONCE = 1 << 16

# Rounding of affines in headers: this far from a voxel, in voxels, is on it; this far outside of a grid, on its edge.
_ROUNDING = 1e-3

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
    last = np.array(values.shape)[:, None, None, None] - 1
    planes = max(1, _AT_ONCE // (shape[1] * shape[2]))
    for begin in range(0, shape[0], planes):
        part = slice(begin, min(begin + planes, shape[0]))
        place = _places(step, part, shape)
        inside = ((place >= -_ROUNDING) & (place <= last + _ROUNDING)).all(axis=0)
        covered[part] = inside
        out[part][inside] = _between(values, np.clip(place[:, inside], 0, last[..., 0, 0]))
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


def _places(step: NDArray[np.floating], planes: slice, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Where some planes of a grid lie in another one, in voxels of that: (3, …)."""
    i, j, k = np.ogrid[planes, : shape[1], : shape[2]]
    place = np.stack([row[0] * i + (row[1] * j + (row[2] * k + row[3])) for row in step[:3]])
    nearest = np.rint(place)
    return np.where(np.abs(place - nearest) <= _ROUNDING, nearest, place)


def _between(values: NDArray[Any], place: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values at places (3, n) between voxels: along the last axis first, then along the others."""
    low = np.floor(place).astype(np.intp)
    share = place - low
    high = low + (share > 0)  # on a voxel, its neighbour takes no part, and may be NaN
    found = {
        corner: values[tuple((high if up else low)[axis] for axis, up in enumerate(corner))]
        for corner in itertools.product((0, 1), repeat=3)
    }
    for axis in (2, 1, 0):
        found = {
            rest: (1 - share[axis]) * found[*rest, 0] + share[axis] * found[*rest, 1]
            for rest in itertools.product((0, 1), repeat=axis)
        }
    return np.asarray(found[()])

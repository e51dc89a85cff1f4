"""The faces of a brick: its outermost voxels above the threshold, and what touches them across a seam."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.sweep.boxes import Box

# Plane, row and column in the map, and the row of its region in the table of the brick.
FACE: np.dtype[Any] = np.dtype([("at", "i4", 3), ("region", "i4")])


def faces_of(runs: NDArray[Any], index: NDArray[np.int64], box: Box, whole: Box) -> NDArray[Any]:
    """The voxels of runs that lie in a face: all of some rows, the ends of others.

    Parameters
    ----------
    runs : array of RUN
    index : array of int, shape (n, 3)
        Plane, row and column in the map of the first voxel of each run.
    box, whole : Box
        Of the brick, and of the map.
    """
    lengths = runs["length"].astype(np.int64)
    is_outer = is_in_face(index, box, whole, axes=(0, 1))
    begins = ~is_outer & (index[:, 2] == box.low[2]) & (box.low[2] > 0)
    ends = ~is_outer & (index[:, 2] + lengths == box.high[2]) & (box.high[2] < whole.high[2])
    last = index.copy()
    last[:, 2] += lengths - 1
    one = np.ones_like(lengths)
    parts = ((is_outer, index, lengths), (begins, index, one), (ends, last, one))
    return np.concatenate([_voxels(first[of], n[of], runs["region"][of]) for of, first, n in parts])


def is_in_face(at: NDArray[Any], box: Box, whole: Box, *, axes: tuple[int, ...] = (0, 1, 2)) -> NDArray[np.bool_]:
    """Which voxels, (n, 3), are in the first or last layer of a box along an axis, with more of the map beyond it."""
    found = np.zeros(len(at), bool)
    for axis in axes:
        if box.low[axis] > whole.low[axis]:
            found |= at[:, axis] == box.low[axis]
        if box.high[axis] < whole.high[axis]:
            found |= at[:, axis] == box.high[axis] - 1
    return found


def touching(
    before: NDArray[Any], after: NDArray[Any], axis: int, seam: int, whole: Box, neighbours: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The regions of two bricks that touch, pair by pair, each as often as it does.

    Parameters
    ----------
    before, after : array of FACE
        Of the two bricks.
    axis, seam : int
        The first layer of the second brick along this axis.
    whole : Box
        Of the map.
    neighbours : int
        Connectivity: how many axes a step to a neighbour may change.
    """
    before, after = before[before["at"][:, axis] == seam - 1], after[after["at"][:, axis] == seam]
    along, across = (other for other in range(3) if other != axis)
    # Rows are laid end to end with a gap of two, so that a step cannot lead from the end of one into another.
    width = whole.high[across] + 2
    here, there = (faces["at"][:, along] * np.int64(width) + faces["at"][:, across] for faces in (before, after))
    order = np.argsort(there)
    there, regions = there[order], after["region"][order]
    pairs = [(np.zeros(0, np.int32), np.zeros(0, np.int32))]
    for step in _steps(width, neighbours) if len(there) else ():
        place = np.minimum(np.searchsorted(there, here + step), len(there) - 1)
        is_there = there[place] == here + step
        pairs.append((before["region"][is_there], regions[place[is_there]]))
    ones, others = zip(*pairs, strict=True)
    return np.concatenate(ones), np.concatenate(others)


def _steps(width: int, neighbours: int) -> Iterator[int]:
    """What may change along a seam with a step across it."""
    for along, across in itertools.product((-1, 0, 1), repeat=2):
        if 1 + abs(along) + abs(across) <= neighbours:
            yield along * width + across


def _voxels(first: NDArray[np.int64], lengths: NDArray[np.int64], regions: NDArray[np.int32]) -> NDArray[Any]:
    """All voxels of some runs."""
    voxels = np.empty(int(lengths.sum()), FACE)
    voxels["at"] = np.repeat(first, lengths, axis=0)
    voxels["at"][:, 2] += (np.arange(len(voxels)) - np.repeat(np.cumsum(lengths) - lengths, lengths)).astype(np.int32)
    voxels["region"] = np.repeat(regions, lengths)
    return voxels

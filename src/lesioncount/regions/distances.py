"""How far candidates are from voxels with certain labels, up to a bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.candidates import Candidates
from lesioncount.regions.nearby import Ball, voxel_size_of

# Up to so many labels, comparing with each is quicker than looking them up.
_FEW = 8

# How many times as many steps are looked at each time that some candidates have been reached.
_MORE = 8


def distance_to(
    candidates: Candidates, labels: NDArray[Any], asked: Sequence[tuple[Sequence[int], float]]
) -> list[NDArray[np.float64]]:
    """The distance from the nearest voxel of each candidate, between the centres of voxels.

    Parameters
    ----------
    candidates : Candidates
        With the runs of their voxels, and with a voxel size.
    labels : ndarray of int
        Of the shape of their map.
    asked : sequence of (labels, millimetres)
        To which labels, and up to which distance: what is farther away is infinitely far.
    """
    rows, index = candidates.voxels()
    # NIfTI files are stored with the first axis fastest: read so, they need not be copied.
    step = -1 if labels.flags.f_contiguous else 1
    voxels = np.ascontiguousarray(labels.transpose() if step < 0 else labels)
    axes = np.arange(labels.ndim)[::step]
    found = []
    for wanted, radius_mm in asked:
        ball = Ball.of(radius_mm, voxel_size_of(candidates))
        looked_at = _may_be_near(candidates, labels, wanted, ball.steps.max(axis=0))[rows]
        voxels_of = rows[looked_at], index[looked_at][:, axes]
        found.append(_nearest(*voxels_of, voxels, wanted, ball.along(axes), len(candidates)))
    return found


def _may_be_near(
    candidates: Candidates, labels: NDArray[Any], wanted: Sequence[int], reach: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which candidates have one of the labels in their bounding box, made larger by some voxels: mostly a few."""
    n = len(candidates.shape)
    low, high = np.maximum(candidates.bbox[:, :n] - reach, 0), candidates.bbox[:, n:] + reach
    boxes = (tuple(map(slice, first, end)) for first, end in zip(low.tolist(), high.tolist(), strict=True))
    return np.array([_is_one_of(labels[box], wanted).any() for box in boxes], dtype=bool)


def _nearest(
    rows: NDArray[np.int32],
    index: NDArray[np.int64],
    labels: NDArray[Any],
    wanted: Sequence[int],
    ball: Ball,
    n_candidates: int,
) -> NDArray[np.float64]:
    """The distance of each candidate, given the row and the index of each voxel; infinite beyond the ball."""
    nearest, begin, n_steps = np.full(n_candidates, np.inf), 0, 1
    # Steps come by their length: what has been reached by short ones, as large candidates mostly are, needs no others.
    while begin < len(ball.steps) and len(rows):
        end = begin + n_steps
        steps = Ball(ball.steps[begin:end], ball.distance_mm[begin:end])
        np.minimum.at(nearest, rows, _of_voxels(index, labels, wanted, steps))
        is_left = np.isinf(nearest[rows])
        rows, index, begin, n_steps = rows[is_left], index[is_left], end, _MORE * n_steps
    return nearest


def _of_voxels(
    index: NDArray[np.int64], labels: NDArray[Any], wanted: Sequence[int], ball: Ball
) -> NDArray[np.float64]:
    """The distance from each voxel to the nearest with one of the labels that are wanted; infinite beyond the ball."""
    distance, flat = np.full(len(index), np.inf), labels.reshape(-1)
    for some, position in ball.around(index, labels.shape):
        is_there = _is_one_of(flat[position], wanted)
        nearest = is_there.argmax(axis=0)  # the steps of a ball come by their length
        reached = is_there[nearest, np.arange(len(nearest))]
        distance[some] = np.where(reached, ball.distance_mm[nearest], np.inf)
    return distance


def _is_one_of(labels: NDArray[Any], wanted: Sequence[int]) -> NDArray[np.bool_]:
    if len(wanted) > _FEW:
        return np.isin(labels, wanted)
    found = np.zeros(labels.shape, dtype=bool)
    for label in wanted:
        found |= labels == label
    return found

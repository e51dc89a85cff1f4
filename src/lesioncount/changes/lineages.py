"""Candidates of several sessions → lesions through time: which of them are one and the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lesioncount.candidates import Candidates
from lesioncount.regions.nearby import Ball, axes_in_memory, voxel_size_of

# From candidates of two sessions and a tolerance: rows that belong together, (n, 2), in several arrays.
Links = Callable[[Candidates, Candidates, float], tuple[NDArray[np.int64], ...]]


@dataclass(frozen=True, eq=False)
class Lineages:
    """Which candidates of several sessions are one lesion through time.

    A candidate goes on in the one of the next session that most of its voxels lie on, or within the tolerance of; and
    so backwards. All that is joined in this way is one lineage: a lesion that splits, or two that merge, stay one.

    Attributes
    ----------
    of : tuple of ndarray of int
        For each session, the lineage of each candidate. Lineages are numbered from 1, as they appear.
    """

    of: tuple[NDArray[np.int64], ...]

    def __len__(self) -> int:
        return max((int(numbers.max(initial=0)) for numbers in self.of), default=0)

    @classmethod
    def follow(cls, sessions: Sequence[Candidates], within_mm: float, links_of: Links | None = None) -> Lineages:
        """Through sessions whose maps lie on one grid, in the order of time; or whatever says what belongs together."""
        ends = np.cumsum([0, *(len(one) for one in sessions)])
        links = [
            pairs + np.array([begin, middle])
            for (begin, middle), (before, after) in zip(
                itertools.pairwise(ends[:-1]), itertools.pairwise(sessions), strict=True
            )
            for pairs in (links_of or _links)(before, after, within_mm)
        ]
        numbers = _joined(int(ends[-1]), np.concatenate([np.empty((0, 2), np.int64), *links]))
        return cls(tuple(numbers[begin:end] for begin, end in itertools.pairwise(ends)))


def _links(before: Candidates, after: Candidates, within_mm: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows that belong together, (n, 2): what each candidate was before, and what each has become."""
    was, became = _partner(after, before, within_mm), _partner(before, after, within_mm)
    return (
        np.stack([was, np.arange(len(after))], axis=1)[was >= 0],
        np.stack([np.arange(len(before)), became], axis=1)[became >= 0],
    )


def _partner(candidates: Candidates, others: Candidates, within_mm: float) -> NDArray[np.int64]:
    """For each candidate, the row of another session that most of its voxels are nearest to; -1 if none is near."""
    partner = np.full(len(candidates), -1, dtype=np.int64)
    if len(candidates) == 0 or len(others) == 0:
        return partner
    rows, index = candidates.voxels()
    nearest = _nearest(index, others, Ball.of(within_mm, voxel_size_of(candidates)))
    is_near = nearest > 0
    # 64 bits: tens of thousands of candidates at both times make more pairs than 32 bits can number.
    votes, n = np.unique(rows[is_near] * np.int64(len(others) + 1) + nearest[is_near], return_counts=True)
    row, label = np.divmod(votes, len(others) + 1)
    order = np.lexsort((-label, n))  # the most votes come last, and of equals the first
    partner[row[order]] = label[order] - 1
    return partner


def _nearest(index: NDArray[np.int64], others: Candidates, ball: Ball) -> NDArray[np.int64]:
    """For each voxel, the label of the candidate that is nearest to it; 0 if none is within the ball."""
    label_map = others.label_map()
    nearest: NDArray[np.int64] = label_map[tuple(index.T)].astype(np.int64)
    beside = np.flatnonzero(nearest == 0)  # of a lesion that stays, a few: the others need no search
    axes = axes_in_memory(label_map)
    ordered = label_map.transpose(axes)
    flat = ordered.reshape(-1)
    for some, position in ball.along(axes).around(index[beside][:, axes], ordered.shape):
        labels = flat[position]
        nearest[beside[some]] = labels[(labels > 0).argmax(axis=0), np.arange(labels.shape[1])]
    return nearest


def _joined(n: int, links: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers, from 1, of what is joined by links; in the order in which they appear."""
    root = list(range(n))

    def root_of(one: int) -> int:
        while root[one] != one:
            root[one] = root[root[one]]
            one = root[one]
        return one

    for a, b in links.tolist():
        low, high = sorted((root_of(a), root_of(b)))
        root[high] = low
    roots = np.array([root_of(one) for one in range(n)], dtype=np.int64)
    return np.asarray(np.unique(roots, return_inverse=True)[1] + 1, dtype=np.int64)

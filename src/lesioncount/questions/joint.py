"""Independent parts of what is added to the sums of a question, and the joint distribution of these sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Up to so many places of a part, a table is moved to each and added; of more, its cells are, if they are few.
_FEW_PLACES = 16

# From so many parts on, systematic rounding becomes visible in the thirteenth digit of their total.
_MANY = 1000


@dataclass(frozen=True, eq=False)
class Part:
    """What one candidate adds to the sums, or all those that add the same.

    Parameters
    ----------
    places : ndarray of int, shape (n, F)
        Each combination of what may be added to the sums.
    probability : ndarray of float, shape (…, n)
        Of each; of one scan or of many side by side.
    """

    places: NDArray[np.int64]
    probability: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Joint:
    """Probabilities of all combinations of values of some sums, of one scan or of many side by side.

    Parameters
    ----------
    values : ndarray of float, shape (…, L_1, … L_F)
        Scans, then an axis for each sum.
    low : ndarray of int, shape (F,)
        The value that the first entry of each axis stands for.
    """

    values: NDArray[np.float64]
    low: NDArray[np.int64]

    @classmethod
    def of(cls, part: Part) -> Joint:
        """The table of a part."""
        low = part.places.min(axis=0)
        values = np.zeros((*part.probability.shape[:-1], *(part.places.max(axis=0) - low + 1)))
        values[(..., *(part.places - low).T)] = part.probability
        return cls(values, low)

    def as_part(self) -> Part:
        """The same as a part of something else."""
        cells: tuple[Any, ...] = self._cells()
        return Part(np.transpose(cells) + self.low, self.values[(..., *cells)])

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of values of each sum."""
        return self.values.shape[self.values.ndim - len(self.low) :]

    def plus(self, part: Part, high: Sequence[int]) -> Joint:
        """The distribution of the sums with an independent part; what is above the end of an axis counts as the end."""
        first = part.places.min(axis=0)
        low, last = self.low + first, self.low + self.shape - 1 + part.places.max(axis=0)
        moved = Part(part.places - first, part.probability)
        return Joint(self._added(moved, tuple((np.minimum(last, high) - low + 1).tolist())), low)

    def _added(self, part: Part, shape: tuple[int, ...]) -> NDArray[np.float64]:
        if len(part.places) > _FEW_PLACES:
            cells = self._cells()
            if len(part.places) * len(cells[0]) <= math.prod(shape):
                return self._cell_by_cell(cells, part, shape)
        added = np.zeros((*part.probability.shape[:-1], *shape))
        wide = (..., *[np.newaxis] * len(shape))
        for i, place in enumerate(part.places.tolist()):
            _add_moved(added, self.values * part.probability[..., i][wide], place)
        return added

    def _cell_by_cell(
        self, cells: tuple[NDArray[np.intp], ...], part: Part, shape: tuple[int, ...]
    ) -> NDArray[np.float64]:
        """All pairs of a place of a part and a cell that is possible, scan by scan."""
        where = np.zeros((len(part.places), len(cells[0])), dtype=np.intp)
        for place, cell, n in zip(part.places.T, cells, shape, strict=True):
            where = where * n + np.minimum(place[:, np.newaxis] + cell, n - 1)
        scans = zip(part.probability.reshape(-1, len(where), 1), self.values.reshape(-1, *self.shape), strict=True)
        added = [np.bincount(where.ravel(), (p * values[cells]).ravel(), math.prod(shape)) for p, values in scans]
        return np.reshape(added, (*part.probability.shape[:-1], *shape))

    def _cells(self) -> tuple[NDArray[np.intp], ...]:
        """Where combinations are that are possible in any of the scans."""
        return np.nonzero(self.values.reshape(-1, *self.shape).any(axis=0))


def total(parts: Sequence[Part], n_nodes: int, high: Sequence[int]) -> Joint:
    """The distribution of the sums of all parts."""
    if not parts:
        return Joint(np.ones((n_nodes, *[1] * len(high))), np.zeros(len(high), dtype=np.int64))
    largest, *others = sorted(parts, key=lambda part: -len(part.places))
    joint = reduce(lambda joint, part: joint.plus(part, high), others, Joint.of(largest))
    if len(parts) > _MANY:
        joint.values[:] /= joint.values.sum(axis=tuple(range(1, joint.values.ndim)), keepdims=True)
    return joint


def n_cells(parts: Sequence[Part], high: Sequence[int]) -> int:
    """The size of the table of their total."""
    low = sum((part.places.min(axis=0) for part in parts), np.zeros(len(high), dtype=np.int64))
    up = sum((part.places.max(axis=0) for part in parts), np.zeros(len(high), dtype=np.int64))
    return math.prod((np.minimum(up, high) - low + 1).tolist())


def _add_moved(total: NDArray[np.float64], block: NDArray[np.float64], place: list[int]) -> None:
    where: list[Any] = [...]
    for axis, begin in enumerate(place, total.ndim - len(place)):
        block = folded(block, axis, total.shape[axis] - begin)
        where.append(slice(begin, begin + block.shape[axis]))
    total[tuple(where)] += block


def folded(values: NDArray[np.float64], axis: int, room: int) -> NDArray[np.float64]:
    """The first entries of an axis, as many as there is room for; others are added to the last of these, in place."""
    if values.shape[axis] <= room:
        return values
    kept, rest = np.split(values, [room], axis=axis)
    np.moveaxis(kept, axis, 0)[-1] += rest.sum(axis=axis)
    return kept

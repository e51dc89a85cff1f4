"""The joint distribution of several sums, each up to where more of it changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Joint:
    """Probabilities of all combinations of values of some sums, of one scan or of many side by side.

    Parameters
    ----------
    values : ndarray of float, shape (…, L_1, … L_F)
        Scans, then an axis for each sum.
    low : tuple of int, length F
        The value that the first entry of each axis stands for.
    """

    values: NDArray[np.float64]
    low: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of values of each sum."""
        return self.values.shape[self.values.ndim - len(self.low) :]

    @cached_property
    def cells(self) -> NDArray[np.intp]:
        """Combinations that are possible in any of the scans."""
        return np.argwhere(self.values.reshape(-1, *self.shape).any(axis=0))


def added(a: Joint, b: Joint, ends: tuple[int, ...]) -> Joint:
    """The distribution of the sums of two independent parts; a value above the end of its axis is taken as the end."""
    if len(a.cells) < len(b.cells):
        a, b = b, a
    low = tuple(x + y for x, y in zip(a.low, b.low, strict=True))
    lengths = zip(low, a.shape, b.shape, ends, strict=True)
    shape = tuple(min(begin + n_a + n_b - 2, end) - begin + 1 for begin, n_a, n_b, end in lengths)
    total = np.zeros((*a.values.shape[: a.values.ndim - len(low)], *shape))
    wide = (..., *[np.newaxis] * len(low))
    for cell in b.cells.tolist():
        _add_shifted(total, a.values * b.values[(..., *cell)][wide], cell)
    return Joint(total, low)


def _add_shifted(total: NDArray[np.float64], block: NDArray[np.float64], cell: list[int]) -> None:
    first = total.ndim - len(cell)
    where: list[Any] = [...]
    for axis, begin in enumerate(cell, first):
        room = total.shape[axis] - begin
        if block.shape[axis] > room:
            block = _folded(block, axis, room)
        where.append(slice(begin, begin + block.shape[axis]))
    total[tuple(where)] += block


def _folded(block: NDArray[np.float64], axis: int, room: int) -> NDArray[np.float64]:
    """All entries of an axis from the last that there is room for, as one."""
    return np.add.reduceat(block, np.arange(room), axis=axis)

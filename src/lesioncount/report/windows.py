"""Candidates → the parts of the map around them, cut out while the file is read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.files import MapSource
from lesioncount.results.lesion_rows import LesionRow

# What is shown around a candidate: about half of a brain, enough to recognise the place.
_CONTEXT_MM = 64.0

# A candidate fills at most this part of the picture, so that something is seen around it.
_LARGEST_PART = 0.6

# Pictures of more voxels are finer than the screen; and a window of all of them is held, cubed.
_MOST_VOXELS = 160


@dataclass(frozen=True)
class Window:
    """A box in the map, and the peak of its candidate."""

    box: tuple[slice, ...]
    peak: tuple[int, ...]

    @property
    def peak_inside(self) -> tuple[int, ...]:
        """Index of the peak in the box."""
        return tuple(index - part.start for index, part in zip(self.peak, self.box, strict=True))

    def is_all_of(self, shape: tuple[int, ...]) -> bool:
        """Whether the box is the whole map."""
        return all(part.stop - part.start == n for part, n in zip(self.box, shape, strict=True))

    def inside(self, index: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """Index of a voxel in the box; None if it is not there."""
        if index is None or not all(part.start <= i < part.stop for i, part in zip(index, self.box, strict=True)):
            return None
        return tuple(i - part.start for i, part in zip(index, self.box, strict=True))


def window_of(lesion: LesionRow, shape: tuple[int, ...], spacing_mm: tuple[float, ...] | None) -> Window:
    """The window that shows a candidate."""
    spacing = np.ones(len(shape)) if spacing_mm is None else np.array(spacing_mm)
    low, high = np.array(lesion.bbox.split(), dtype=int).reshape(2, len(shape))
    peak = np.array(lesion.peak)
    side_mm = max(min(_CONTEXT_MM, _MOST_VOXELS * spacing.min()), ((high - low) * spacing).max() / _LARGEST_PART)
    size = np.minimum(np.ceil(side_mm / spacing).astype(int), np.minimum(shape, _MOST_VOXELS))
    # Around the middle of the candidate; around its peak if it does not fit.
    middle = np.where(high - low <= size, (low + high) // 2, peak)
    start = np.clip(middle - size // 2, 0, np.array(shape) - size)
    box = tuple(slice(int(a), int(a + n)) for a, n in zip(start, size, strict=True))
    return Window(box, tuple(int(index) for index in peak))


def read_windows(source: MapSource, windows: Sequence[Window]) -> list[NDArray[Any]]:
    """What is stored in each window; no more of the map is held than these and one piece."""
    axis = source.axis
    parts: list[list[NDArray[Any]]] = [[] for _ in windows]
    begin = 0
    for piece in source.pieces():
        end = begin + piece.shape[axis]
        for window, part in zip(windows, parts, strict=True):
            first, last = max(window.box[axis].start, begin), min(window.box[axis].stop, end)
            if first < last:
                along = (*window.box[:axis], slice(first - begin, last - begin), *window.box[axis + 1 :])
                part.append(piece[along].copy())
        begin = end
    return [np.concatenate(part, axis=axis) for part in parts]

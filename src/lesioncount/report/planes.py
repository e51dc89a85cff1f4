"""A candidate → the window around it, and the planes through its peak, turned as radiologists look at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.report.pictures import Plane, address_of, outline
from lesioncount.results.lesion_rows import LesionRow

_ANATOMICAL = ("sagittal", "coronal", "axial")
_ENDS = (("R", "L"), ("A", "P"), ("S", "I"))

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

    @property
    def alone(self) -> Window:
        """The same, cut out of its map."""
        return Window(tuple(slice(0, part.stop - part.start) for part in self.box), self.peak_inside)

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


@dataclass(frozen=True)
class View:
    """How the axes of a map are laid out on the page.

    Attributes
    ----------
    axes : tuple of int
        The axis of the map (2 is the thickness of a 2-D map) that is shown as x, y and z.
    flipped : tuple of bool
        Whether x, y and z run against the axis of the map.
    is_anatomical : bool
        Whether x, y and z run from right to left, anterior to posterior and superior to inferior.
    """

    axes: tuple[int, int, int]
    flipped: tuple[bool, bool, bool]
    is_anatomical: bool

    @classmethod
    def of(cls, affine: NDArray[np.float64] | None) -> View:
        """The radiological view (patient's right on the left); as arrays are printed when nothing is known."""
        if affine is None:
            return cls((2, 1, 0), (False, False, False), is_anatomical=False)
        from nibabel.orientations import io_orientation

        orientation = io_orientation(affine)
        axes = np.argsort(orientation[:, 0])
        x, y, z = (int(axis) for axis in axes)
        # Affines are RAS: an axis that runs towards R, A or S must be turned round to begin there.
        right, front, up = (bool(orientation[axis, 1] > 0) for axis in axes)
        return cls((x, y, z), (right, front, up), is_anatomical=True)

    def turned(self, window: NDArray[Any]) -> NDArray[Any]:
        """The voxels of a window as x, y, z."""
        voxels = window.reshape(*window.shape, *(1,) * (3 - window.ndim)).transpose(self.axes)
        return voxels[tuple(slice(None, None, -1 if flip else None) for flip in self.flipped)]

    def turned_index(self, index: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
        """Where a voxel of a window is after `turned`."""
        index, shape = (*index, 0)[:3], (*shape, 1)[:3]
        return tuple(
            shape[a] - 1 - index[a] if flip else index[a] for a, flip in zip(self.axes, self.flipped, strict=True)
        )

    def turned_box(self, box: Sequence[slice], shape: Sequence[int]) -> tuple[slice, ...]:
        """Where a box in the window is after `turned`."""
        box, shape = (*box, slice(0, 1))[:3], (*shape, 1)[:3]
        return tuple(
            slice(shape[a] - box[a].stop, shape[a] - box[a].start) if flip else box[a]
            for a, flip in zip(self.axes, self.flipped, strict=True)
        )

    def name(self, across: int) -> str:
        """The name of the planes across x, y or z."""
        return _ANATOMICAL[across] if self.is_anatomical else f"across axis {self.axes[across]}"

    def letters(self, columns: int, rows: int) -> tuple[str, str, str, str] | None:
        """Left, right, top and bottom of planes with these of x, y and z along columns and rows."""
        return (*_ENDS[columns], *_ENDS[rows]) if self.is_anatomical else None


def planes_through(
    shades: NDArray[np.uint8],
    labels: NDArray[Any],
    peak: Sequence[int],
    *,
    view: View,
    spacing_mm: Sequence[float] | None,
    bridge: Sequence[int] | None = None,
    palette: bytes | None = None,
    label: int = 1,
    near: Sequence[slice] | None = None,
    boxes: NDArray[np.int64] | None = None,
) -> tuple[Plane, ...]:
    """The planes through the peak of a candidate: three, or one for a 2-D map.

    Parameters
    ----------
    shades : ndarray of uint8
        The window, as it is to be shown.
    labels : ndarray of int or bool
        In the same window: one label in the voxels of the candidate, others in those of other candidates.
    peak : sequence of int
        Index of the peak in the window.
    view : View
    spacing_mm : sequence of float or None
        Voxel size along each axis; equal sides when unknown.
    bridge : sequence of int, optional
        Index of the voxel at which it joins a higher peak.
    palette : bytes, optional
        Red, green and blue of `SHADES` shades. A photograph in grey without it.
    label : int, default 1
        Of the candidate.
    near : sequence of slice, optional
        The part of the window that a close-up shows.
    boxes : ndarray of int, shape (n, 2 * ndim), optional
        First index along each axis, then last index plus one, of all candidates: labels are looked for there only.
    """
    sizes = (1.0, 1.0, 1.0) if spacing_mm is None else (*spacing_mm, 1.0)[:3]
    across = (2, 1, 0) if shades.ndim == 3 else (view.axes.index(2),)
    at = view.turned_index(peak, shades.shape)
    crossed = None if bridge is None else view.turned_index(bridge, shades.shape)
    voxels, inside = view.turned(shades), view.turned(labels)
    close = None if near is None else view.turned_box(near, shades.shape)
    planes = []
    for axis in across:
        columns, rows = (other for other in range(3) if other != axis)
        here = (slice(None),) * axis + (at[axis],)  # `np.take` would copy all voxels
        # Once in a row: voxels that lie far apart are slow to reach.
        pixels = np.ascontiguousarray(voxels[here].T)
        found = inside[here].T if boxes is None else _found(labels, inside[here].T, boxes, view, axis, peak)
        step = sizes[view.axes[columns]], sizes[view.axes[rows]]
        plane = Plane(
            name=view.name(axis) if shades.ndim == 3 else "in plane",
            width_mm=pixels.shape[1] * step[0],
            height_mm=pixels.shape[0] * step[1],
            n_columns=pixels.shape[1],
            n_rows=pixels.shape[0],
            picture=address_of(pixels, palette),
            outline=outline(is_own := found == label),
            neighbours=outline(np.where(is_own, 0, found)) if np.count_nonzero(found) > is_own.sum() else "",
            peak=(at[columns] + 0.5, at[rows] + 0.5),
            bridge=None if crossed is None else (crossed[columns] + 0.5, crossed[rows] + 0.5),
            is_bridge_here=crossed is not None and crossed[axis] == at[axis],
            letters=view.letters(columns, rows),
            near=None if close is None else _placed(close[columns], close[rows], step),
        )
        planes.append(plane)
    return tuple(planes)


def _found(
    labels: NDArray[Any], plane: NDArray[Any], boxes: NDArray[np.int64], view: View, axis: int, peak: Sequence[int]
) -> NDArray[Any]:
    """The labels of a plane, read where candidates are."""
    found = np.zeros(plane.shape, plane.dtype)
    across, n = view.axes[axis], labels.ndim
    crossed = (
        boxes if across >= n else boxes[(boxes[:, across] <= peak[across]) & (peak[across] < boxes[:, n + across])]
    )
    columns, rows = (other for other in range(3) if other != axis)
    for box in crossed.tolist():
        part = view.turned_box([slice(*ends) for ends in zip(box[:n], box[n:], strict=True)], labels.shape)
        found[part[rows], part[columns]] = plane[part[rows], part[columns]]
    return found


def _placed(columns: slice, rows: slice, step: tuple[float, float]) -> tuple[float, float, float, float]:
    """Left, top, width and height of a part of a plane, in mm."""
    x, y = step
    return columns.start * x, rows.start * y, (columns.stop - columns.start) * x, (rows.stop - rows.start) * y

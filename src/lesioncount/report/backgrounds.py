"""What candidates are shown on, an image in grey or the map in colours → their pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import LesionCountError
from lesioncount.files import MapSource, open_map
from lesioncount.files.geometry import VoxelGrid, check_same_grid
from lesioncount.optional import optional
from lesioncount.report.pictures import SHADES, Plane
from lesioncount.report.planes import View, Window, planes_through

T = TypeVar("T")

# Contrast of an image: a few very dark or bright voxels (noise, fat, vessels) must not take all of it.
_DARKEST_PERCENT, _BRIGHTEST_PERCENT = 1.0, 99.5

# Voxels that the contrast of a whole image is taken from.
_SAMPLED = 1 << 17

# What files may do to those who read them.
_UNREADABLE = (LesionCountError, OSError, MemoryError)


@dataclass(frozen=True, eq=False)
class Background:
    """All voxels as shades, and whether they show the image, not the map."""

    whole: NDArray[np.uint8]
    is_image: bool

    @property
    def palette(self) -> bytes | None:
        """The colours of shades; None for grey."""
        return None if self.is_image else _colours()


@dataclass(frozen=True, eq=False)
class Layer:
    """What planes are cut through: a background, and the candidates that lie on it.

    Attributes
    ----------
    shown : Background
    labels : ndarray of int
        Of the same shape.
    grid : VoxelGrid
    boxes : ndarray of int, optional
        Of all candidates: where labels are looked for.
    """

    shown: Background
    labels: NDArray[Any]
    grid: VoxelGrid
    boxes: NDArray[np.int64] | None = None

    @cached_property
    def _view(self) -> View:
        return View.of(self.grid.affine)

    def planes(self, window: Window, label: int = 1, bridge: Sequence[int] | None = None) -> tuple[Plane, ...]:
        """The planes through the peak of a candidate, with its window as a close-up."""
        near = None if window.is_all_of(self.labels.shape) else window.box
        return planes_through(
            self.shown.whole, self.labels, window.peak, view=self._view, spacing_mm=self.grid.spacing_mm,
            palette=self.shown.palette, bridge=bridge, label=label, near=near, boxes=self.boxes,
        )  # fmt: skip


@dataclass(frozen=True)
class Slices:
    """The pictures of a scan, or of a course.

    Attributes
    ----------
    planes : tuple
        Of each lesion that was to be shown, its planes in each session that it is shown in; none without pictures.
    on_image : tuple of bool
        Whether those of each session show the image, not the map.
    why_unplaced : str or None
        Why it is not known how the patient lies in the map, where it is not.
    notes : tuple of str
        What could not be done, and why.
    """

    planes: tuple[tuple[tuple[Plane, ...], ...], ...] = ()
    on_image: tuple[bool, ...] = ()
    why_unplaced: str | None = None
    notes: tuple[str, ...] = ()


def cut_or_why(cut: Callable[[], Slices], why: str) -> Slices:
    """Pictures; what is wrong with their files ends up as a note."""
    try:
        return cut()
    except _UNREADABLE as error:
        return Slices(notes=(f"No pictures, because {why}: {_reason(error)}",))


def behind(image: Path | str | None, read: Callable[[Path], T], otherwise: T) -> tuple[T, str | None]:
    """What candidates are shown on, and a note if that is not what was asked for.

    Parameters
    ----------
    image : path, optional
        The image to show; a text says why there is none, though images were asked for.
    read : callable
        Reads an image.
    otherwise : object
        The map, where there is no image, or none that can be read.
    """
    if not isinstance(image, Path):
        return otherwise, image
    try:
        return read(image), None
    except _UNREADABLE as error:
        return otherwise, f"Shown on the map, because the image could not be used: {_reason(error)}"


def image_on(grid: VoxelGrid, path: Path) -> MapSource:
    """An image, which must lie on this grid."""
    image = open_map(path)
    check_same_grid(grid, image.grid, "the image")
    return image


def in_grey(grid: VoxelGrid, path: Path) -> Background:
    """An image on this grid, as shades."""
    return shades_of(image_on(grid, path).values())


def shades_of(values: NDArray[Any]) -> Background:
    """The values of an image as shades."""
    sample = values.ravel(order="K")[:: max(1, values.size // _SAMPLED)].astype(np.float32)
    return Background(shaded(values, *contrast(sample[sample != 0])), is_image=True)


def in_colours(probabilities: NDArray[Any]) -> Background:
    """A map as shades."""
    return Background(shaded(probabilities, 0.0, 1.0), is_image=False)


def shaded(values: NDArray[Any], black: float, white: float) -> NDArray[np.uint8]:
    """Values as shades, given the two that are black and white."""
    scaled = (values.astype(np.float32) - black) * (255 / (white - black))
    shades: NDArray[np.uint8] = np.nan_to_num(scaled, nan=0.0).clip(0, 255).astype(np.uint8)
    return shades


def contrast(values: NDArray[np.float32]) -> tuple[float, float]:
    """The values that are black and white."""
    values = values[np.isfinite(values)]
    black, white = np.percentile(values, (_DARKEST_PERCENT, _BRIGHTEST_PERCENT)) if values.size else (0.0, 1.0)
    return float(black), float(white if white > black else black + 1)


@cache
def _colours() -> bytes:
    """Of the map: from dark blue to yellow, equally far apart for all eyes."""
    chosen = optional("matplotlib", "report", "Writing the report").colormaps["cividis"](
        np.linspace(0, 1, SHADES), bytes=True
    )
    palette: bytes = chosen[:, :3].tobytes()
    return palette


def _reason(error: BaseException) -> str:
    """What an error says; its name, if it says nothing."""
    return str(error) or type(error).__name__

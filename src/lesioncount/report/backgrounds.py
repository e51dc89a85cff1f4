"""What candidates are shown on: an image in grey, or the map in colours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import LesionCountError
from lesioncount.files import open_map
from lesioncount.files.geometry import VoxelGrid, check_same_grid
from lesioncount.optional import optional
from lesioncount.report.pixels import SHADES

# Contrast of an image: a few very dark or bright voxels (noise, fat, vessels) must not take all of it.
_DARKEST_PERCENT, _BRIGHTEST_PERCENT = 1.0, 99.5

# Voxels that the contrast of a whole image is taken from.
_SAMPLED = 1 << 17

# What files may do to those who read them.
UNREADABLE = (LesionCountError, OSError, MemoryError)


@dataclass(frozen=True, eq=False)
class Background:
    """All voxels as shades, and the colours of shades; None for grey."""

    whole: NDArray[np.uint8]
    palette: bytes | None

    @property
    def is_image(self) -> bool:
        """Whether it shows the image, not the map."""
        return self.palette is None


def behind(
    shades: NDArray[np.uint8], image: Path | str | None, values_of: Callable[[Path], NDArray[Any]]
) -> tuple[Background, str | None]:
    """What candidates are shown on, and a note if that is not what was asked for.

    Parameters
    ----------
    shades : ndarray of uint8
        The map with 255 for a probability of 1.
    image : path, optional
        The image to show; a text says why there is none, though images were asked for.
    values_of : callable
        Reads an image on the grid of the map.
    """
    note = image if isinstance(image, str) else None
    if isinstance(image, Path):
        try:
            return Background(in_grey(values_of(image)), None), None
        except UNREADABLE as error:
            note = unusable(error)
    return Background(shades, colours()), note


def image_on(grid: VoxelGrid, path: Path) -> NDArray[Any]:
    """The values of an image, which must lie on this grid."""
    image = open_map(path)
    check_same_grid(grid, image.grid, "the image")
    return image.values()


def in_grey(values: NDArray[Any]) -> NDArray[np.uint8]:
    """An image as shades."""
    sample = values.ravel(order="K")[:: max(1, values.size // _SAMPLED)].astype(np.float32)
    return shaded(values, *contrast(sample[sample != 0]))


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
def colours() -> bytes:
    """Of the map: from dark blue to yellow, equally far apart for all eyes."""
    chosen = optional("matplotlib", "report", "Writing the report").colormaps["cividis"](
        np.linspace(0, 1, SHADES), bytes=True
    )
    palette: bytes = chosen[:, :3].tobytes()
    return palette


def unusable(error: BaseException) -> str:
    """Why an image is not shown."""
    return f"Shown on the map, because the image could not be used: {reason(error)}"


def reason(error: BaseException) -> str:
    """What an error says; its name, if it says nothing."""
    return str(error) or type(error).__name__

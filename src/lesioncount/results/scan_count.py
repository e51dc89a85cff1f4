"""What is known of a scan, or of the scans of a patient, while its maps are at hand."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lesioncount.changes.counted_map import CountedMap
from lesioncount.counting import LesionCount
from lesioncount.files import MapSource
from lesioncount.files.geometry import VoxelGrid

# The threshold of the count that everyone reports, kept beside ours in every table.
COMPONENT_THRESHOLD = 0.5


# At which connected components are counted. Networks that are too sure of themselves separate what touches only close
# to 1; below 0.1, components run into each other.
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)


# The format of a scan that has no map, but a table of detections.
DETECTIONS = "detections"

Mask = str | os.PathLike[str] | None


@dataclass(frozen=True, eq=False)
class ScanCount:
    """The count of one file.

    Attributes
    ----------
    source : MapSource
    result : LesionCount
    component_count : int
        Number of connected components above 0.5 of the same connectivity and smallest size: the usual count.
    warnings : tuple of str
        What to think of before using the count.
    counts_at : tuple of int
        The usual count at the thresholds that were asked for.
    shades : ndarray of uint8, or None
        The map with 255 for a probability of 1, if it was to be kept and is not too large.
    shares : tuple of int
        How its values are spread, see `ValueSample`; none if that is not known.
    """

    source: MapSource
    result: LesionCount
    component_count: int
    warnings: tuple[str, ...]
    counts_at: tuple[int, ...] = ()
    shades: NDArray[np.uint8] | None = field(default=None, repr=False)
    shares: tuple[int, ...] = field(default=(), repr=False)


@dataclass(frozen=True, eq=False)
class SessionMap:
    """One map of a course.

    Attributes
    ----------
    counted : CountedMap
    count : ScanCount
        The same for tables, with the grid of the course.
    is_resampled : bool
    """

    counted: CountedMap
    count: ScanCount
    is_resampled: bool


@dataclass(frozen=True, eq=False)
class CourseMaps:
    """All maps of a course, and what a reader must know of them."""

    sessions: tuple[SessionMap, ...]
    notes: tuple[str, ...] = ()

    @property
    def grid(self) -> VoxelGrid:
        """The grid of all."""
        return self.sessions[-1].count.source.grid

"""What records are made of: facts about a map, a session, and what has changed from one session to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from lesioncount.cohort.item import FileFacts
from lesioncount.files.geometry import VoxelGrid
from lesioncount.folder.plain import UNKNOWN
from lesioncount.results.answers import Answer
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.scan_count import DETECTIONS, ScanCount
from lesioncount.results.scan_numbers import ScanNumbers
from lesioncount.trust.candidate_table import Counted


class MapFacts(Struct, frozen=True):
    """What is recorded of a map: its format, and where its voxels lie."""

    file_format: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    spacing_mm: tuple[float, ...] | None = None
    affine: tuple[tuple[float, ...], ...] | None = None
    why_unplaced: str | None = None

    @classmethod
    def of(cls, count: ScanCount) -> Self:
        """Of the map that was counted."""
        source = count.source
        affine = None if source.affine is None else tuple(map(tuple, source.affine.tolist()))
        return cls(source.format, source.shape, str(source.dtype), source.spacing_mm, affine, source.grid.why_unplaced)

    def check(self) -> None:
        """Raise ValueError unless it is of a map, or of detections, which may lie in no image."""
        if self.file_format == DETECTIONS and not self.shape:
            return
        if len(self.shape) not in (2, 3) or min(self.shape) < 1:
            raise ValueError("a map has two or three axes with voxels")
        if self.spacing_mm is not None and len(self.spacing_mm) != len(self.shape):
            raise ValueError("a voxel has a size along each axis")
        if self.affine is not None and [len(row) for row in self.affine] != [4] * 4:
            raise ValueError("an affine has four rows and four columns")

    def grid(self, path: str) -> VoxelGrid:
        """The grid of the map, which is in this file."""
        affine = None if self.affine is None else np.array(self.affine, dtype=np.float64).reshape(4, 4)
        return VoxelGrid(Path(path), self.shape, affine, self.spacing_mm, self.why_unplaced)


@lru_cache(maxsize=256)
def map_held_once(facts: MapFacts) -> MapFacts:
    """The first of equal ones: most scans of a cohort have the same grid."""
    return facts


class Count(Struct, frozen=True, omit_defaults=True):
    """How many lesions are new, gone or persisting.

    Attributes
    ----------
    count : ScanNumbers
        Of the distribution. Its ``cc_count`` is that of components above 0.5 that are there at one time only (of
        persisting lesions, at both).
    pmf, pmf_calibrated : tuple of float
        Probabilities of 0, 1, …
    component_counts : tuple of int
        Such components at each of `THRESHOLDS`.
    """

    count: ScanNumbers = ScanNumbers()
    pmf: tuple[float, ...] = ()
    pmf_calibrated: tuple[float, ...] = ()
    component_counts: tuple[int, ...] = ()

    @property
    def numbers(self) -> ScanNumbers:
        """Its numbers, as tables have them."""
        return self.count

    @property
    def is_sound(self) -> bool:
        """Whether it has a distribution, and numbers of it; and both calibrated, or neither."""
        return is_sound(self.count, self.pmf, self.pmf_calibrated)


def is_sound(numbers: ScanNumbers, pmf: Sequence[float], pmf_calibrated: Sequence[float]) -> bool:
    """Whether there is a distribution, and numbers of it; and both calibrated, or neither."""
    is_known = bool(pmf) and numbers.count_mean is not UNKNOWN
    return is_known and bool(pmf_calibrated) == (numbers.calibrated is not None)


class SessionRecord(Struct, frozen=True):
    """One session of a course.

    Attributes
    ----------
    session : str
    input : FileFacts
    map : MapFacts
        On the grid that all sessions of the course were brought to.
    is_resampled : bool
        Whether the map has another grid itself.
    warnings : tuple of str
    n_dropped : int
        Candidates below the smallest size of the protocol.
    lesions : tuple of LesionRow
    """

    session: str = ""
    input: FileFacts = FileFacts()
    map: MapFacts = MapFacts()
    is_resampled: bool = False
    warnings: tuple[str, ...] = ()
    n_dropped: int = 0
    lesions: tuple[LesionRow, ...] = ()

    @property
    def files(self) -> FileFacts:
        """Its map, and whose it is."""
        return self.input

    def __post_init__(self) -> None:
        """Hold the facts of equal maps once."""
        force_setattr(self, "map", map_held_once(self.map))

    @property
    def brief(self) -> Self:
        """The same without single candidates."""
        return replace(self, lesions=())

    def check(self) -> None:
        """Raise ValueError unless its candidates lie in its map, and add up."""
        if not self.input.path:
            raise ValueError("expected the path of a map")
        self.map.check()
        if not all(lesion.is_sound for lesion in self.lesions):
            raise ValueError("expected peaks above their saddles, their difference as existence, and probabilities")
        if not all(lesion.lies_in(self.map.shape) for lesion in self.lesions if lesion.is_of_first_member):
            raise ValueError("expected candidates inside of the map")


class Pair(Struct, frozen=True, omit_defaults=True):
    """What has changed from one session to the next.

    Attributes
    ----------
    pair : str
        Its name.
    before, after : int
        Which sessions of the course.
    tolerance_mm : float
    new, gone, persisting : Count
    answers : tuple of Answer
        To the questions that were asked.
    """

    pair: str = ""
    before: int = -1
    after: int = -1
    tolerance_mm: float = UNKNOWN
    new: Count = Count()
    gone: Count = Count()
    persisting: Count = Count()
    answers: tuple[Answer, ...] = ()

    @property
    def name(self) -> str:
        """What the two sessions are called together."""
        return self.pair

    @property
    def counts(self) -> Mapping[Counted, Count]:
        """The numbers of new, gone and persisting lesions."""
        return {"new": self.new, "gone": self.gone, "persisting": self.persisting}

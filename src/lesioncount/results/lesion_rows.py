"""Candidates of a scan → the rows of ``lesions.tsv``; of a course, with what becomes of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from lesioncount.candidates import Candidates
from lesioncount.changes.coupling import Rises
from lesioncount.changes.lesion_changes import LesionChanges
from lesioncount.detections import DetectedCandidates
from lesioncount.folder.plain import UNKNOWN, columns, optional_columns
from lesioncount.results.scan_count import ScanCount
from lesioncount.trust.calibration import Calibration


class LesionRow(Struct, frozen=True, gc=False, omit_defaults=True):
    """One candidate, by the names of its columns in ``lesions.tsv``; None for what is not known.

    Attributes
    ----------
    label : int
        Its number in the label map, from 1.
    member : int or None
        Of an ensemble, the number of the member whose candidate it is.
    existence, existence_calibrated : float
        Probability that it is a lesion, as the map has it and after calibration.
    peak_probability, saddle_probability : float or None
        Of peaks: the height of the peak, and of the saddle at which it joins a higher one, 0 if there is none.
        ``saddle_i`` to ``saddle_k`` say where the saddle is.
    bbox : str
        First index along each axis, then last index plus one, with blanks between them.
    variance_share : float
        Its part of the variance of the count.
    region : str or None
        Where its peak lies, if it was counted with regions.
    within, within_mm : str or None
        The regions by distance that it lies in, and how far it is from them, with semicolons between them.
    on_list : str or None
        Where a list with a promise was asked for: whether it is on it, ``yes`` or ``no``.
    lineage : int
        Of a course: the number that all candidates of the same lesion have, in all its sessions. 0 of a single scan.
    new_at, gone_at : str or None
        Of a course: index of the voxel at which it rises most above the session before, and above the one after, with
        blanks between numbers; None at the ends of the course.
    new_height, gone_height : float or None
        The probability there.
    new_before, gone_after : float or None
        The highest probability within the tolerance of it, one session before and one after.
    p_new, p_persisting : float or None
        That it is a lesion that was not, and that was, there one session before.
    p_gone : float or None
        That it is a lesion that is no longer there one session after.
    """

    label: int = 0
    member: int | None = None
    existence: float = UNKNOWN
    existence_calibrated: float | None = None
    n_voxels: int = UNKNOWN
    volume_mm3: float | None = UNKNOWN
    peak_i: int = -1
    peak_j: int = -1
    peak_k: int | None = UNKNOWN
    peak_x_mm: float | None = UNKNOWN
    peak_y_mm: float | None = UNKNOWN
    peak_z_mm: float | None = UNKNOWN
    peak_probability: float | None = None
    saddle_probability: float | None = None
    saddle_i: int | None = None
    saddle_j: int | None = None
    saddle_k: int | None = None
    centroid_x_mm: float | None = UNKNOWN
    centroid_y_mm: float | None = UNKNOWN
    centroid_z_mm: float | None = UNKNOWN
    bbox: str = ""
    equivalent_diameter_mm: float | None = UNKNOWN
    variance_share: float = UNKNOWN
    region: str | None = None
    within: str | None = None
    within_mm: str | None = None
    on_list: str | None = None
    lineage: int = 0
    new_at: str | None = None
    new_height: float | None = None
    new_before: float | None = None
    gone_at: str | None = None
    gone_height: float | None = None
    gone_after: float | None = None
    p_new: float | None = None
    p_persisting: float | None = None
    p_gone: float | None = None

    @property
    def peak(self) -> tuple[int, ...]:
        """Index of the voxel with the highest probability; of a detection without an image, its number."""
        if self.peak_i < 0:
            return (self.label,)
        return (self.peak_i, self.peak_j) if self.peak_k is None else (self.peak_i, self.peak_j, self.peak_k)

    @property
    def saddle(self) -> tuple[int, ...] | None:
        """Index of the voxel at which it joins a higher peak; None if it does not."""
        if self.saddle_i is None or self.saddle_j is None:
            return None
        return (
            (self.saddle_i, self.saddle_j) if self.saddle_k is None else (self.saddle_i, self.saddle_j, self.saddle_k)
        )

    def lies_in(self, shape: tuple[int, ...]) -> bool:
        """Whether its peak is in its box, and this in a map of that shape. ValueError if the box is not of numbers."""
        if not shape or not self.bbox:  # a detection without an image
            return not shape or self.peak_i == -1
        n, box, place = len(shape), [*map(int, self.bbox.split())], self.peak
        if len(place) != n or len(box) != 2 * n:
            return False
        sides = zip(box[:n], place, box[n:], shape, strict=True)
        return all(0 <= begin <= index < end <= side for begin, index, end, side in sides)

    @property
    def height(self) -> float:
        """Probability of that voxel: existence, unless a saddle takes from it."""
        return self.existence if self.peak_probability is None else self.peak_probability

    @property
    def best_existence(self) -> float:
        """Calibrated, or as the map has it where there was no calibration."""
        return self.existence if self.existence_calibrated is None else self.existence_calibrated

    @property
    def is_of_first_member(self) -> bool:
        """Whether it is a candidate of the map that pictures are cut from; other members use the same labels."""
        return self.member in (None, 1)

    @property
    def is_sound(self) -> bool:
        """Whether its saddle lies below its peak, existence is their difference, and all probabilities are some."""
        saddle, height = self.saddle_probability or 0.0, self.height
        if self.label < 1 or not (0 <= saddle <= height <= 1 and 0 <= self.existence <= 1):
            return False
        if self.lineage and not all(value is None or 0 <= value <= 1 for value in _of_changes(self)):
            return False
        return math.isclose(self.existence, height - saddle, abs_tol=_ROUNDING)


# Existence is a difference of two numbers that are written with all their digits.
_ROUNDING = 1e-12

_of_changes = attrgetter("new_height", "new_before", "gone_height", "gone_after", "p_new", "p_persisting", "p_gone")
_AT_PEAK = ("peak_i", "peak_j", "peak_k")
_PLACE = ("peak_x_mm", "peak_y_mm", "peak_z_mm", "centroid_x_mm", "centroid_y_mm", "centroid_z_mm")
_OF_PEAKS = ("peak_probability", "saddle_probability", "saddle_i", "saddle_j", "saddle_k")
_FIRST_OF_COURSES = LesionRow.__struct_fields__.index("lineage")
LESION_COLUMNS = columns(LesionRow)[:_FIRST_OF_COURSES]
OPTIONAL_LESION_COLUMNS = tuple(name for name in optional_columns(LesionRow) if name in LESION_COLUMNS)


def lesion_rows(counts: Sequence[ScanCount], calibration: Calibration | None) -> tuple[LesionRow, ...]:
    """Rows of all candidates; of several members, each with the number of its member."""
    rows: list[LesionRow] = []
    for number, count in enumerate(counts, start=1):
        corrected = None if calibration is None else calibration.existence(count.result.candidates)
        rows += _rows_of_map(count, corrected, number if len(counts) > 1 else None)
    return tuple(rows)


def with_list(rows: Sequence[LesionRow], threshold: float | None) -> tuple[LesionRow, ...]:
    """The same, with what is on a list of candidates from this probability on; as they are without a list."""
    if threshold is None:
        return tuple(rows)
    return tuple(replace(row, on_list="yes" if row.existence >= threshold else "no") for row in rows)


def _rows_of_map(count: ScanCount, corrected: NDArray[np.float64] | None, member: int | None) -> list[LesionRow]:
    candidates, existence = count.result.candidates, count.result.existence
    if isinstance(candidates, DetectedCandidates):
        return _rows_of_detections(candidates, count, corrected, member)
    variance = existence * (1 - existence)
    share = variance / variance.sum() if variance.sum() > 0 else np.zeros(len(existence))
    peaks, centroids = (_places(count, index) for index in (candidates.peak_index, candidates.centroid))
    index = candidates.peak_index.tolist()
    is_3d = len(candidates.shape) == 3
    saddles = _saddles(candidates) if candidates.protocol.has_peaks else [{}] * len(existence)
    where: dict[str, list[Any]] = {} if count.result.places is None else count.result.places.columns()
    return [
        LesionRow(
            label=row + 1,
            member=member,
            existence=float(existence[row]),
            existence_calibrated=None if corrected is None else float(corrected[row]),
            n_voxels=int(candidates.n_voxels[row]),
            volume_mm3=_known(candidates.volume_mm3[row]),
            peak_i=index[row][0],
            peak_j=index[row][1],
            peak_k=index[row][2] if is_3d else None,
            peak_x_mm=peaks[row][0],
            peak_y_mm=peaks[row][1],
            peak_z_mm=peaks[row][2],
            **saddles[row],
            centroid_x_mm=centroids[row][0],
            centroid_y_mm=centroids[row][1],
            centroid_z_mm=centroids[row][2],
            bbox=" ".join(map(str, candidates.bbox[row])),
            equivalent_diameter_mm=_known(candidates.equivalent_diameter_mm[row]),
            variance_share=float(share[row]),
            **{name: values[row] for name, values in where.items()},
        )
        for row in range(len(existence))
    ]


def _rows_of_detections(
    candidates: DetectedCandidates, count: ScanCount, corrected: NDArray[np.float64] | None, member: int | None
) -> list[LesionRow]:
    """Of a table of detections: what is not known of them is left out, such as voxels."""
    existence = candidates.scores
    variance = existence * (1 - existence)
    share = variance / variance.sum() if variance.sum() > 0 else np.zeros(len(existence))
    where: dict[str, list[Any]] = {} if count.result.places is None else count.result.places.columns()
    index, boxes = candidates.peak_index.tolist(), candidates.bbox.tolist()
    places: list[dict[str, Any]] = [
        dict(zip(_PLACE, map(_known, (*at, *at)), strict=True)) for at in candidates.positions_mm.tolist()
    ]
    return [
        LesionRow(
            label=row + 1,
            member=member,
            existence=float(existence[row]),
            existence_calibrated=None if corrected is None else float(corrected[row]),
            volume_mm3=_known(candidates.volume_mm3[row]),
            **dict(zip(_AT_PEAK, (*index[row], None) if len(index[row]) == 2 else index[row], strict=False)),
            **places[row],
            bbox=" ".join(map(str, boxes[row])),
            equivalent_diameter_mm=_known(candidates.equivalent_diameter_mm[row]),
            variance_share=float(share[row]),
            **{name: values[row] for name, values in where.items()},
        )
        for row in range(len(existence))
    ]


def _saddles(candidates: Candidates) -> list[dict[str, Any]]:
    """The columns that only peaks have."""
    heights = zip(candidates.peak_probability.tolist(), candidates.saddle_probability.tolist(), strict=True)
    places = [[] if index[0] < 0 else index for index in candidates.saddle_index.tolist()]
    return [dict(zip(_OF_PEAKS, (*pair, *place), strict=False)) for pair, place in zip(heights, places, strict=True)]


def _places(count: ScanCount, index: NDArray[Any]) -> list[list[float | None]]:
    return [[_known(value) for value in place] for place in count.source.grid.to_ras_mm(index).tolist()]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def followed(
    rows: Sequence[LesionRow],
    lineages: NDArray[np.int64],
    *,
    before: LesionChanges | None = None,
    after: LesionChanges | None = None,
) -> tuple[LesionRow, ...]:
    """Rows of candidates, with their lineages and what has changed since the session before and until the one after."""
    values: dict[str, list[Any]] = {"lineage": lineages.tolist()}
    if before is not None:
        values |= {"p_new": before.p_new.tolist(), "p_persisting": before.p_persisting.tolist()}
        values |= _rises(before.risen, "new_at", "new_height", "new_before")
    if after is not None:
        values |= {"p_gone": after.p_gone.tolist()} | _rises(after.fallen, "gone_at", "gone_height", "gone_after")
    return tuple(replace(row, **{name: one[place] for name, one in values.items()}) for place, row in enumerate(rows))


def _rises(rises: Rises, at: str, height: str, other: str) -> dict[str, list[Any]]:
    places = [" ".join(map(str, index)) for index in rises.index.tolist()]
    return {at: places, height: rises.heights.tolist(), other: rises.others.tolist()}

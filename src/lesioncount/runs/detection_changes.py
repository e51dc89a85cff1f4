"""Tables of detections of one patient at several times → what has changed: by distance, without maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lesioncount.candidates import Candidates
from lesioncount.changes.counted_map import CountedMap
from lesioncount.changes.coupling import Rises
from lesioncount.changes.lesion_changes import TOLERANCE_MM, LesionChanges
from lesioncount.cohort.item import ScanFiles
from lesioncount.counting import LesionCount
from lesioncount.detections import DetectedCandidates
from lesioncount.errors import MapFileError
from lesioncount.results.scan_count import CourseMaps, SessionMap
from lesioncount.results.settings import ChangeSettings, Settings
from lesioncount.runs.detection_counts import count_table
from lesioncount.trust.candidate_table import Counted

# Distances that are held at once.
_AT_ONCE = 1 << 22

Distances = NDArray[np.float64]


def read_tables(scans: Sequence[ScanFiles], settings: ChangeSettings) -> CourseMaps:
    """The detections of a course, each session counted."""
    counts = [count_table(scan, scan.tables[0], Settings(settings.protocol)) for scan in scans]
    for scan, count in zip(scans, counts, strict=True):
        found = count.result.candidates
        if len(found) and not (isinstance(found, DetectedCandidates) and found.is_in_mm):
            raise MapFileError(
                f"{scan.path}: places in millimetres are needed to find the same lesion at another time."
            )
    nothing = np.empty((0,) * 3)
    return CourseMaps(tuple(SessionMap(CountedMap(one.result, nothing), one, False) for one in counts))


def changes_of_detections(before: LesionCount, after: LesionCount, settings: ChangeSettings) -> LesionChanges:
    """What has changed: a candidate was there before as surely as the highest one within the tolerance of it."""
    tolerance = tolerance_of(settings)
    first, second = before.candidates, after.candidates
    return LesionChanges(
        before, after, _rises(second, first, tolerance), _rises(first, second, tolerance), tolerance, settings.coupling
    )


def tolerance_of(settings: ChangeSettings) -> float:
    """How far apart two detections of one lesion may lie; by default, as far as doubles do at one time."""
    if settings.tolerance_mm is not None:
        return settings.tolerance_mm
    return max(TOLERANCE_MM, settings.protocol.merge_within_mm or 0.0)


def detection_links(before: Candidates, after: Candidates, within_mm: float) -> tuple[NDArray[np.int64], ...]:
    """Rows that belong together, (n, 2): of each candidate, the nearest one of the other time within the tolerance."""
    was, became = _nearest(after, before, within_mm), _nearest(before, after, within_mm)
    return (
        np.stack([was, np.arange(len(after))], axis=1)[was >= 0],
        np.stack([np.arange(len(before)), became], axis=1)[became >= 0],
    )


def detections_changed(step: LesionChanges, thresholds: Sequence[float]) -> dict[Counted, tuple[int, ...]]:
    """The usual count: scores above a threshold with none, or one, above it within the tolerance at the other time."""
    now, then = step.after.existence, step.before.existence
    new = [(now > at) & (step.risen.others <= at) for at in thresholds]
    gone = [(then > at) & (step.fallen.others <= at) for at in thresholds]
    stay = [(now > at) & (step.risen.others > at) for at in thresholds]
    found: dict[Counted, list[NDArray[np.bool_]]] = {"new": new, "gone": gone, "persisting": stay}
    return {kind: tuple(int(one.sum()) for one in of) for kind, of in found.items()}


def _rises(candidates: Candidates, others: Candidates, within_mm: float) -> Rises:
    highest = np.zeros(len(candidates))
    for begin, near in _near(candidates, others):
        part = np.where(near <= within_mm, others.peak_probability, 0.0)
        highest[begin : begin + len(near)] = part.max(axis=1, initial=0.0)
    return Rises(candidates.peak_probability, highest, candidates.peak_index)


def _nearest(candidates: Candidates, others: Candidates, within_mm: float) -> NDArray[np.int64]:
    """For each candidate, the row of the nearest one at another time; -1 if none is within the tolerance."""
    found = np.full(len(candidates), -1, dtype=np.int64)
    for begin, near in _near(candidates, others) if len(others) else ():
        nearest = near.argmin(axis=1)
        is_near = near[np.arange(len(near)), nearest] <= within_mm
        found[begin : begin + len(near)] = np.where(is_near, nearest, -1)
    return found


def _near(candidates: Candidates, others: Candidates) -> list[tuple[int, Distances]]:
    """Distances from some candidates at a time to all others."""
    a, b = (
        one.positions_mm if isinstance(one, DetectedCandidates) else np.empty((0, 3)) for one in (candidates, others)
    )
    step = max(1, _AT_ONCE // max(1, len(b)))
    starts = range(0, len(a), step)
    return [(at, np.sqrt(((a[at : at + step, None] - b[None]) ** 2).sum(axis=2))) for at in starts]

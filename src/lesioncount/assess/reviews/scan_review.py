"""What a reader did about a scan → what stands: verdicts by candidate, lesions added, whether it is done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.reviews.journals import ReviewEvent
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.record import Entry, Record
from lesioncount.results.recorded import Recorded
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.reviewed_count import UNDECIDED, ReviewedCount


@dataclass(frozen=True)
class ScanReview:
    """What stands of what a reader did about a scan.

    Attributes
    ----------
    standing : tuple of ReviewEvent
        What was not taken back, in order.
    n_events : int
        How often anything was done, also if it was taken back.
    seconds : float
        All the time that it took.
    """

    standing: tuple[ReviewEvent, ...] = ()
    n_events: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, events: Sequence[ReviewEvent], scan: Entry, counting: str) -> ScanReview:
        """Of what a journal has about a scan, but for decisions about another map, or other candidates."""
        own = [event for event in events if (event.map_sha256, event.counting) == (sha256_of(scan), counting)]
        taken_back = {event.undoes for event in own if event.action == "undo"}
        standing = (event for event in own if event.action != "undo" and event.id not in taken_back)
        return cls(tuple(standing), len(own), sum(event.seconds for event in own))

    @property
    def is_done(self) -> bool:
        """Whether the reader has said to have looked at the whole scan."""
        return self._end is not None and self._end.done

    @property
    def rest_is_none(self) -> bool:
        """Whether the reader has said that all candidates that were not decided are no lesions."""
        return self.is_done and self._end is not None and self._end.rest == "none"

    @property
    def _end(self) -> ReviewEvent | None:
        return next((event for event in reversed(self.standing) if event.action == "done"), None)

    @property
    def added(self) -> tuple[ReviewEvent, ...]:
        """The lesions that have no candidate."""
        return tuple(event for event in self.standing if event.action == "add")

    @property
    def by_peak(self) -> dict[tuple[int, ...], ReviewEvent]:
        """The last verdict about each candidate, which is known by its peak."""
        return {event.peak: event for event in self.standing if event.action == "decide"}

    def verdicts(self, lesions: Iterable[LesionRow]) -> dict[int, tuple[str, int]]:
        """Verdict and number of lesions, by the label of the candidate; those that were not decided are not in it."""
        by_peak = self.by_peak
        found: dict[int, tuple[str, int]] = {}
        for lesion in lesions:
            event = by_peak.get(lesion.peak)
            if event is not None:
                found[lesion.label] = (event.verdict or "unsure", event.n_lesions or 0)
            elif self.rest_is_none:
                found[lesion.label] = ("none", 0)
        return found

    def decided(self, lesions: Iterable[LesionRow]) -> NDArray[np.int64]:
        """How many lesions each candidate is; `UNDECIDED` where nobody or an unsure reader has looked."""
        lesions = tuple(lesions)
        verdicts = self.verdicts(lesions)
        known = {label: n for label, (verdict, n) in verdicts.items() if verdict != "unsure"}
        return np.array([known.get(lesion.label, UNDECIDED) for lesion in lesions], dtype=np.int64)

    def last(self) -> ReviewEvent | None:
        """What would be taken back next."""
        return self.standing[-1] if self.standing else None


def sha256_of(scan: Entry) -> str | None:
    """Of the map that decisions are about."""
    return None if scan.files is None else scan.files.sha256


def counting_of(counted_with: Recorded) -> str:
    """What candidates are, in words. A decision about a region is none about a peak in it, or another channel."""
    if counted_with.protocol.has_detections:  # known by their numbers, which another floor would change
        return str(counted_with.protocol)
    kind = "peaks" if counted_with.protocol.has_peaks else "regions"
    channel = counted_with.channel
    return kind if channel is None else f"{kind} of channel {channel}"


def reviewed_lesions(record: Record) -> tuple[LesionRow, ...]:
    """The candidates that are reviewed; of an ensemble, those of its first member, whose map is shown."""
    return tuple(lesion for lesion in record.lesions if lesion.is_of_first_member)


def reviewed_count(record: Record, review: ScanReview, calibration: Calibration | None) -> ReviewedCount:
    """The count of a scan after review."""
    scan = record.summary
    return ReviewedCount(
        scan.corrected_by(Calibration() if calibration is None else calibration),
        scan.tables[0],
        review.decided(reviewed_lesions(record)),
        len(review.added),
        review.is_done,
    )


def untouched_count(scan: Entry, calibration: Calibration | None) -> ReviewedCount:
    """The count of a scan that nobody has looked at, for which no record is needed."""
    undecided = np.full(len(scan.tables[0]), UNDECIDED, dtype=np.int64)
    used = scan.corrected_by(Calibration() if calibration is None else calibration)
    return ReviewedCount(used, scan.tables[0], undecided)


def plain_decisions(record: Record, review: ScanReview) -> dict[str, Any]:
    """Verdicts by label, and lesions added, as plain values."""
    verdicts = review.verdicts(reviewed_lesions(record))
    return {
        "decisions": {str(label): {"verdict": verdict, "n": n} for label, (verdict, n) in verdicts.items()},
        "added": [{"id": event.id, "at": list(event.at)} for event in review.added],
    }

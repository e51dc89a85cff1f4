"""One reader at work: what the page is told of scans, and what becomes of decisions."""

from __future__ import annotations

import math
from threading import RLock
from typing import Any, Literal
from zlib import crc32

from lesioncount.assess.reviews.journals import ReaderJournal, ReviewEvent
from lesioncount.assess.reviews.progress import (
    Order,
    ScanProgress,
    left_in_cohort,
    left_in_scan,
    left_to_calibrate,
    order_of,
)
from lesioncount.assess.reviews.scan_review import (
    ScanReview,
    counting_of,
    plain_decisions,
    reviewed_count,
    reviewed_lesions,
    sha256_of,
)
from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.errors import ReviewError
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.review.cohort import LIST, ReviewCohort
from lesioncount.trust.reviewed_count import ReviewedCount

# Probabilities of counts that a picture does not show.
_INVISIBLE = 1e-6


class Reader:
    """A reader's view of a cohort. All that stands is what the journal says, which others may be writing to as well.

    Parameters
    ----------
    cohort : ReviewCohort
    reader : str
    blinded : bool, default False
        Tell nothing of what the network says.
    order : {"telling", "random", "run", "calibration"}
        Of the scans.
    """

    def __init__(self, cohort: ReviewCohort, reader: str, *, blinded: bool = False, order: Order = "telling") -> None:
        self.cohort, self.blinded, self._order = cohort, blinded, order
        self.journal = ReaderJournal(cohort.out, reader)
        self._progress: dict[int, ScanProgress] = {}
        self._numbers = {scan.name: number for number, scan in enumerate(cohort.scans)}
        self._seed = crc32("\n".join(self._numbers).encode("utf-8", "surrogateescape"))  # the same for all readers
        self._counting = counting_of(cohort.results.run.settings)
        self._lock = RLock()

    def overview(self) -> dict[str, Any]:
        """All scans, the most telling first, and what would change the total."""
        with self._lock:
            self._refresh()
            progress = [self._progress_of(number) for number in range(len(self.cohort.scans))]
        sd, sentence = left_in_cohort(progress, blinded=self.blinded)
        if self._order == "calibration":
            sentence = left_to_calibrate(progress, seed=self._seed)
        return {
            "scans": [self._row(number, one) for number, one in enumerate(progress)],
            "order": order_of(progress, self._order, seed=self._seed),
            "ordered": self._order,
            "left": {"sd_of_total": None if self.blinded else sd, "sentence": sentence},
        }

    def finish_empty(self) -> dict[str, Any]:
        """Note that all scans without a candidate were looked at; for a calibration, those that were drawn."""
        found = self.overview()
        rows = {row["id"]: row for row in found["scans"]}
        empty = [one for one in found["order"] if not rows[one]["n_candidates"] and not rows[one]["is_done"]]
        for number in empty:
            self.done(number, done=True, rest=None, seconds=0.0)
        return {"done": empty}

    def scan(self, number: int) -> dict[str, Any]:
        """Everything about a scan."""
        record = self.cohort.record(number)
        grid = record.grid
        with self._lock:
            state, count = self._state(number)
        lesions = reviewed_lesions(record)
        shares = _shares(count)
        return {
            "id": number,
            "name": record.shown,
            "shape": list(grid.shape or LIST),
            "is_list": not grid.shape,
            "is_placed": grid.affine is not None,
            "spacing_mm": None if grid.spacing_mm is None else list(grid.spacing_mm),
            "has_image": self.cohort.has_image(number),
            "candidates": [
                self._candidate(lesion, float(share)) for lesion, share in zip(lesions, shares, strict=True)
            ],
            **state,
        }

    def decisions(self, number: int) -> dict[str, Any]:
        """What stands, for another reader."""
        with self._lock:
            self._refresh()
            review = self._review(number)
        return {**plain_decisions(self.cohort.record(number), review), "is_done": review.is_done}

    def decide(
        self, number: int, *, candidate: int, verdict: Any, n: int, seconds: float, shown: Any
    ) -> dict[str, Any]:
        """Take a verdict about a candidate."""
        lesions = reviewed_lesions(self.cohort.record(number))
        lesion = next((one for one in lesions if one.label == candidate), None)
        if lesion is None:
            raise ReviewError(f"There is no candidate {candidate} in this scan.")
        return self._take(
            number, action="decide", candidate=candidate, peak=lesion.peak, verdict=verdict,
            n=n if verdict == "several" else 1, seconds=seconds, shown=shown,
        )  # fmt: skip

    def add(self, number: int, *, at: tuple[int, ...], seconds: float, shown: Any) -> dict[str, Any]:
        """Take a lesion that has no candidate."""
        shape = self.cohort.scans[number].grid.shape or LIST
        place = at[: len(shape)]
        if len(at) not in (len(shape), 3) or any(at[len(shape) :]):
            raise ReviewError(f"Expected the {len(shape)} indices of a voxel.")
        if not all(0 <= index < size for index, size in zip(place, shape, strict=True)):
            raise ReviewError(f"The voxel {place} lies outside of the map, whose shape is {shape}.")
        return self._take(number, action="add", at=place, seconds=seconds, shown=shown)

    def undo(self, number: int, *, seconds: float = 0.0) -> dict[str, Any]:
        """Take back what was done last about a scan."""
        with self._lock:
            self._refresh()
            last = self._review(number).last()
            if last is None:
                raise ReviewError("There is nothing left to take back in this scan.")
            return self._take(number, action="undo", undoes=last.id, seconds=seconds)

    def done(self, number: int, *, done: bool, rest: Literal["none"] | None, seconds: float) -> dict[str, Any]:
        """Note that the whole scan was looked at, or that it was not."""
        return self._take(number, action="done", done=done, rest=rest if done else None, seconds=seconds)

    def _take(self, number: int, **what: Any) -> dict[str, Any]:
        scan = self.cohort.scans[number]
        self.cohort.check_unchanged(number)
        event = ReviewEvent(
            reader=self.journal.reader, scan=scan.name, map_sha256=sha256_of(scan), counting=self._counting, **what
        )
        with self._lock:
            self.journal.append(event)  # on the disk before anybody is told
            state, _ = self._state(number)
        return {"saved": state.pop("n_events"), **state}

    def _state(self, number: int) -> tuple[dict[str, Any], ReviewedCount]:
        """What changes with decisions."""
        self._refresh()
        record, review = self.cohort.record(number), self._review(number)
        count = reviewed_count(record, review, self.cohort.results.calibration)
        n, sentence = left_in_scan(count, blinded=self.blinded)
        return {
            "n_events": review.n_events,
            **plain_decisions(record, review),
            "is_done": review.is_done,
            "distribution": None if self.blinded else plain_distribution(count.distribution),
            "left": {"n_until_certain": n, "sentence": sentence},
        }, count

    def _refresh(self) -> None:
        for name in self.journal.refresh():
            self._progress.pop(self._numbers.get(name, -1), None)

    def _review(self, number: int) -> ScanReview:
        scan = self.cohort.scans[number]
        return ScanReview.of(self.journal.events(scan.name), scan, self._counting)

    def _progress_of(self, number: int) -> ScanProgress:
        if number not in self._progress:
            scan, review = self.cohort.scans[number], self._review(number)
            calibration = self.cohort.results.calibration
            self._progress[number] = (
                ScanProgress.of(self.cohort.record(number), review, calibration)
                if review.n_events
                else ScanProgress.untouched(scan, calibration)
            )
        return self._progress[number]

    def _row(self, number: int, progress: ScanProgress) -> dict[str, Any]:
        scan = self.cohort.scans[number]
        return {
            "id": number,
            "name": scan.shown,
            "participant_id": scan.whose.get("participant_id"),
            "session_id": scan.whose.get("session_id"),
            "has_image": self.cohort.has_image(number),
            "n_candidates": progress.n_candidates,
            "n_decided": progress.n_decided,
            "is_done": progress.is_done,
            "expected": None if self.blinded else progress.mean,
            "sd": None if self.blinded else math.sqrt(progress.variance),
            "seconds": progress.seconds,
        }

    def _candidate(self, lesion: LesionRow, share: float) -> dict[str, Any]:
        is_placed = lesion.peak_i >= 0  # else of a table, without an image
        box = [int(index) for index in lesion.bbox.split()] if is_placed else [0, 0, 0, 1, 1, 1]
        hidden: dict[str, Any] = {
            "existence": lesion.best_existence,
            "peak_probability": lesion.height,
            "saddle_probability": lesion.saddle_probability,
            "variance_share": share,
        }
        return {
            "label": lesion.label,
            **(dict.fromkeys(hidden) if self.blinded else hidden),
            "n_voxels": None if math.isnan(lesion.n_voxels) else lesion.n_voxels,
            "volume_mm3": lesion.volume_mm3,
            "diameter_mm": lesion.equivalent_diameter_mm,
            "peak": _in_3d(lesion.peak) if is_placed else [0, 0, 0],
            "centroid": [lesion.centroid_x_mm, lesion.centroid_y_mm, lesion.centroid_z_mm],
            "bbox": box if len(box) == 6 else [*box[:2], 0, *box[2:], 1],
        }


def plain_distribution(count: CountDistribution) -> dict[str, Any]:
    """A distribution as plain values, from the first count that matters on."""
    pmf = count.pmf()
    seen = [place for place, value in enumerate(pmf) if value > _INVISIBLE]
    low, high = count.interval(0.9)
    return {
        "first": seen[0],
        "pmf": pmf[seen[0] : seen[-1] + 1].tolist(),
        "mean": count.mean(),
        "sd": count.std(),
        "mode": count.mode(),
        "median": count.median(),
        "low90": low,
        "high90": high,
    }


def _shares(count: ReviewedCount) -> Any:
    variance = count.var()
    return count.loss_of_variance / variance if variance > 0 else count.loss_of_variance


def _in_3d(index: tuple[int, ...]) -> list[int]:
    return [*index, 0][:3]

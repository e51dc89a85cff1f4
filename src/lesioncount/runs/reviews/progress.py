"""How far a review is: of a scan and of a cohort, what is left, and what to look at next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lesioncount.runs.records import ScanRecord, ScanSummary
from lesioncount.runs.reviews.scan_review import ScanReview, reviewed_count, reviewed_lesions
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.reviewed_count import UNDECIDED, ReviewedCount

# Standard deviations on either side of the mean that hold 90 % of a sum of many counts, which is nearly normal.
_NORMAL_90 = 1.645


@dataclass(frozen=True)
class ScanProgress:
    """How far the review of a scan is.

    Attributes
    ----------
    n_candidates, n_decided : int
        Candidates that a reader is unsure of are decided, too: they were looked at.
    is_done : bool
    mean, variance : float
        Of the count, now.
    seconds : float
    """

    n_candidates: int
    n_decided: int
    is_done: bool
    mean: float
    variance: float
    seconds: float

    @classmethod
    def of(cls, record: ScanRecord, review: ScanReview, calibration: Calibration | None) -> ScanProgress:
        """Of a scan that was begun."""
        lesions = reviewed_lesions(record)
        count = reviewed_count(record, review, calibration)
        n_decided = len(review.verdicts(lesions))
        return cls(len(lesions), n_decided, review.is_done, count.mean(), count.var(), review.seconds)

    @classmethod
    def untouched(cls, scan: ScanSummary, calibration: Calibration | None) -> ScanProgress:
        """Of a scan that nobody has looked at, without its record."""
        peaks, saddles = scan.peak_probability[0], scan.saddle_probability[0]
        undecided = np.full(len(peaks), UNDECIDED)
        count = ReviewedCount(calibration or Calibration(), peaks, saddles, undecided)
        return cls(len(peaks), 0, False, count.mean(), count.var(), 0.0)


def telling_order(progress: Sequence[ScanProgress]) -> list[int]:
    """Numbers of scans, those first whose review takes most from the variance of the total; then those done."""
    return sorted(range(len(progress)), key=lambda one: (progress[one].is_done, -progress[one].variance))


def left_in_cohort(progress: Sequence[ScanProgress], *, blinded: bool = False) -> tuple[float, str]:
    """The standard deviation of the total, and what it means for going on."""
    n_done = sum(one.is_done for one in progress)
    so_far = f"{n_done} of {len(progress)} scans done"
    sd = math.sqrt(sum(one.variance for one in progress))
    if blinded:
        return sd, f"{so_far}."
    total = sum(one.mean for one in progress)
    away = _NORMAL_90 * sd
    if away < 0.5:
        return sd, f"{so_far}. Nothing is left that would change the total of {total:.0f}."
    return sd, (
        f"{so_far}. If you stop here: what is left would change the total of {total:.0f} by ± {_rounded(away)} (90 %)."
    )


def left_in_scan(count: ReviewedCount, *, blinded: bool = False) -> tuple[int | None, str]:
    """Decisions until the count is certain to ±1, and the same in words."""
    n_open = int(count.is_open.sum())
    if blinded:
        return None, f"{n_open} candidate{_s(n_open)} left to decide."
    n = count.n_until_certain()
    if n is None:
        return None, (
            "Lesions without a candidate keep the count uncertain: look at the whole scan, then mark it as done."
        )
    if n == 0:
        return 0, "The count is certain to ±1." if count.var() > 0 else "The count is certain."
    return n, f"{n} decision{_s(n)} left until the count is certain to ±1."


def _rounded(number: float) -> str:
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}"


def _s(n: int) -> str:
    return "" if n == 1 else "s"

"""How far a review is: of a scan and of a cohort, what is left, and what to look at next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lesioncount.assess.reviews.scan_review import ScanReview, reviewed_count, reviewed_lesions, untouched_count
from lesioncount.results.record import Entry, Record
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.reviewed_count import ReviewedCount

Order = Literal["telling", "random", "run"]

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
    def of(cls, record: Record, review: ScanReview, calibration: Calibration | None) -> ScanProgress:
        """Of a scan that was begun."""
        lesions = reviewed_lesions(record)
        count = reviewed_count(record, review, calibration)
        n_decided = len(review.verdicts(lesions))
        return cls(len(lesions), n_decided, review.is_done, count.mean(), count.var(), review.seconds)

    @classmethod
    def untouched(cls, scan: Entry, calibration: Calibration | None) -> ScanProgress:
        """Of a scan that nobody has looked at, without its record."""
        count = untouched_count(scan, calibration)
        return cls(len(count.decided), 0, False, count.mean(), count.var(), 0.0)


def order_of(progress: Sequence[ScanProgress], order: Order = "telling", *, seed: int = 0) -> list[int]:
    """Numbers of scans in the order in which to review them; those that are done come last.

    Parameters
    ----------
    progress : sequence of ScanProgress
    order : {"telling", "random", "run"}
        Telling: first those whose review is expected to take most from the variance of the total. Random: for reviews
        that calibrate, which must be of scans like all others. Run: as they were counted.
    seed : int, default 0
        Of the random order.
    """
    ranks = {
        "telling": [-one.variance for one in progress],
        "random": np.random.default_rng(seed).random(len(progress)).tolist(),
        "run": [0.0] * len(progress),
    }[order]
    return sorted(range(len(progress)), key=lambda one: (progress[one].is_done, ranks[one]))


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

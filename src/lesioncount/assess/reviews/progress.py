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
from lesioncount.trust.fitting.fit import MIN_LESIONS, MIN_SCANS
from lesioncount.trust.reviewed_count import ReviewedCount

Order = Literal["telling", "random", "run", "calibration"]

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

    @property
    def is_complete(self) -> bool:
        """Whether it can calibrate: the scan is done, and nothing in it is in doubt."""
        return self.is_done and self.variance == 0

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
    order : {"telling", "random", "run", "calibration"}
        Telling: first those whose review is expected to take most from the variance of the total. Random: in an order
        that has nothing to do with them. Calibration: the same, and no more than are needed. Run: as they were counted.
    seed : int, default 0
        Of the random order.
    """
    if order == "calibration":
        return sorted(drawn_to_calibrate(progress, seed=seed), key=lambda one: progress[one].is_done)
    ranks = {
        "telling": [-one.variance for one in progress],
        "random": np.random.default_rng(seed).random(len(progress)).tolist(),
        "run": [0.0] * len(progress),
    }[order]
    return sorted(range(len(progress)), key=lambda one: (progress[one].is_done, ranks[one]))


def drawn_to_calibrate(progress: Sequence[ScanProgress], *, seed: int = 0) -> list[int]:
    """Numbers of scans, drawn at random, whose review is enough for a calibration.

    They are as many as a calibration needs; where all of these are done and have too few lesions, as many again.
    """
    drawn: list[int] = np.argsort(np.random.default_rng(seed).random(len(progress)), kind="stable").tolist()
    n = MIN_SCANS
    while n < len(drawn) and all(progress[one].is_done for one in drawn[:n]) and not _is_enough(progress, drawn[:n]):
        n += MIN_SCANS
    return drawn[:n]


def left_to_calibrate(progress: Sequence[ScanProgress], *, seed: int = 0) -> str:
    """How many scans and lesions a calibration has, and how many it needs."""
    drawn = drawn_to_calibrate(progress, seed=seed)
    n_scans, n_lesions = _complete(progress, drawn)
    so_far = f"{n_scans} of {max(len(drawn), MIN_SCANS)} scans, {n_lesions} of {MIN_LESIONS} lesions."
    if _is_enough(progress, drawn):
        return f"{so_far} That is enough: lesioncount calibrate RESULTS --reviews. More scans make it better."
    return so_far


def _complete(progress: Sequence[ScanProgress], drawn: Sequence[int]) -> tuple[int, int]:
    """How many scans are complete, and how many lesions they have."""
    complete = [progress[one] for one in drawn if progress[one].is_complete]
    return len(complete), round(sum(one.mean for one in complete))


def _is_enough(progress: Sequence[ScanProgress], drawn: Sequence[int]) -> bool:
    n_scans, n_lesions = _complete(progress, drawn)
    return n_scans >= MIN_SCANS and n_lesions >= MIN_LESIONS


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
    """Decisions until three neighbouring counts hold 90 %, and the same in words."""
    n_open = int(count.is_open.sum())
    if blinded:
        return None, f"{n_open} candidate{_s(n_open)} left to decide."
    n = count.n_until_certain()
    if n is None:
        return None, (
            "Lesions without a candidate keep the count uncertain: look at the whole scan, then mark it as done."
        )
    if n == 0:
        low, high = count.distribution.interval(0.9)
        sure = f"90 % sure of {low} to {high}." if low < high else f"90 % sure of {low}."
        return 0, sure if count.var() > 0 else "The count is certain."
    return n, f"{n} decision{_s(n)} left until you are 90 % sure of the count, give or take one."


def _rounded(number: float) -> str:
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}"


def _s(n: int) -> str:
    return "" if n == 1 else "s"

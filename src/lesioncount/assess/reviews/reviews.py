"""A folder of results and journals → what readers found in each scan, and the truth where they are done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from lesioncount.assess.reviews.journals import REVIEWS, ReaderJournal, checked_reader, read_journal, readers_of
from lesioncount.assess.reviews.scan_review import (
    ScanReview,
    counting_of,
    reviewed_count,
    reviewed_lesions,
    untouched_count,
)
from lesioncount.errors import ReviewError
from lesioncount.results.record import Entry, Record
from lesioncount.results.results import Results
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.reviewed_count import UNDECIDED, ReviewedCount
from lesioncount.trust.scores.lesions import LesionMatch


@dataclass(frozen=True, eq=False)
class ReviewedScan:
    """A scan, and what a reader has found in it."""

    record: Record
    review: ScanReview
    reader: str

    @cached_property
    def verdicts(self) -> dict[int, tuple[str, int]]:
        """Verdict and number of lesions, by the label of the candidate."""
        return self.review.verdicts(reviewed_lesions(self.record))

    @cached_property
    def decided(self) -> tuple[int, ...]:
        """How many lesions each candidate is, in the order of the record; `UNDECIDED` where that is open."""
        return tuple(self.review.decided(reviewed_lesions(self.record)).tolist())

    @property
    def is_complete(self) -> bool:
        """Whether the count is known."""
        return self.review.is_done and UNDECIDED not in self.decided

    @property
    def n_lesions(self) -> int:
        """Lesions that were accepted or added."""
        return sum(max(n, 0) for n in self.decided) + len(self.review.added)

    def count(self, calibration: Calibration | None) -> ReviewedCount:
        """The count after review."""
        return reviewed_count(self.record, self.review, calibration)


class Reviews:
    """What one reader decided about the scans of a run.

    Parameters
    ----------
    results : Results
        The run whose candidates decisions are about. They are known by the peaks of their maps, which must be the same
        files as those reviewed.
    reader : str
    folder : Path, optional
        Where the journals are. Default: in the folder of the results.
    """

    def __init__(self, results: Results, reader: str, folder: Path | None = None) -> None:
        self.results = results
        self.journal: ReaderJournal = read_journal(folder or results.out, reader)

    @property
    def reader(self) -> str:
        """The name of the reader."""
        return self.journal.reader

    def of(self, scan: Entry) -> ScanReview:
        """What stands about a scan."""
        counting = counting_of(self.results.run.settings)
        return ScanReview.of(self.journal.events(scan.name), scan, counting)

    def scan(self, scan: Entry) -> ReviewedScan | None:
        """A scan with its record; None if the reader has done nothing about it."""
        review = self.of(scan)
        return ReviewedScan(self.results.record(scan.name), review, self.reader) if review.n_events else None

    def begun(self) -> Iterator[ReviewedScan]:
        """The scans that the reader has done anything about."""
        found = (self.scan(scan) for scan in self.results.counted)
        return (scan for scan in found if scan is not None)

    def count(self, scan: Entry) -> ReviewedCount:
        """The count of a scan after review, as it was where nobody has looked."""
        found = self.scan(scan)
        calibration = self.results.calibration
        return untouched_count(scan, calibration) if found is None else found.count(calibration)


def the_reader(folder: Path, reader: str | None) -> str:
    """The reader whose reviews are asked for; the only one there is, if none was named."""
    known = readers_of(folder)
    if not known:
        raise ReviewError(f"There are no reviews in {folder / REVIEWS}. Review first: lesioncount review {folder}")
    if reader is None and len(known) == 1:
        return known[0]
    if reader is None:
        raise ReviewError(f"There are reviews of {', '.join(known)}. Whose are meant? Name one with --reader.")
    name = checked_reader(reader)
    if name not in known:
        raise ReviewError(f"There is no review by {name} in {folder / REVIEWS}, but by {', '.join(known)}.")
    return name


class ReviewedTruth:
    """What a reader found in the scans that were reviewed completely: done, and each candidate decided.

    Parameters
    ----------
    results : Results
    folder : Path
        Folder of the results that were reviewed, with the journals in it.
    reader : str, optional
        Whose reviews are meant. Default: the only reader there is.
    """

    def __init__(self, results: Results, folder: Path, reader: str | None = None) -> None:
        reviews = Reviews(results, the_reader(folder, reader), folder)
        begun = list(reviews.begun())
        self.reader = reviews.reader
        self.n_partial = sum(not scan.is_complete for scan in begun)
        self.matches = {scan.record.name: match_of(scan) for scan in begun if scan.is_complete}
        if not self.matches:
            raise ReviewError(
                f"No review by {self.reader} is complete, of {len(begun)} begun: mark a scan as done when each of its "
                "candidates is decided."
            )

    def notes(self) -> Iterator[str]:
        """What a reader of results must know."""
        if self.n_partial:
            yield (
                f"Left out, because they are not marked as done or not all candidates are decided: {self.n_partial} of "
                f"the {self.n_partial + len(self.matches)} scans that {self.reader} has begun."
            )


def match_of(scan: ReviewedScan) -> LesionMatch:
    """Candidates beside the lesions of a complete review: each lesion is in one candidate, or in none."""
    n = np.array(scan.decided, dtype=np.int64)
    candidate_of = np.repeat(np.arange(len(n)), n)
    return LesionMatch(
        n_lesions=scan.n_lesions,
        touches=n > 0,
        owns=n > 0,
        pairs=np.column_stack([candidate_of, np.arange(len(candidate_of))]),
        n_missed=len(scan.review.added),
        n_split=0,
        n_merged=int((n > 1).sum()),
    )

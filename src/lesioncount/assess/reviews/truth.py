"""Complete reviews → the truth about scans, as masks by experts would give it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lesioncount.assess.reviews.reviews import ReviewedScan, Reviews, the_reader
from lesioncount.errors import ReviewError
from lesioncount.results.results import RunResults
from lesioncount.trust.scores.lesions import LesionMatch


class ReviewedTruth:
    """What a reader found in the scans that were reviewed completely: done, and each candidate decided.

    Parameters
    ----------
    results : RunResults
    folder : Path
        Folder of the results that were reviewed, with the journals in it.
    reader : str, optional
        Whose reviews are meant. Default: the only reader there is.
    """

    def __init__(self, results: RunResults, folder: Path, reader: str | None = None) -> None:
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

"""Reviews of an earlier run → a new count of the same maps, with the candidates fixed that were decided."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from lesioncount.assess.reviews.export import REVIEWED_COUNTS, write_reviewed_counts
from lesioncount.assess.reviews.reviews import Reviews, the_reader
from lesioncount.errors import ReviewError
from lesioncount.results.results import RunResults


@dataclass(frozen=True)
class AppliedReviews:
    """What reviews made of a run.

    Attributes
    ----------
    reader : str
    n_begun, n_complete : int
        Scans with any decision, and those whose count is known.
    mean, sd : float
        Of the total of all scans, after review.
    """

    reader: str
    n_begun: int
    n_complete: int
    mean: float
    sd: float

    def __str__(self) -> str:
        """One line in plain words."""
        return (
            f"Reviewed by {self.reader}: {self.n_begun} scan{'' if self.n_begun == 1 else 's'}, {self.n_complete} "
            f"completely. Total after review: {self.mean:.1f} ± {self.sd:.1f} (mean and sd), see {REVIEWED_COUNTS}."
        )


def apply_reviews(results: RunResults, folder: Path, reader: str | None = None) -> AppliedReviews:
    """Write ``reviewed_counts.tsv`` of a run with the decisions of a reader about the same maps in another folder."""
    reviews = Reviews(results, the_reader(folder, reader), folder)
    begun = list(reviews.begun())
    if not begun:
        raise ReviewError(
            f"{reviews.reader} has reviewed none of these scans in {folder}: decisions are about maps of the same name "
            "and content."
        )
    write_reviewed_counts(results, [reviews])
    counts = [reviews.count(scan) for scan in results.counted]
    return AppliedReviews(
        reviews.reader,
        len(begun),
        sum(scan.is_complete for scan in begun),
        math.fsum(count.mean() for count in counts),
        math.sqrt(math.fsum(count.var() for count in counts)),
    )

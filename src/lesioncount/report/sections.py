"""The record of one scan → what its section of the page shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lesioncount.report.figures import distribution
from lesioncount.report.planes import Plane
from lesioncount.report.slices import Slices, cut_slices
from lesioncount.runs.lesion_rows import LesionRow
from lesioncount.runs.records import ScanSummary
from lesioncount.runs.results import RunResults

# Nobody looks at more pictures of one scan; and they make a page slow to open.
PICTURES_PER_SCAN = 12

# Further candidates are rows of a table; each of the rest moves the count by next to nothing.
ROWS_PER_SCAN = 40


@dataclass(frozen=True)
class Section:
    """What is shown of one scan.

    Attributes
    ----------
    scan : ScanSummary
    figure : str
        The distribution of the count, as SVG.
    lesions : list of LesionRow
        All candidates, the largest share of the variance first; of an ensemble, those of all members.
    slices : Slices
        The pictures of the first of them; of an ensemble, of the first of its first member.
    has_pictures : bool
        Whether pictures were asked for.
    """

    scan: ScanSummary
    figure: str
    lesions: list[LesionRow]
    slices: Slices
    has_pictures: bool

    @property
    def cards(self) -> list[tuple[LesionRow, tuple[Plane, ...]]]:
        """Candidates with their pictures."""
        return [(row, self.slices.planes[row.label]) for row in self.lesions if self._has_picture(row)]

    @property
    def rows(self) -> list[LesionRow]:
        """The candidates that follow, without pictures."""
        return self._without_pictures[:ROWS_PER_SCAN]

    @property
    def left_out(self) -> list[LesionRow]:
        """The candidates that are in ``lesions.tsv`` only."""
        return self._without_pictures[ROWS_PER_SCAN:]

    @property
    def share_left_out(self) -> float:
        """Their share of the variance; of an ensemble, on average over members, for each has shares of its own."""
        return sum(row.variance_share for row in self.left_out) / len(self.scan.existence)

    @property
    def _without_pictures(self) -> list[LesionRow]:
        return [row for row in self.lesions if not self._has_picture(row)]

    def _has_picture(self, row: LesionRow) -> bool:
        return row.is_of_first_member and row.label in self.slices.planes


def section_of(
    scan: ScanSummary, results: RunResults, *, key: str, image: Path | str | None, has_pictures: bool
) -> Section:
    """Read the record of a scan, draw its distribution, and cut its slices."""
    record = results.record(scan.name)
    lesions = sorted(record.lesions, key=lambda row: (-row.variance_share, -row.existence, row.label))
    shown = [row for row in lesions if row.is_of_first_member][:PICTURES_PER_SCAN]
    slices = cut_slices(scan, results.run.counted_with, shown, image) if has_pictures else Slices()
    return Section(scan, distribution(record, key=key), lesions, slices, has_pictures)

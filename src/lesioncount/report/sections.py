"""The record of one scan → what its section of the page shows, and the section as text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lesioncount.report.figures import distribution
from lesioncount.report.planes import Plane
from lesioncount.report.regions import RegionTable, regions_of_scan
from lesioncount.report.slices import Slices, cut_slices
from lesioncount.report.templates import template
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.record import Entry, Record
from lesioncount.results.recorded import Recorded
from lesioncount.results.region_numbers import RegionRow
from lesioncount.results.scan_count import ScanCount

# Pictured of one scan: the most doubtful candidates, and the surest ones. Nobody looks at more, and all are in a table.
MOST_DOUBTFUL, MOST_SURE = 5, 5

# Further candidates move the count by next to nothing, and make a section slow to open.
ROWS_PER_SCAN = 1000


@dataclass(frozen=True)
class Section:
    """What is shown of one scan.

    Attributes
    ----------
    scan : Entry
    figure : str
        The distribution of the count, as SVG.
    lesions : list of LesionRow
        All candidates, the largest share of the variance first; of an ensemble, those of all members.
    slices : Slices
        The pictures of some of them; of an ensemble, of its first member.
    regions : RegionTable or None
        The count in each region.
    """

    scan: Entry
    figure: str
    lesions: list[LesionRow]
    slices: Slices
    regions: RegionTable[RegionRow] | None = None

    @cached_property
    def cards(self) -> list[tuple[LesionRow, tuple[Plane, ...]]]:
        """Candidates with their pictures."""
        return [
            (row, self.slices.planes[row.label])
            for row in self.lesions
            if row.is_of_first_member and row.label in self.slices.planes
        ]

    @property
    def rows(self) -> list[LesionRow]:
        """The candidates of the table; those of a few, which all have their pictures, need none."""
        return [] if self.n_unpictured == 0 else self.lesions[:ROWS_PER_SCAN]

    @property
    def n_unpictured(self) -> int:
        """Candidates without pictures."""
        return len(self.lesions) - len(self.cards)

    @property
    def words_on_pictures(self) -> str:
        """Which candidates have pictures, where not all have."""
        doubtful = f"the {MOST_DOUBTFUL} candidates with the largest shares of the variance"
        return f"There are pictures of {doubtful} and the {MOST_SURE} surest ones; all are in the table below."

    @property
    def left_out(self) -> list[LesionRow]:
        """The candidates that are in ``lesions.tsv`` only."""
        return self.lesions[ROWS_PER_SCAN:]

    @property
    def share_left_out(self) -> float:
        """Their share of the variance; of an ensemble, on average over members, for each has shares of its own."""
        return sum(row.variance_share for row in self.left_out) / len(self.scan.tables)


@dataclass(frozen=True)
class SectionText:
    """A section as parts of a page, both of them HTML; and whether something could not be shown as it was to be."""

    summary: str
    body: str
    has_note: bool


def section_text(
    record: Record, counted_with: Recorded, image: Path | str | None, count: ScanCount | None = None
) -> SectionText:
    """Draw the distribution of a scan, cut its slices, and write its section.

    Parameters
    ----------
    record : Record
    counted_with : Recorded
    image : path, optional
        What to show behind candidates; a text says why there is none, though images were asked for.
    count : ScanCount, optional
        What was just counted, with its shades and runs. Default: the map is read again.
    """
    lesions = sorted(record.lesions, key=lambda row: (-row.variance_share, -row.existence, row.label))
    scan = record.summary
    slices = cut_slices(scan, counted_with, _pictured(lesions), image, count)
    section = Section(scan, distribution(record), lesions, slices, regions_of_scan(scan, counted_with))
    calibration, protocol = counted_with.calibration, counted_with.protocol
    body = template("section.html.j2").render(section=section, calibration=calibration, protocol=protocol)
    return SectionText(template("summary.html.j2").render(scan=scan), body, slices.note is not None)


def _pictured(lesions: list[LesionRow]) -> list[LesionRow]:
    """Of the candidates that come by their shares, those with pictures."""
    of_map = [row for row in lesions if row.is_of_first_member]
    sure = sorted(of_map[MOST_DOUBTFUL:], key=lambda row: (-row.best_existence, -row.n_voxels))[:MOST_SURE]
    return of_map[:MOST_DOUBTFUL] + sure

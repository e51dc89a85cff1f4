"""The record of one scan → what its section of the page shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lesioncount.report.cohort import ScanSummary
from lesioncount.report.figures import distribution
from lesioncount.report.planes import Plane
from lesioncount.report.slices import Slices, cut_slices
from lesioncount.runs.records import read_record

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
    path : str
        The map.
    figure : str
        The distribution of the count, as SVG.
    lesions : list of dict
        All candidates, the largest share of the variance first; of an ensemble, those of all members.
    slices : Slices
        The pictures of the first of them; of an ensemble, of the first of its first member.
    has_pictures : bool
        Whether pictures were asked for.
    n_dropped : int
        Candidates below the smallest size of the protocol.
    """

    scan: ScanSummary
    path: str
    figure: str
    lesions: list[dict[str, Any]]
    slices: Slices
    has_pictures: bool
    n_dropped: int

    @property
    def cards(self) -> list[tuple[dict[str, Any], tuple[Plane, ...]]]:
        """Candidates with their pictures."""
        planes = self.slices.planes
        return [(row, planes[row["label"]]) for row in self.lesions if _is_on_map(row) and row["label"] in planes]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The candidates that follow, without pictures."""
        return self._without_pictures[:ROWS_PER_SCAN]

    @property
    def left_out(self) -> list[dict[str, Any]]:
        """The candidates that are in ``lesions.tsv`` only."""
        return self._without_pictures[ROWS_PER_SCAN:]

    @property
    def share_left_out(self) -> float:
        """Their share of the variance; of an ensemble, on average over members, for each has shares of its own."""
        share: float = sum(row["variance_share"] for row in self.left_out)
        return share / len(self.scan.existence)

    @property
    def _without_pictures(self) -> list[dict[str, Any]]:
        return [row for row in self.lesions if not (_is_on_map(row) and row["label"] in self.slices.planes)]


def section_of(scan: ScanSummary, out: Path, *, images: Path | None, has_pictures: bool) -> Section:
    """Read the record of a scan, draw its distribution, and cut its slices."""
    record = read_record(out, scan.name) or {}
    lesions = sorted(record["lesions"], key=lambda row: (-row["variance_share"], -row["existence"], row["label"]))
    shown = [row for row in lesions if _is_on_map(row)][:PICTURES_PER_SCAN]
    slices = cut_slices(record, shown, images) if has_pictures else Slices()
    return Section(
        scan=scan,
        path=record["input"]["path"],
        figure=distribution(record, key=scan.anchor),
        lesions=lesions,
        slices=slices,
        has_pictures=has_pictures,
        n_dropped=record["n_dropped"],
    )


def _is_on_map(row: dict[str, Any]) -> bool:
    """Whether it is a candidate of the map that pictures are cut from; other members give the same labels to others."""
    return int(row.get("member", 1)) == 1

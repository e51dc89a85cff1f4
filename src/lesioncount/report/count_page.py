"""The page of counts, ``report.html``: the cohort, each scan, and its candidates in their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lesioncount.cohort.pairing import pair
from lesioncount.errors import MapFileError
from lesioncount.outputs.page import PAGES
from lesioncount.report.calibration_box import numbers_of
from lesioncount.report.figures import distribution, histogram, overview
from lesioncount.report.regions import questions_of_cohort, regions_of_cohort, regions_of_scan
from lesioncount.report.section_folder import ROWS_AT_ONCE, Image, PageKind, SectionText, n_parts
from lesioncount.report.slices import cut_slices
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.record import Entry, Record
from lesioncount.results.results import Results
from lesioncount.results.scan_count import ScanCount
from lesioncount.results.scan_numbers import MIN_BETWEEN_VARIANCE
from lesioncount.trust.calibration import Calibration

# Pictured of one scan: the most doubtful candidates, and the surest ones. Nobody looks at more, and all are in a table.
MOST_DOUBTFUL, MOST_SURE = 5, 5

# Further candidates move the count by next to nothing, and make a section slow to open.
ROWS_PER_SCAN = 1000

# Probabilities whose correction says what a calibration does: an open question, and one that a map takes as settled.
_OPEN, _SETTLED = 0.5, 0.9

# A rate of extra lesions that a fit leaves where there are none.
_NEXT_TO_NONE = 0.05


def _images(results: Results, where: Path, suffix: str) -> dict[str, tuple[Path | None]]:
    """The image of each scan that was counted."""
    files = {scan.name: scan.files for scan in results.counted}
    # Scans that failed may have images: then it was looked at before that there are some.
    found = pair(files, where, role="image", suffix=suffix, none_is_error=not results.failed)
    return {name: (found.get(name),) for name in files}


def _content(results: Results, scans: Sequence[Entry], anchors: Mapping[str, str]) -> dict[str, Any]:
    """The cohort as a whole."""
    calibration, n_apart = results.calibration, n_parts(len(results.scans))
    return {
        "first": None,  # the script takes the most uncertain scan
        "listed": results.scans[:ROWS_AT_ONCE] if n_apart else results.scans,
        "n_parts": n_apart,
        "warnings": results.warnings,
        "disagreeing": _disagreeing(scans),
        "overview": lambda: overview(scans, anchors),
        "histogram": lambda: histogram(scans),
        "regions": regions_of_cohort(scans, results.run.settings),
        "questions": questions_of_cohort(scans),
        # A total of few draws has fewer nodes than each of its scans; what is expected of it is their sum.
        "expected": [
            sum(scan.counted.raw.count_mean for scan in scans),
            sum(scan.counted.best.count_mean for scan in scans),
        ],
        "totals": [results.total()] + ([] if calibration is None else [results.total(calibration)]),
        "min_between_variance": MIN_BETWEEN_VARIANCE,
        "numbers": {} if calibration is None else numbers_of(calibration),
        "corrected": [] if calibration is None else _corrected(calibration),
        "next_to_none": _NEXT_TO_NONE,
    }


def _disagreeing(scans: Sequence[Entry]) -> list[Entry]:
    """The scans whose members disagree, those that do so most first."""
    ensembles = [(scan.counted.ensemble, scan) for scan in scans]
    found = [(ensemble.variance_between, scan) for ensemble, scan in ensembles if ensemble and ensemble.disagrees]
    return [scan for _, scan in sorted(found, key=lambda one: -one[0])]


def _corrected(calibration: Calibration) -> list[tuple[float, float]]:
    """Probabilities in a map, and what a calibration makes of them."""
    in_map = (_OPEN, _SETTLED)
    corrected = calibration.of_typical_candidates.existence(in_map, among=calibration.typical_count)
    return list(zip(in_map, corrected.tolist(), strict=True))


def _section(record: Record, images: Sequence[Image] = (), count: ScanCount | None = None) -> SectionText:
    """Draw the distribution of a scan, cut its slices, and write its section.

    Parameters
    ----------
    record : Record
    images : sequence of path or text
        What to show behind candidates: one image; a text says why there is none, though images were asked for.
    count : ScanCount, optional
        What was just counted, with its shades and runs. Default: the map is read again.
    """
    scan, how = record.summary, record.settings
    if how is None:
        raise MapFileError(f"The record of {scan.name} does not say how it was counted. Count again.")
    lesions = sorted(record.lesions, key=lambda row: (-row.variance_share, -row.existence, row.label))
    pictured = _pictured(lesions)
    slices = cut_slices(scan, how, pictured, images[0] if images else None, count)
    planes = {row.label: cut for row, (cut,) in zip(pictured, slices.planes, strict=False)}
    of_map = (row for row in lesions if row.is_of_first_member and row.label in planes)
    return SectionText.rendered(
        "summary.html.j2",
        "section.html.j2",
        slices,
        scan=scan,
        figure=distribution(scan.counted, record.pmf, record.pmf_calibrated),
        lesions=lesions,  # the largest share of the variance first; of an ensemble, those of all members
        cards=[(row, planes[row.label]) for row in of_map],
        regions=regions_of_scan(scan, how),
        calibration=how.calibration,
        protocol=how.protocol,
        listed=how.listed,
        most=(MOST_DOUBTFUL, MOST_SURE),
        most_rows=ROWS_PER_SCAN,
    )


def _pictured(lesions: list[LesionRow]) -> list[LesionRow]:
    """Of the candidates that come by their shares, those with pictures."""
    of_map = [row for row in lesions if row.is_of_first_member]
    sure = sorted(of_map[MOST_DOUBTFUL:], key=lambda row: (-row.best_existence, -row.n_voxels))[:MOST_SURE]
    return of_map[:MOST_DOUBTFUL] + sure


# The page of ``lesioncount count``.
COUNTS = PageKind(
    folder=PAGES["count"],
    template="count_page.html.j2",
    section_templates=("section.html.j2", "summary.html.j2", "numbers.html.j2", "regions.html.j2"),
    what="scan",
    again="Count again.",
    no_image="Shown on the map, because there is no image of this scan",
    many=12,
    has_parts=True,
    about=lambda run: run.settings.plain,
    images=_images,
    section=_section,
    interest=lambda scan: scan.counted.best.count_sd,
    content=_content,
)

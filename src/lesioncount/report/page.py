"""A folder of results → ``report.html``, one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from lesioncount.files.output import OutputFolder
from lesioncount.optional import optional
from lesioncount.report.figures import histogram, overview
from lesioncount.report.sections import PICTURES_PER_SCAN, section_of
from lesioncount.report.templates import template
from lesioncount.runs.pairing import pair, paired_scan
from lesioncount.runs.records import ScanSummary
from lesioncount.runs.results import RunResults, read_results
from lesioncount.runs.scan_numbers import MIN_BETWEEN_VARIANCE
from lesioncount.trust.calibration import Calibration
from lesioncount.version import __version__

# Probabilities whose correction says what a calibration does: an open question, and one that a map takes as settled.
_OPEN, _SETTLED = 0.5, 0.9

# A rate of extra lesions that a fit leaves where there are none.
_NEXT_TO_NONE = 0.05

# Scans with pictures, the most uncertain ones: with more, browsers take long to open the page.
_SCANS_WITH_PICTURES = 60

# Rows of the overview that fit on a screen.
_SCANS_IN_OVERVIEW = 40

# From so many scans on, sections are closed until they are asked for, but for the first ones.
_MANY_SCANS, _OPEN_OF_MANY = 12, 3


def write_report(
    results: RunResults | str | Path, *, images: str | Path | None = None, images_suffix: str = ""
) -> Path:
    """Write a page that shows the results of a run: the cohort, each scan, and each candidate in its place.

    Parameters
    ----------
    results : RunResults or path
        What `count_batch` returned, or the folder it wrote to. The maps are read again for pictures.
    images : path, optional
        What to show behind the candidates: a folder with an image for each map, of the same name or the same BIDS
        entities; a pattern such as ``flair/{participant}_{session}_FLAIR.nii.gz``; or one image for all. It must lie
        on the grid of the map. Default: the map itself.
    images_suffix : str
        What the name of an image adds to that of its map, or has in place of its last part.

    Returns
    -------
    Path
        Of the page, ``report.html`` in the folder of the results.
    """
    for module in ("matplotlib", "jinja2"):
        optional(module, "report", "Writing the report")
    results = results if isinstance(results, RunResults) else read_results(Path(results))
    page = results.out / "report.html"
    shown = {} if images is None else images_of(results, Path(images), suffix=images_suffix)
    OutputFolder(results.out).write_text(page.name, _rendered(results, shown))
    return page


def images_of(results: RunResults, images: Path, *, suffix: str = "") -> dict[str, Path | str]:
    """The image of each scan that was counted; where there is none, a text that says so."""
    scans = [paired_scan(scan.name, scan.files) for scan in results.counted if scan.files is not None]
    found = pair(scans, images, role="image", suffix=suffix)
    missing = f"Shown on the map, because there is no image of this scan in {images}."
    return {scan.name: image or missing for scan, image in zip(scans, found, strict=True)}


def _rendered(results: RunResults, images: Mapping[str, Path | str]) -> str:
    # The most uncertain scans first; those that are equally so in the order of the run.
    scans = sorted(results.counted, key=lambda scan: -scan.counted.best.count_sd)
    anchors = {scan.name: f"scan-{number}" for number, scan in enumerate(results.scans, start=1)}
    sections = [
        section_of(
            scan,
            results,
            key=anchors[scan.name],
            image=images.get(scan.name),
            has_pictures=number < _SCANS_WITH_PICTURES,
        )
        for number, scan in enumerate(scans)
    ]
    in_overview = scans[:_SCANS_IN_OVERVIEW]
    is_cut = len(in_overview) < len(scans)
    calibration = results.calibration
    text: str = template("page.html.j2").render(
        results=results,
        anchors=anchors,
        sections=sections,
        disagreeing=_disagreeing(scans),
        overview=overview(in_overview, anchors, "overview") if in_overview else "",
        histogram=histogram(scans, "histogram") if is_cut else "",
        n_in_overview=len(in_overview),
        n_open=len(sections) if len(sections) <= _MANY_SCANS else _OPEN_OF_MANY,
        pictures_per_scan=PICTURES_PER_SCAN,
        scans_with_pictures=_SCANS_WITH_PICTURES,
        totals=[results.total()] + ([] if calibration is None else [results.total(calibration)]),
        min_between_variance=MIN_BETWEEN_VARIANCE,
        calibration_words=None if calibration is None else _in_plain_words(calibration),
        version=__version__,
        written=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
    )
    return text


def _disagreeing(scans: Sequence[ScanSummary]) -> list[ScanSummary]:
    """The scans whose members disagree, those that do so most first."""
    ensembles = [(scan.counted.ensemble, scan) for scan in scans]
    found = [(ensemble.variance_between, scan) for ensemble, scan in ensembles if ensemble and ensemble.disagrees]
    return [scan for _, scan in sorted(found, key=lambda one: -one[0])]


def _in_plain_words(calibration: Calibration) -> str:
    """What a calibration does to a count."""
    opened, settled = calibration.existence([_OPEN, _SETTLED], among=calibration.typical_count)
    changed = f"a candidate with a probability of {_OPEN} in the map exists with probability {opened:.2f}"
    return f"{changed}, one with {_SETTLED} exists with {settled:.2f}; {_extra_in_words(calibration)}."


def _extra_in_words(calibration: Calibration) -> str:
    """How many lesions are expected to have no candidate of their own."""
    rate, share = calibration.extra_rate, calibration.extra_share
    of_each = f"{share:.2g} for each lesion that has one"
    if not calibration.has_extra:
        return "every lesion is assumed to have a candidate of its own"
    if rate < _NEXT_TO_NONE and share > 0:
        return f"lesions without a candidate of their own are expected: {of_each}"
    also = f", and {of_each}" if share > 0 else ""
    return f"{rate:.2g} lesions per scan are expected to have no candidate of their own{also}"

"""A folder of results → ``report.html``: one file that needs nothing else, or of many scans a folder beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from lesioncount.cohort.pairing import pair, paired_scan
from lesioncount.errors import MapFileError
from lesioncount.files.remote_path import to_path
from lesioncount.folder.output import OutputFolder
from lesioncount.outputs.label_maps import REPORT
from lesioncount.report.figures import histogram, overview
from lesioncount.report.regions import questions_of_cohort, regions_of_cohort
from lesioncount.report.section_files import image_or_why, make_sections, sections_in
from lesioncount.report.section_folder import Progress, fingerprint_of, is_written
from lesioncount.report.sections import SectionText
from lesioncount.report.table_parts import anchors_of, has_rows, n_parts, shards_of, write_rows
from lesioncount.report.templates import check_can_report, template
from lesioncount.results.record import ScanSummary
from lesioncount.results.results import RunResults, read_results
from lesioncount.results.run_file import Run, RunScan, find_run
from lesioncount.results.scan_numbers import MIN_BETWEEN_VARIANCE
from lesioncount.trust.calibration import Calibration
from lesioncount.version import __version__

# Probabilities whose correction says what a calibration does: an open question, and one that a map takes as settled.
_OPEN, _SETTLED = 0.5, 0.9

# A rate of extra lesions that a fit leaves where there are none.
_NEXT_TO_NONE = 0.05

# Up to so many scans, everything is one page, which can be sent by mail: some megabytes, an overview with all names.
# With more, a browser would be slow to open it, so that sections are files of their own, loaded when they are opened.
FEW_SCANS = 40

# From so many scans on, sections are closed until they are asked for, but for the first ones.
_MANY_SCANS, _OPEN_OF_MANY = 12, 3

# Rows of the table that are laid out at first: a few screens. The others are there, to be searched and sorted.
_ROWS_AT_ONCE = 100

_PAGE = f"{REPORT}.html"


def write_report(
    results: RunResults | str | Path,
    *,
    images: str | Path | None = None,
    images_suffix: str = "",
    jobs: int = 1,
    progress: Progress | None = None,
) -> Path:
    """Write a page that shows the results of a run: the cohort, each scan, and its candidates in their places.

    Of more than `FEW_SCANS` scans, sections are files in the folder ``report``, beside the page. What is there and
    right is kept: sections that `SectionWriter` made while counting, and everything if nothing has changed.

    Parameters
    ----------
    results : RunResults or path
        What `count_batch` returned, or the folder it wrote to.
    images : path, optional
        What to show behind the candidates: a folder with an image for each map, of the same name or the same BIDS
        entities; a pattern such as ``flair/{participant}_{session}_FLAIR.nii.gz``; or one image for all. It must lie
        on the grid of the map. Default: the map itself.
    images_suffix : str
        What the name of an image adds to that of its map, or has in place of its last part.
    jobs : int, default 1
        Number of processes that make sections.
    progress : callable, optional
        Called with the number of sections made, and of those that must be.

    Returns
    -------
    Path
        Of the page, ``report.html`` in the folder of the results.
    """
    check_can_report()
    out = results.out if isinstance(results, RunResults) else Path(results)
    folder = OutputFolder(out)
    files = sections_in(folder)
    # That nothing has changed is known without a look into the records, which takes seconds.
    if images is None and (shown_run := _shown_run(folder)) is not None:
        if len(shown_run.scans) <= FEW_SCANS:
            files.remove()  # of scans that were counted again, with the same result
        return out / _PAGE
    results = results if isinstance(results, RunResults) else read_results(out)
    shown = {} if images is None else images_of(results, to_path(images), suffix=images_suffix)
    keys = files.keys({scan.name: [shown.get(scan.name)] for scan in results.counted})
    in_folder = len(results.scans) > FEW_SCANS
    there, fingerprint = files.noted(keys), _fingerprint(results.run, results.scans, keys)
    is_whole = not in_folder or (len(there) == len(keys) and has_rows(out, len(results.scans)))
    if not (is_whole and is_written(folder, _PAGE, fingerprint)):
        missing = {name: key for name, key in keys.items() if name not in there}
        made = make_sections(results, shown, missing, jobs=jobs, progress=progress)
        if in_folder:
            files.write(made, missing)
            write_rows(folder, results)
            text = _rendered(results, None, fingerprint, files.noted(keys))
        else:
            sections = {name: files.read(name) for name in there} | dict(made)
            text = _rendered(results, sections, fingerprint, {name: one.has_note for name, one in sections.items()})
        folder.write_text(_PAGE, text)
    files.remove(but=keys if in_folder else None)
    return out / _PAGE


def _fingerprint(run: Run, scans: Sequence[RunScan | ScanSummary], keys: Mapping[str, str]) -> str:
    """What the page depends on: the run, what became of its scans, and their sections."""
    of_run = (run.started[:10], run.status, dict(run.versions), run.counted_with.to_dict())
    return fingerprint_of(of_run, [(scan.name, scan.error, keys.get(scan.name)) for scan in scans])


def _shown_run(folder: OutputFolder) -> Run | None:
    """The run in a folder, if a report without images is there that shows just what the folder holds."""
    run, files = find_run(folder.path), sections_in(folder)
    if run is None:
        return None
    try:
        keys = files.keys({scan.name: [None] for scan in run.scans if scan.status == "ok"})
    except MapFileError:
        return None
    n_scans = len(run.scans)
    is_whole = n_scans <= FEW_SCANS or (len(files.noted(keys)) == len(keys) and has_rows(folder.path, n_scans))
    return run if is_whole and is_written(folder, _PAGE, _fingerprint(run, run.scans, keys)) else None


def images_of(results: RunResults, images: Path, *, suffix: str = "") -> dict[str, Path | str]:
    """The image of each scan that was counted; where there is none, a text that says so."""
    scans = [paired_scan(scan.name, scan.files) for scan in results.counted if scan.files is not None]
    # Scans that failed may have images: then it was looked at before that there are some.
    found = pair(scans, images, role="image", suffix=suffix, none_is_error=not results.failed)
    return {scan.name: image_or_why(image, images) for scan, image in zip(scans, found, strict=True)}


def _rendered(
    results: RunResults, sections: Mapping[str, SectionText] | None, fingerprint: str, has_note: Mapping[str, bool]
) -> str:
    """The page, with its sections, or without them if they are files of their own."""
    # The most uncertain scans first; those that are equally so in the order of the run.
    scans = sorted(results.counted, key=lambda scan: -scan.counted.best.count_sd)
    anchors = anchors_of(results)
    in_folder, calibration = sections is None, results.calibration
    text: str = template("page.html.j2").render(
        results=results,
        anchors=anchors,
        fingerprint=fingerprint,
        in_folder=in_folder,
        rows_at_once=_ROWS_AT_ONCE if in_folder else len(results.scans),
        listed=results.scans[:_ROWS_AT_ONCE] if n_parts(len(results.scans)) else results.scans,
        n_parts=n_parts(len(results.scans)),
        shards=shards_of(results),
        shown=[(scan, None if sections is None else sections[scan.name]) for scan in scans],
        without_pictures=[scan for scan in scans if has_note[scan.name]],
        disagreeing=_disagreeing(scans),
        overview=overview(scans, anchors, "overview") if scans and not in_folder else "",
        histogram=histogram(scans) if scans and in_folder else "",
        n_open=len(scans) if len(scans) <= _MANY_SCANS else _OPEN_OF_MANY,
        regions=regions_of_cohort(scans, results.run.counted_with),
        questions=questions_of_cohort(scans),
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
    typical = calibration.of_typical_candidates
    opened, settled = typical.existence([_OPEN, _SETTLED], among=calibration.typical_count)
    of = f" and typical {' and '.join(calibration.weights)}" if calibration.weights else ""
    changed = f"a candidate with a probability of {_OPEN} in the map{of} exists with probability {opened:.2f}"
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

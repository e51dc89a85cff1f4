"""``lesioncount count``: maps in files → tables, records and a report."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lesioncount.cli.batch_arguments import add_count_arguments
from lesioncount.cli.batch_runs import ended, n_shown, run_arguments, write_page
from lesioncount.cli.map_arguments import selection_of, settings_of
from lesioncount.cli.options import given
from lesioncount.cli.printing import Summary, named, some

if TYPE_CHECKING:
    from lesioncount.results.record import Entry
    from lesioncount.runs import DicomOutput, Results, Settings

# Columns of a terminal that the numbers take.
_NUMBERS = 61


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.set_defaults(run=run)
    add_count_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Count, and print what happened."""
    from lesioncount.runs import count_batch

    with run_arguments(options, doing="counting", what="scans") as how:
        _check_reviews(options)
        result = count_batch(
            options.inputs,
            options.output,
            settings=_settings(options),
            selection=selection_of(options, "regions_suffix"),
            **given(options, "regions", "members"),
            **how,
        )
    if not options.quiet:
        summary_of(result, shown=n_shown(options)).print()
    _apply_reviews(result, options)
    write_page(result, options)
    if not options.quiet:
        _say_missing(result, options)
    return ended(result, options, table="counts.tsv")


def _settings(options: argparse.Namespace) -> Settings:
    from lesioncount.results.region_settings import region_settings
    from lesioncount.runs import Settings

    fit = None
    if options.calibration is not None:
        from lesioncount.trust.fitting import CalibrationFit

        fit = CalibrationFit.load(options.calibration)
    wanted = settings_of(options) | given(options, "level", *Settings.outputs) | {"dicom": _dicom(options)}
    return Settings(
        calibration=fit,
        regions=region_settings(options.regions, options.region_names, options.within),
        **wanted | {"save_labels": options.save_labels or options.save_colours},
    )


def _check_reviews(options: argparse.Namespace) -> None:
    """Raise if there are none, before anything is counted."""
    if options.reviews is not None:
        from lesioncount.assess.reviews.reviews import the_reader

        the_reader(options.reviews, options.reader)


def _apply_reviews(result: Results, options: argparse.Namespace) -> None:
    if options.reviews is not None:
        from lesioncount.assess.reviews.export import apply_reviews

        reviewed = apply_reviews(result, options.reviews, options.reader)
        if not options.quiet:
            print(reviewed)


def _dicom(options: argparse.Namespace) -> DicomOutput | None:
    from lesioncount.runs import DicomOutput

    if not (options.dicom or options.dicom_series or options.dicom_type):
        return None
    return DicomOutput(options.dicom_type or "labelmap", options.dicom_series)


def _say_missing(result: Results, options: argparse.Namespace) -> None:
    """Name the scans that have no image, or in which the name pattern finds nobody."""
    from lesioncount.cohort.pairing import without_partner

    missing: dict[str, list[str]] = {}
    if options.name_pattern is not None:
        nobody = [scan.name for scan in result.scans if not scan.whose]
        missing["are not matched by the name pattern"] = nobody
    if options.images is not None:
        without = without_partner(result.counted, options.images, role="image", suffix=options.images_suffix)
        missing[f"have no image in {options.images}"] = without
    for what, names in missing.items():
        if names:
            print(f"note: {len(names)} of {len(result.scans)} scans {what}: {named(names)}")


def summary_of(result: Results, *, shown: int) -> Summary:
    """The counts, a row for each scan."""
    is_calibrated = result.calibration is not None
    interval = "guaranteed 90 %" if result.is_guaranteed else "90 % interval"
    expected = sum(scan.counted.best.count_mean for scan in result.counted)
    total = f"{expected:.1f} lesions expected in total{' (calibrated)' if is_calibrated else ''}"
    n = len(result.counted)
    return Summary(
        ("scan", "candidates", "CC > 0.5", "mode", "median", "mean", interval),
        _NUMBERS,
        [_row(scan) for scan in result.counted[:shown]],
        n,
        f"{some(n, 'scan')} counted, {total}, {len(result.failed)} failed. Results: {result.out}",
        heading="Calibrated counts" if is_calibrated else "",
        answers={scan.name: scan.answers for scan in result.counted if scan.answers},
        notes=[f"warning: {_about(warning, scans, n)}" for warning, scans in result.warnings.items()],
    )


def _row(scan: Entry) -> tuple[str, ...]:
    of, count = scan.counted.candidates, scan.counted.best
    numbers = (of.n_candidates, of.cc_count, count.count_mode, count.count_median, f"{count.count_mean:.2f}")
    ends = scan.counted.guaranteed or (count.interval90_low, count.interval90_high)
    return scan.name, *map(str, numbers), "{} to {}".format(*ends)


def _about(warning: str, scans: Sequence[Entry], n_counted: int) -> str:
    """A warning about one scan with its numbers, or about several without."""
    if len(scans) == 1:
        own = next((text for text in scans[0].warnings if text.startswith(warning)), warning)
        return f"{scans[0].name}: {own}"
    return f"{len(scans)} of {n_counted} scans: {warning}"

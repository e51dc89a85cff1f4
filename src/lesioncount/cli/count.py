"""``lesioncount count``: maps in files → tables, records and a report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lesioncount.cli import region_arguments
from lesioncount.cli.batch_arguments import add_count_arguments
from lesioncount.cli.map_arguments import protocol_of
from lesioncount.cli.signals import ended_by_signals

if TYPE_CHECKING:
    from rich.table import Table

    from lesioncount.results.record import ScanSummary
    from lesioncount.runs import RunResults

# How many scans and failures are listed at the end; all of them are in counts.tsv.
_SHOWN = 20

# How many scans a note names.
_NAMED = 5

# Columns of a terminal that the numbers take, and the least that is left to names.
_NUMBERS, _SHORTEST = 61, 12

# Wider than any table: of a pipe, whose lines have no end.
_NO_LIMIT = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.set_defaults(run=run)
    add_count_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Count, and print what happened."""
    from lesioncount.cli.progress import progress_on, report_progress_on
    from lesioncount.runs import Selection, Settings, count_batch

    show = None
    if options.report:
        from lesioncount.report import SectionWriter, check_can_report

        check_can_report()  # before anything is counted
        show = SectionWriter(options.images)
    _check_reviews(options)
    fit = None
    if options.calibration is not None:
        from lesioncount.trust.fitting import CalibrationFit

        fit = CalibrationFit.load(options.calibration)
    settings = Settings(
        calibration=fit,
        conformal=options.interval == "conformal",
        protocol=protocol_of(options),
        channel=options.channel,
        scale=options.scale,
        logits=options.logits,
        level=options.level,
        **_outputs(options),
        **region_arguments.settings(options),
    )
    with (
        ended_by_signals(),
        progress_on(sys.stderr, quiet=options.quiet, verbose=options.verbose) as progress,
    ):
        result = count_batch(
            options.inputs,
            options.output,
            settings=settings,
            mask=options.mask,
            regions=options.regions,
            selection=Selection(
                suffix=options.suffix,
                root=options.root,
                name_pattern=options.name_pattern,
                mask_suffix=options.mask_suffix,
                images=options.images,
                images_suffix=options.images_suffix,
                regions_suffix=options.regions_suffix,
            ),
            members=options.members,
            jobs=options.jobs,
            cluster=options.cluster,
            resume=options.resume,
            overwrite=options.overwrite,
            progress=progress,
            show=show,
            command=options.typed,
            parquet=options.parquet,
        )
    shown = len(result.scans) if options.verbose else _SHOWN
    if not options.quiet:
        _print_summary(result, shown=shown)
    _apply_reviews(result, options)
    if options.report:
        from lesioncount.report import write_report

        with report_progress_on(sys.stderr, quiet=options.quiet) as sections:
            page = write_report(
                result,
                images=options.images,
                images_suffix=options.images_suffix,
                jobs=options.jobs,
                progress=sections,
            )
        if not options.quiet:
            print(f"Report: {page}")
    if not options.quiet:
        _say_missing(result, options)
    for scan in result.failed[:shown]:
        print(f"failed: {scan.name}: {scan.error}", file=sys.stderr)
    if len(result.failed) > shown:
        print(f"… and {len(result.failed) - shown} more, see counts.tsv", file=sys.stderr)
    if result.interrupted:
        print("Interrupted. What was finished is written; --resume goes on from here.", file=sys.stderr)
        return 130
    return 1 if result.failed else 0


def _check_reviews(options: argparse.Namespace) -> None:
    """Raise if there are none, before anything is counted."""
    if options.reviews is not None:
        from lesioncount.assess.reviews.reviews import the_reader

        the_reader(options.reviews, options.reader)


def _apply_reviews(result: RunResults, options: argparse.Namespace) -> None:
    if options.reviews is not None:
        from lesioncount.assess.reviews.export import apply_reviews

        reviewed = apply_reviews(result, options.reviews, options.reader)
        if not options.quiet:
            print(reviewed)


def _outputs(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of optional outputs, which are called as their options; colours come with the labels they are of."""
    from lesioncount.runs import DicomOutput, Settings

    has_dicom = options.dicom or options.dicom_series or options.dicom_type
    dicom = DicomOutput(options.dicom_type or "labelmap", options.dicom_series) if has_dicom else None
    wanted = {name: getattr(options, name) for name in Settings.outputs}
    return wanted | {"save_labels": options.save_labels or options.save_colours, "dicom": dicom}


def _say_missing(result: RunResults, options: argparse.Namespace) -> None:
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
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        if names:
            print(f"note: {len(names)} of {len(result.scans)} scans {what}: {', '.join(names[:_NAMED])}{more}")


def _print_summary(result: RunResults, *, shown: int) -> None:
    from rich.console import Console

    from lesioncount.cli.answers_table import print_answers

    console = Console(soft_wrap=True)
    if result.counted:
        # On a terminal, long names are shortened. What reads from a pipe wants them whole, a scan per line.
        wide = console if console.is_terminal else Console(width=_NO_LIMIT)
        if result.calibration is not None:
            wide.print("Calibrated counts")
        wide.print(_table(result, shown=shown, longest=max(wide.width - _NUMBERS, _SHORTEST)))
        print_answers(wide, {scan.name: scan.answers for scan in result.counted if scan.answers}, shown=shown)
    if len(result.counted) > shown:
        console.print(f"… and {len(result.counted) - shown} more (-v lists all)")
    for warning, scans in result.warnings.items():
        console.print(f"warning: {_about(warning, scans, len(result.counted))}", markup=False, highlight=False)
    expected = sum(scan.counted.best.count_mean for scan in result.counted)
    counted = f"{len(result.counted)} scan{'' if len(result.counted) == 1 else 's'} counted"
    total = f"{expected:.1f} lesions expected in total{'' if result.calibration is None else ' (calibrated)'}"
    console.print(
        f"{counted}, {total}, {len(result.failed)} failed. Results: {result.out}", markup=False, highlight=False
    )


def _table(result: RunResults, *, shown: int, longest: int) -> Table:
    """The counts, a line for each scan, with names of at most so many letters."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("scan", no_wrap=True, overflow="ellipsis")
    interval = "guaranteed 90 %" if result.is_guaranteed else "90 % interval"
    for name in ("candidates", "CC > 0.5", "mode", "median", "mean", interval):
        table.add_column(name, justify="right", no_wrap=True)
    for scan in result.counted[:shown]:
        of, count = scan.counted.candidates, scan.counted.best
        numbers = (of.n_candidates, of.cc_count, count.count_mode, count.count_median, f"{count.count_mean:.2f}")
        ends = scan.counted.guaranteed or (count.interval90_low, count.interval90_high)
        table.add_row(escape(shortened(scan.name, longest)), *map(str, numbers), "{} to {}".format(*ends))
    return table


def shortened(name: str, longest: int) -> str:
    """A name without its middle, where it is too long: names of a cohort differ at their ends."""
    half = (longest - 1) // 2
    return name if len(name) <= longest else f"{name[: longest - 1 - half]}…{name[-half:]}"


def _about(warning: str, scans: Sequence[ScanSummary], n_counted: int) -> str:
    """A warning about one scan with its numbers, or about several without."""
    if len(scans) == 1:
        own = next((text for text in scans[0].warnings if text.startswith(warning)), warning)
        return f"{scans[0].name}: {own}"
    return f"{len(scans)} of {n_counted} scans: {warning}"

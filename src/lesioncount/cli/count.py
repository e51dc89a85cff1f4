"""``lesioncount count``: maps in files → tables, records and a report."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lesioncount.cli.arguments import named_path, processes
from lesioncount.errors import ProtocolError, reason_of
from lesioncount.protocol import PROTOCOLS, CountingProtocol

if TYPE_CHECKING:
    from rich.table import Table

    from lesioncount.runs import DicomOutput, RunResults
    from lesioncount.runs.records import ScanSummary

# How many scans and failures are listed at the end; all of them are in counts.tsv.
_SHOWN = 20

# How many scans a note names.
_NAMED = 5

# Columns of a terminal that the numbers take, and the least that is left to names.
_NUMBERS, _SHORTEST = 61, 12

# Wider than any table: of a pipe, whose lines have no end.
_NO_LIMIT = 10_000

# What options say that are for names that differ in their ends.
_SUFFIX = "what the name of {} adds to that of its map, or has in place of its last part, such as {}"

# More digits than any number has that is meant.
_LONGEST_NUMBER = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.set_defaults(run=run)
    parser.epilog = (
        "Writes counts.tsv, lesions.tsv, run.json and one JSON file per scan. Exit code: 0 if all scans were counted, "
        "1 if some failed, 2 if nothing could be done, 130 if interrupted."
    )
    parser.add_argument("inputs", nargs="+", metavar="MAP", help="probability maps: files, folders or glob patterns")
    parser.add_argument(
        "-o", "--output", required=True, type=named_path, metavar="FOLDER", help="folder for the results"
    )

    protocol = parser.add_argument_group("what counts as one lesion")
    names = ", ".join(PROTOCOLS)
    protocol.add_argument(
        "--protocol",
        default="paper",
        metavar="NAME|FILE",
        help=f"a named protocol ({names}) or a JSON file (default: paper)",
    )
    protocol.add_argument(
        "--threshold", type=float, metavar="T", help="keep voxels with a probability above T (default: 0.1)"
    )
    protocol.add_argument(
        "--connectivity",
        metavar="C",
        help="which voxels touch: 6, 18, 26, 4, 8, faces, edges or corners (default: edges)",
    )
    protocol.add_argument("--min-voxels", type=int, metavar="N", help="drop candidates with fewer than N voxels")
    protocol.add_argument(
        "--min-volume-mm3", type=float, metavar="V", help="drop candidates smaller than V cubic millimetres"
    )
    protocol.add_argument(
        "--min-diameter-mm", type=float, metavar="D", help="drop candidates smaller than a ball of diameter D"
    )
    protocol.add_argument(
        "--min-length-mm", type=float, metavar="L", help="drop candidates shorter than L along every axis"
    )
    protocol.add_argument(
        "--candidates",
        choices=("regions", "peaks"),
        help="count each region above the threshold, or each peak in it, which keeps lesions apart that touch "
        "(default: regions)",
    )
    protocol.add_argument(
        "--min-persistence",
        type=float,
        metavar="P",
        help="join peaks that stand out by less than P with others",
    )
    protocol.add_argument(
        "--mask",
        type=named_path,
        metavar="FILE|FOLDER|PATTERN",
        help="count only inside this mask; in a folder, the mask of the same name or BIDS entities as the map; a "
        "pattern is such as 'masks/{participant}_{session}.nii.gz'",
    )
    protocol.add_argument("--mask-suffix", default="", metavar="TEXT", help=_SUFFIX.format("a mask", "_brain"))

    trust = parser.add_argument_group("how far to trust the maps")
    trust.add_argument(
        "--calibration",
        type=named_path,
        metavar="FILE",
        help="correct the counts with this calibration, made by lesioncount calibrate",
    )
    trust.add_argument(
        "--interval",
        choices=("distribution", "conformal"),
        default="distribution",
        help="conformal: add a 90 %% interval that is guaranteed for scans like those used for the calibration",
    )
    trust.add_argument(
        "--reviews",
        type=named_path,
        metavar="FOLDER",
        help="results that were reviewed (lesioncount review): candidates that were decided there count as decided, in "
        "reviewed_counts.tsv",
    )
    trust.add_argument("--reader", metavar="NAME", help="whose reviews (default: the only reader there is)")
    trust.add_argument(
        "--members",
        action="store_true",
        help="treat each input folder as one member of an ensemble (folds, MC dropout, test-time augmentation) and "
        "combine the counts of maps in the same place, or with the same BIDS entities",
    )

    maps = parser.add_argument_group("what is in the maps")
    maps.add_argument(
        "--channel",
        type=int,
        metavar="N",
        help="which channel to count in files with several, starting at 0 (nnU-Net: 1 is the first label)",
    )
    maps.add_argument("--logits", action="store_true", help="the maps contain logits, not probabilities")
    maps.add_argument(
        "--scale",
        type=_scale,
        metavar="S",
        help="multiply stored values by S to get probabilities: 1/255 for bytes, 0.01 for percent",
    )

    whose = parser.add_argument_group("whose scans they are")
    whose.add_argument(
        "--suffix",
        metavar="TEXT",
        help="in folders, count only maps whose names end like this, such as _prob (default: in BIDS datasets "
        "_probseg, elsewhere all)",
    )
    whose.add_argument(
        "--name-pattern",
        metavar="PATTERN",
        help="a regular expression with groups (?P<participant>…) and (?P<session>…), searched for in the path of a "
        "map below the folder (default: sub-… and ses-… of BIDS names and folders)",
    )
    whose.add_argument(
        "--root",
        type=named_path,
        metavar="FOLDER",
        help="names of scans are paths below this folder (default: the folder given, or the innermost one that holds "
        "all inputs)",
    )

    work = parser.add_argument_group("the run")
    work.add_argument("-j", "--jobs", type=processes, default=1, metavar="N", help="number of processes (default: 1)")
    work.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="run on a Dask cluster; the address of its scheduler, such as tcp://host:8786",
    )
    again = work.add_mutually_exclusive_group()
    again.add_argument(
        "--resume",
        action="store_true",
        help="continue an earlier run: keep results that are still valid, count the rest",
    )
    again.add_argument("--overwrite", action="store_true", help="count everything again and replace earlier results")
    work.add_argument(
        "--save-labels", action="store_true", help="also write the candidates as label maps, SCAN_lesions.nii.gz"
    )
    work.add_argument(
        "--save-existence",
        action="store_true",
        help="also write maps in which each candidate has its existence, SCAN_existence.nii.gz",
    )
    work.add_argument(
        "--save-colours",
        action="store_true",
        help="also write label maps with colour tables for ITK-SNAP, 3D Slicer and FSLeyes, SCAN_lesions.*",
    )
    work.add_argument(
        "--bids",
        action="store_true",
        help="also write the candidates as a BIDS derivative: sub-…/anat/…_dseg.nii.gz, …_probseg.nii.gz and tables",
    )
    work.add_argument(
        "--report",
        action="store_true",
        help="also write report.html: one page, or of more than 40 scans a page with the folder report/ beside it",
    )
    work.add_argument(
        "--images",
        type=named_path,
        metavar="FOLDER|PATTERN",
        help="show candidates in the report on these images: a folder, in which they have the names or BIDS entities "
        "of the maps, or a pattern such as 'flair/{participant}_{session}_FLAIR.nii.gz'",
    )
    work.add_argument("--images-suffix", default="", metavar="TEXT", help=_SUFFIX.format("an image", "_FLAIR"))
    _add_dicom_arguments(parser)
    work.add_argument("--quiet", action="store_true", help="print errors only")
    work.add_argument("--debug", action="store_true", help="show where an error came from")


def _add_dicom_arguments(parser: argparse.ArgumentParser) -> None:
    dicom = parser.add_argument_group("results as DICOM (needs lesioncount[dicom])")
    dicom.add_argument(
        "--dicom",
        action="store_true",
        help="also write the candidates as a segmentation, SCAN_seg.dcm, and the count as a report, SCAN_sr.dcm",
    )
    dicom.add_argument(
        "--dicom-series",
        type=named_path,
        metavar="FOLDER|PATTERN",
        help="the images that the map was made from; for several maps, a folder with a folder of the name of each, or "
        "a pattern such as 'dicom/{participant}/{session}'. Not needed for DICOM maps. Turns --dicom on",
    )
    dicom.add_argument(
        "--dicom-type",
        choices=("labelmap", "binary"),
        help="of the segmentation; binary is for older viewers (default: labelmap). Turns --dicom on",
    )


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
        protocol=_protocol(options),
        channel=options.channel,
        scale=options.scale,
        logits=options.logits,
        save_labels=options.save_labels or options.save_colours,
        save_existence=options.save_existence,
        save_colours=options.save_colours,
        dicom=_dicom(options),
        bids=options.bids,
    )
    with progress_on(sys.stderr, quiet=options.quiet, verbose=options.verbose) as progress:
        result = count_batch(
            options.inputs,
            options.output,
            settings=settings,
            mask=options.mask,
            selection=Selection(
                suffix=options.suffix,
                root=options.root,
                name_pattern=options.name_pattern,
                mask_suffix=options.mask_suffix,
                images=options.images,
                images_suffix=options.images_suffix,
            ),
            members=options.members,
            jobs=options.jobs,
            cluster=options.cluster,
            resume=options.resume,
            overwrite=options.overwrite,
            progress=progress,
            show=show,
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
        from lesioncount.runs.reviews.reviews import the_reader

        the_reader(options.reviews, options.reader)


def _apply_reviews(result: RunResults, options: argparse.Namespace) -> None:
    if options.reviews is not None:
        from lesioncount.runs.reviews.applied import apply_reviews

        reviewed = apply_reviews(result, options.reviews, options.reader)
        if not options.quiet:
            print(reviewed)


def _dicom(options: argparse.Namespace) -> DicomOutput | None:
    from lesioncount.runs import DicomOutput

    if not (options.dicom or options.dicom_series or options.dicom_type):
        return None
    return DicomOutput(options.dicom_type or "labelmap", options.dicom_series)


def _say_missing(result: RunResults, options: argparse.Namespace) -> None:
    """Name the scans that have no image, or in which the name pattern finds nobody."""
    from lesioncount.runs.pairing import without_partner

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


def _protocol(options: argparse.Namespace) -> CountingProtocol:
    given: str = options.protocol
    if given not in PROTOCOLS and (given.endswith(".json") or "/" in given):
        try:
            base = CountingProtocol.from_json(Path(given).read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ProtocolError(f"The protocol {given} cannot be read: {reason_of(error)}.") from None
    else:
        base = CountingProtocol.named(given)
    names = [field.name for field in fields(CountingProtocol)]
    changes: dict[str, Any] = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if str(changes.get("connectivity", "")).isdecimal():
        changes["connectivity"] = int(changes["connectivity"])
    return CountingProtocol.from_dict(base.to_dict() | changes)


def _scale(text: str) -> float:
    try:
        # A decimal with a large exponent is not for Fraction, which would write out all its digits.
        scale = float(Fraction(text[:_LONGEST_NUMBER]) if "/" in text else text)
    except (ValueError, ZeroDivisionError, OverflowError):
        scale = math.nan
    if not math.isfinite(scale) or len(text) > _LONGEST_NUMBER:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number such as 0.01 or 1/255")
    return scale


def _print_summary(result: RunResults, *, shown: int) -> None:
    from rich.console import Console

    console = Console(soft_wrap=True)
    if result.counted:
        # On a terminal, long names are shortened. What reads from a pipe wants them whole, a scan per line.
        wide = console if console.is_terminal else Console(width=_NO_LIMIT)
        if result.calibration is not None:
            wide.print("Calibrated counts")
        wide.print(_table(result, shown=shown, longest=max(wide.width - _NUMBERS, _SHORTEST)))
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
        table.add_row(escape(_shortened(scan.name, longest)), *map(str, numbers), "{} to {}".format(*ends))
    return table


def _shortened(name: str, longest: int) -> str:
    """A name without its middle, where it is too long: names of a cohort differ at their ends."""
    half = (longest - 1) // 2
    return name if len(name) <= longest else f"{name[: longest - 1 - half]}…{name[-half:]}"


def _about(warning: str, scans: Sequence[ScanSummary], n_counted: int) -> str:
    """A warning about one scan with its numbers, or about several without."""
    if len(scans) == 1:
        own = next((text for text in scans[0].warnings if text.startswith(warning)), warning)
        return f"{scans[0].name}: {own}"
    return f"{len(scans)} of {n_counted} scans: {warning}"

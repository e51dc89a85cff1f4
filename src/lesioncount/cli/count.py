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

    from lesioncount.runs import RunResults
    from lesioncount.runs.records import ScanSummary

# How many scans and failures are listed at the end; all of them are in counts.tsv.
_SHOWN = 20

# Columns of a terminal that the numbers take, and the least that is left to names.
_NUMBERS, _SHORTEST = 61, 12

# Wider than any table: of a pipe, whose lines have no end.
_NO_LIMIT = 10_000

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
        metavar="FILE|FOLDER",
        help="count only inside this mask; from a folder, the mask with the name of the map is used",
    )

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
        "--members",
        action="store_true",
        help="treat each input folder as one member of an ensemble (folds, MC dropout, test-time augmentation) and "
        "combine the counts of maps with the same name",
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
    work.add_argument("--report", action="store_true", help="also write report.html")
    work.add_argument(
        "--images",
        type=named_path,
        metavar="FOLDER",
        help="show candidates in the report on these images, which have the names of the maps",
    )
    work.add_argument("--quiet", action="store_true", help="print errors only")
    work.add_argument("--debug", action="store_true", help="show where an error came from")


def run(options: argparse.Namespace) -> int:
    """Count, and print what happened."""
    from lesioncount.cli.progress import progress_on
    from lesioncount.runs import Settings, count_batch

    if options.report:
        from lesioncount.report import check_can_report

        check_can_report()  # before anything is counted
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
        save_labels=options.save_labels,
    )
    with progress_on(sys.stderr, quiet=options.quiet, verbose=options.verbose) as progress:
        result = count_batch(
            options.inputs,
            options.output,
            settings=settings,
            mask=options.mask,
            members=options.members,
            jobs=options.jobs,
            cluster=options.cluster,
            resume=options.resume,
            overwrite=options.overwrite,
            progress=progress,
        )
    shown = len(result.scans) if options.verbose else _SHOWN
    if not options.quiet:
        _print_summary(result, shown=shown)
    if options.report:
        from lesioncount.report import write_report

        page = write_report(result, images=options.images)
        if not options.quiet:
            print(f"Report: {page}")
    for scan in result.failed[:shown]:
        print(f"failed: {scan.name}: {scan.error}", file=sys.stderr)
    if len(result.failed) > shown:
        print(f"… and {len(result.failed) - shown} more, see counts.tsv", file=sys.stderr)
    if result.interrupted:
        print("Interrupted. What was finished is written; --resume goes on from here.", file=sys.stderr)
        return 130
    return 1 if result.failed else 0


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

"""``lesioncount summarize``: totals, means and rate ratios of groups of patients."""

from __future__ import annotations

import argparse
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from lesioncount.cli.map_arguments import at_least_one, at_least_zero, named_path

if TYPE_CHECKING:
    from lesioncount.assess.groups import TrialSummary

# What is printed is as wide as this, and names of groups leave room for numbers.
_WIDTH, _LONGEST_NAME = 80, 22


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.set_defaults(run=run)
    parser.epilog = (
        "Writes summary.json, groups.tsv, ratios.tsv, imputations.tsv and, with lesioncount[report], summary.html. "
        "Rate ratios need lesioncount[stats]."
    )
    parser.add_argument(
        "results", type=named_path, metavar="RESULTS", help="folder that lesioncount count or compare wrote"
    )
    parser.add_argument(
        "-o", "--output", type=named_path, metavar="FOLDER", help="folder for the summary (default: only print it)"
    )
    parser.add_argument(
        "--of",
        choices=("new", "gone", "persisting"),
        help="of the results of lesioncount compare: which lesions (default: new)",
    )
    groups = parser.add_argument_group("the groups")
    groups.add_argument(
        "--by",
        required=True,
        nargs="+",
        metavar="COLUMN",
        help="what makes the groups: a column of the table, such as arm, or several, whose combinations do",
    )
    groups.add_argument(
        "--participants",
        type=named_path,
        metavar="FILE",
        help="table (.tsv, .csv) with a row per patient (column participant_id), per scan (column scan) or per pair "
        "(column pair). Default: the only participants.tsv in or above the folders of the maps",
    )
    groups.add_argument(
        "--exposure", metavar="COLUMN", help="what rates are per, such as years of follow-up (default: per scan)"
    )
    groups.add_argument(
        "--reference",
        nargs="+",
        metavar="LEVEL",
        help="group that the others are divided by: a value for each column (default: the first in alphabetical order)",
    )
    groups.add_argument("--skip-missing", action="store_true", help="leave out scans without a group")
    work = parser.add_argument_group("the run")
    work.add_argument(
        "--imputations",
        type=at_least_one,
        default=20,
        metavar="N",
        help="complete data sets to draw from the distributions (default: 20)",
    )
    work.add_argument("--seed", type=at_least_zero, default=0, metavar="N", help="seed of these (default: 0)")
    work.add_argument("--overwrite", action="store_true", help="replace a summary that is there")
    work.add_argument("--quiet", action="store_true", help="print errors only")
    work.add_argument("--debug", action="store_true", help="show where an error came from")


def run(options: argparse.Namespace) -> int:
    """Summarize, and print a short table."""
    from lesioncount.assess.groups import summarize
    from lesioncount.cli.evaluate import why_no_page
    from lesioncount.report.groups import write_summary_page

    no_page = why_no_page() if options.output else ""
    if no_page and not options.quiet:
        print(f"note: There will be no summary.html. {no_page}", file=sys.stderr)
    summary = summarize(
        options.results,
        options.output,
        by=options.by,
        of=options.of,
        participants=options.participants,
        exposure=options.exposure,
        reference=options.reference,
        skip_missing=options.skip_missing,
        n_imputations=options.imputations,
        seed=options.seed,
        overwrite=options.overwrite,
    )
    page = None if no_page or not options.output else write_summary_page(options.output, summary)
    if not options.quiet:
        _print(summary, options.output, page)
    return 0


def _print(summary: TrialSummary, out: Path | None, page: Path | None) -> None:
    """Print plain lines: they look the same in a terminal, a pipe and a file."""
    from lesioncount.report.groups import explained, per, ratio_words

    lines = [*_table(summary), ""]
    if summary.ratios:
        lines.append(f"Rate ratios to {summary.reference.name}, {per(summary)}:")
        lines += [_folded(f"{ratio.name}: {ratio_words(ratio)}", indent="  ") for ratio in summary.ratios]
        lines.append("")
    lines += [_folded(sentence) for sentence in explained(summary)]
    lines += [_folded(f"note: {note}") for note in summary.notes]
    lines += [] if out is None else [f"Results: {out}"]
    lines += [] if page is None else [f"Report: {page}"]
    print("\n".join(lines))


def _table(summary: TrialSummary) -> list[str]:
    from lesioncount.report.groups import number, percent, with_interval

    mean = f"mean per {summary.unit}" if summary.exposure is None else "rate"
    names = "patients", f"{summary.unit}s", summary.lesions, mean, "doubt"
    rows = [["/".join(summary.by)[:_LONGEST_NAME], *names]]
    for group in summary.groups:
        low, high = group.total_interval
        total = f"{number(group.total.mean())} [{low}, {high}]"
        shares = with_interval(group.main.estimate), percent(group.main.doubt_share)
        rows.append([_cut(group.name), str(group.n_patients), str(group.n_scans), total, *shares])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _folded(text: str, *, indent: str = "") -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False)

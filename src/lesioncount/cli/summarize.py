"""``lesioncount summarize``: totals, means and rate ratios of groups of patients."""

from __future__ import annotations

import argparse
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from lesioncount.cli.options import Option, add_group, add_options, add_output, add_rerun, at_least_one, given
from lesioncount.cli.printing import aligned
from lesioncount.cli.truth import add_results, why_no_page

if TYPE_CHECKING:
    from lesioncount.assess.groups import TrialSummary

# What is printed is as wide as this, and names of groups leave room for numbers.
_WIDTH, _LONGEST_NAME = 80, 22

_GROUPS: dict[str, Option] = {
    "--by COLUMN": (
        "what makes the groups: a column of the table, such as arm, or several, whose combinations do",
        {"required": True, "nargs": "+"},
    ),
    "--participants FILE": "table (.tsv, .csv) with a row per patient (column participant_id), per scan (column scan) "
    "or per pair (column pair). Default: the only participants.tsv in or above the folders of the maps",
    "--exposure COLUMN": "what rates are per, such as years of follow-up (default: per scan)",
    "--reference LEVEL": (
        "group that the others are divided by: a value for each column (default: the first in alphabetical order)",
        {"nargs": "+"},
    ),
    "--skip-missing": "leave out scans without a group",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.epilog = (
        "Writes summary.json, groups.tsv, ratios.tsv, imputations.tsv and, with lesioncount[report], summary.html. "
        "Rate ratios need lesioncount[stats]."
    )
    add_results(parser)
    add_output(parser, "FOLDER", "folder for the summary (default: only print it)", required=False)
    of = "of the results of lesioncount compare: which lesions (default: new)"
    add_options(parser, {"--of {new,gone,persisting}": of})
    add_group(parser, "the groups", _GROUPS)
    drawn = ("complete data sets to draw from the distributions (default: 20)", {"type": at_least_one, "default": 20})
    work = add_group(parser, "the run", {"--imputations N": drawn})
    add_rerun(work, seed_of="these", overwrite="replace a summary that is there")


def run(options: argparse.Namespace) -> int:
    """Summarize, and print a short table."""
    from lesioncount.assess.groups import summarize
    from lesioncount.report.groups import write_summary_page

    no_page = why_no_page(options, "summary.html") if options.output else ""
    summary = summarize(
        options.results,
        options.output,
        n_imputations=options.imputations,
        **given(options, "by", "of", "participants", "exposure", "reference", "skip_missing", "seed", "overwrite"),
    )
    page = None if no_page or not options.output else write_summary_page(options.output, summary)
    if not options.quiet:
        _print(summary, options.output, page)
    return 0


def _print(summary: TrialSummary, out: Path | None, page: Path | None) -> None:
    """Print plain lines: they look the same in a terminal, a pipe and a file."""
    from lesioncount.report.groups import explained, per, ratio_words, share

    lines = [*_table(summary), "", f"Patients with at least one {summary.lesions.removesuffix('s')}:"]
    lines += [_folded(f"{group.name}: {share(group.with_any)}", indent="  ") for group in summary.groups]
    lines.append("")
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
    return aligned(rows)


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _folded(text: str, *, indent: str = "") -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False)

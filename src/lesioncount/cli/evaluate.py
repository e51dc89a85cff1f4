"""``lesioncount evaluate``: results and truth → how good the counts are."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lesioncount.cli.map_arguments import at_least_zero, named_path, processes
from lesioncount.cli.truth import add_truth_arguments, truth_options

if TYPE_CHECKING:
    from lesioncount.assess.evaluation import Evaluation
    from lesioncount.trust.scores.estimate import Estimate

# What is printed, in 80 columns; all scores are in scores.tsv.
_SHOWN = {"mae": "error", "bias": "bias", "accuracy": "right", "within_10_percent": "in 10 %", "coverage90": "covered"}
_SHARES = {"accuracy", "within_10_percent", "coverage90"}

# More classes than anyone can read a confusion matrix of.
_MOST_CLASSES = 50
_NOT_CLASSES = (
    "{!r} does not name classes of counts: write all from 0 on, with a plus after the last, such as 0,1,2,3,4+"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.set_defaults(run=run)
    parser.epilog = "Writes evaluation.json, scores.tsv, scans.tsv and, with lesioncount[report], evaluation.html."
    parser.add_argument(
        "results", type=named_path, metavar="RESULTS", help="folder that lesioncount count or compare wrote"
    )
    parser.add_argument(
        "-o", "--output", required=True, type=named_path, metavar="FOLDER", help="folder for the evaluation"
    )
    add_truth_arguments(parser)
    work = parser.add_argument_group("the run")
    work.add_argument(
        "--bins",
        type=last_class,
        metavar="CLASSES",
        help="score classes instead of counts, such as 0,1,2,3,4+ as the paper does (default: counts as they are)",
    )
    work.add_argument("--counts-only", action="store_true", help="compare counts only; do not read the maps again")
    work.add_argument("-j", "--jobs", type=processes, default=1, metavar="N", help="number of processes (default: 1)")
    work.add_argument(
        "--seed", type=at_least_zero, default=0, metavar="N", help="seed of resamples and folds (default: 0)"
    )
    work.add_argument("--overwrite", action="store_true", help="replace an evaluation that is there")
    work.add_argument("--quiet", action="store_true", help="print errors only")
    work.add_argument("--debug", action="store_true", help="show where an error came from")


def run(options: argparse.Namespace) -> int:
    """Evaluate, and print the scores that matter most."""
    from lesioncount.assess.evaluation import evaluate
    from lesioncount.report.evaluation import write_evaluation_page

    no_page = why_no_page()
    if no_page and not options.quiet:
        print(f"note: There will be no evaluation.html. {no_page}", file=sys.stderr)
    evaluation = evaluate(
        options.results,
        options.output,
        truth_options(options),
        of=options.of,
        bins=options.bins,
        counts_only=options.counts_only,
        jobs=options.jobs,
        seed=options.seed,
        overwrite=options.overwrite,
    )
    page = f"No report: {no_page}" if no_page else f"Report: {write_evaluation_page(options.output, evaluation)}"
    if not options.quiet:
        _print(evaluation, page, options.output)
    return 0


def why_no_page() -> str:
    """What is missing to write a page; empty if nothing is."""
    from lesioncount.errors import MissingExtraError
    from lesioncount.report import check_can_report

    try:
        check_can_report()
    except MissingExtraError as error:
        return str(error)
    return ""


def last_class(text: str) -> int:
    """The last of classes 0,1,2,3,4+: 4."""
    *before, last = (part.strip() for part in text.split(","))
    number = last.removesuffix("+")
    is_number = number.isascii() and number.isdecimal() and len(number) <= len(str(_MOST_CLASSES))
    if not (last.endswith("+") and is_number and 1 <= int(number) <= _MOST_CLASSES):
        raise argparse.ArgumentTypeError(_NOT_CLASSES.format(text[:60]))
    if before != [str(count) for count in range(int(number))]:
        raise argparse.ArgumentTypeError(_NOT_CLASSES.format(text[:60]))
    return int(number)


def _print(evaluation: Evaluation, page: str, out: Path) -> None:
    """Print plain lines: they look the same in a terminal, a pipe and a file."""
    from lesioncount.assess.evaluation.evaluation import systematically_off
    from lesioncount.report.evaluation import headline

    wrong = systematically_off(evaluation)
    lines = [] if wrong is None else [f"WARNING: {wrong}"]
    lines += [*(sentence.replace("\u00a0", " ") for sentence in headline(evaluation)), "", *_table(evaluation), ""]
    if evaluation.bins is not None:
        lines.append(f"Counts from {evaluation.bins} on are one class in RPS and right, as asked (--bins).")
    lines += [f"note: {note}" for note in evaluation.notes]
    n, groups = evaluation.n_scans, evaluation.n_groups
    of = "" if n == groups else f" of {groups} group{'' if groups == 1 else 's'}"
    lines += [f"{n} scans{of}, 95 % intervals from {evaluation.n_resamples} resamples. Results: {out}", page]
    print("\n".join(lines))


def _table(evaluation: Evaluation) -> list[str]:
    rows = [["method", "RPS, in lesions", *_SHOWN.values()]]
    for method in evaluation.methods.values():
        shown = [_percent(method.score(s).value) if s in _SHARES else _number(method.score(s).value) for s in _SHOWN]
        rows.append([method.name, _with_interval(method.score("rps")), *shown])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]


def _with_interval(score: Estimate) -> str:
    return f"{_number(score.value)} [{_number(score.low)}, {_number(score.high)}]"


def _number(value: float) -> str:
    """Three digits or so, whether it is a tenth of a lesion or hundreds of them."""
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f}"


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"

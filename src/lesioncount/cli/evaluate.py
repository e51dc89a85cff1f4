"""``lesioncount evaluate``: results and truth → how good the counts are."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lesioncount.cli.arguments import at_least_zero, named_path, processes
from lesioncount.cli.truth import add_truth_arguments, truth_options

if TYPE_CHECKING:
    from lesioncount.runs.evaluation import Evaluation
    from lesioncount.trust.scores.estimate import Estimate

# What is printed; all scores are in scores.tsv.
_WIDTH = 100
_WITH_INTERVAL = {"rps": "RPS", "accuracy": "accuracy"}
_SHOWN = {"f1": "F1", "ece": "ECE", "coverage90": "covered"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.set_defaults(run=run)
    parser.epilog = "Writes evaluation.json, scores.tsv, scans.tsv and, with lesioncount[report], evaluation.html."
    parser.add_argument("results", type=named_path, metavar="RESULTS", help="folder that lesioncount count wrote")
    parser.add_argument(
        "-o", "--output", required=True, type=named_path, metavar="FOLDER", help="folder for the evaluation"
    )
    add_truth_arguments(parser)
    work = parser.add_argument_group("the run")
    work.add_argument("--counts-only", action="store_true", help="compare counts only; do not read the maps again")
    work.add_argument("--jobs", type=processes, default=1, metavar="N", help="number of processes (default: 1)")
    work.add_argument(
        "--seed", type=at_least_zero, default=0, metavar="N", help="seed of resamples and folds (default: 0)"
    )
    work.add_argument("--overwrite", action="store_true", help="replace an evaluation that is there")
    work.add_argument("--quiet", action="store_true", help="print errors only")
    work.add_argument("--debug", action="store_true", help="show where an error came from")


def run(options: argparse.Namespace) -> int:
    """Evaluate, and print the scores that matter most."""
    from lesioncount.errors import MissingExtraError
    from lesioncount.report.evaluation import write_evaluation_page
    from lesioncount.runs.evaluation import evaluate

    evaluation = evaluate(
        options.results,
        options.output,
        truth_options(options),
        counts_only=options.counts_only,
        jobs=options.jobs,
        seed=options.seed,
        overwrite=options.overwrite,
    )
    try:
        page = f"Report: {write_evaluation_page(options.output, evaluation)}"
    except MissingExtraError as error:
        page = f"No report: {error}"
    if not options.quiet:
        _print(evaluation, page, options.output)
    return 0


def _print(evaluation: Evaluation, page: str, out: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("method", no_wrap=True)
    for title in (*_WITH_INTERVAL.values(), *_SHOWN.values()):
        table.add_column(title, justify="right", no_wrap=True)
    for method in evaluation.methods.values():
        intervals = (_with_interval(method.score(name)) for name in _WITH_INTERVAL)
        table.add_row(method.name, *intervals, *(f"{method.score(name).value:.3f}" for name in _SHOWN))
    console = Console(soft_wrap=True)
    console.print(table, width=max(console.width, _WIDTH))
    for note in evaluation.notes:
        console.print(f"note: {note}", markup=False, highlight=False)
    n, groups = evaluation.n_scans, evaluation.n_groups
    of = "" if n == groups else f" of {groups} group{'' if groups == 1 else 's'}"
    console.print(
        f"{n} scans{of}, 95 % intervals from {evaluation.n_resamples} resamples. Results: {out}", markup=False,
        highlight=False,
    )  # fmt: skip
    console.print(page, markup=False, highlight=False)


def _with_interval(score: Estimate) -> str:
    return f"{score.value:.3f} [{score.low:.3f}, {score.high:.3f}]"

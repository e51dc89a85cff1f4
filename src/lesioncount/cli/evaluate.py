"""``lesioncount evaluate``: results and truth → how good the counts are."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lesioncount.cli.map_arguments import smallest_sizes
from lesioncount.cli.options import add_group, add_output, add_rerun, given
from lesioncount.cli.printing import aligned, some
from lesioncount.cli.truth import FIRST_OF_TRUTH, add_results, add_truth_arguments, truth_options, why_no_page

if TYPE_CHECKING:
    from lesioncount.assess.evaluation import Evaluation
    from lesioncount.assess.evaluation.lesion_sizes import SizeEdges
    from lesioncount.trust.scores.estimate import Estimate

# What is printed, in 80 columns; all scores are in scores.tsv.
_SHOWN = {"mae": "error", "bias": "bias", "accuracy": "right", "within_10_percent": "in 10 %", "coverage90": "covered"}
_SHARES = {"accuracy", "within_10_percent", "coverage90"}

# More classes than anyone can read a confusion matrix of.
_MOST_CLASSES = 50
_NOT_CLASSES = (
    "{!r} does not name classes of counts: write all from 0 on, with a plus after the last, such as 0,1,2,3,4+"
)


# On the first screen of help; the others are shown by --help-all.
FIRST = (*FIRST_OF_TRUTH, "bins", "overwrite")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.epilog = "Writes evaluation.json, scores.tsv, scans.tsv and, with lesioncount[report], evaluation.html."
    add_results(parser)
    add_output(parser, "FOLDER", "folder for the evaluation")
    add_truth_arguments(parser)
    classes = "score classes instead of counts, such as 0,1,2,3,4+ as the paper does (default: counts as they are)"
    only = "compare counts only; do not read the maps again"
    sizes = "with masks: sensitivity by these sizes of lesions, such as 50mm3,500mm3 or 5vox,50vox (default: thirds)"
    work = add_group(
        parser,
        "the run",
        {
            "--bins CLASSES": (classes, {"type": last_class}),
            "--size-edges SIZE,SIZE": (sizes, {"type": size_edges}),
            "--counts-only": only,
        },
    )
    add_rerun(work, seed_of="resamples and folds", overwrite="replace an evaluation that is there", jobs=True)


def run(options: argparse.Namespace) -> int:
    """Evaluate, and print the scores that matter most."""
    from lesioncount.assess.evaluation import evaluate
    from lesioncount.report.evaluation import write_evaluation_page

    no_page = why_no_page(options, "evaluation.html")
    evaluation = evaluate(
        options.results,
        options.output,
        truth_options(options, options.results),
        **given(options, "of", "bins", "counts_only", "size_edges", "jobs", "seed", "overwrite"),
    )
    page = f"No report: {no_page}" if no_page else f"Report: {write_evaluation_page(options.output, evaluation)}"
    if not options.quiet:
        _print(evaluation, page, options.output)
    return 0


def last_class(text: str) -> int:
    """The last of classes 0,1,2,3,4+: 4. The last alone, 4+ or 4, can mean nothing else."""
    alone = text.strip().removesuffix("+")
    if alone.isascii() and alone.isdecimal() and len(alone) <= len(str(_MOST_CLASSES)):
        text = ",".join([*map(str, range(int(alone))), f"{int(alone)}+"])
    *before, last = (part.strip() for part in text.split(","))
    number = last.removesuffix("+")
    is_number = number.isascii() and number.isdecimal() and len(number) <= len(str(_MOST_CLASSES))
    if not (last.endswith("+") and is_number and 1 <= int(number) <= _MOST_CLASSES):
        raise argparse.ArgumentTypeError(_NOT_CLASSES.format(text[:60]))
    if before != [str(count) for count in range(int(number))]:
        raise argparse.ArgumentTypeError(_NOT_CLASSES.format(text[:60]))
    return int(number)


def size_edges(text: str) -> SizeEdges:
    """Ascending sizes of one unit, as ``--min-size`` has them: voxels or mm³."""
    from lesioncount.assess.evaluation.lesion_sizes import SizeEdges

    sizes = [next(iter(smallest_sizes(one).items())) for one in text.split(",")]
    fields, edges = {field for field, _ in sizes}, [edge for _, edge in sizes]
    if len(fields) > 1 or fields == {"min_length_mm"} or edges != sorted({*edges} - {0}):
        raise argparse.ArgumentTypeError(
            f"expected ascending sizes above 0 of one unit, such as 50mm3,500mm3 or 5vox,50vox, but got {text[:60]!r}"
        )
    return SizeEdges(tuple(edges), "voxels" if fields == {"min_voxels"} else "mm³")


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
    intervals = f", 95 % intervals from {evaluation.n_resamples} resamples" if groups > 1 else ""
    lines += [f"{some(n, 'scan')}{of}{intervals}. Results: {out}", page]
    print("\n".join(lines))


def _table(evaluation: Evaluation) -> list[str]:
    rows = [["method", "RPS, in lesions", *_SHOWN.values()]]
    for method in evaluation.methods.values():
        shown = [_percent(method.score(s).value) if s in _SHARES else _number(method.score(s).value) for s in _SHOWN]
        rows.append([method.name, _with_interval(method.score("rps")), *shown])
    return aligned(rows)


def _with_interval(score: Estimate) -> str:
    interval = f" [{_number(score.low)}, {_number(score.high)}]" if score.has_interval else ""
    return f"{_number(score.value)}{interval}"


def _number(value: float) -> str:
    """Three digits or so, whether it is a tenth of a lesion or hundreds of them."""
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f}"


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"

"""``lesioncount calibrate``: results and truth → ``calibration.json``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lesioncount.cli.options import NUMBER, REPEATED, Option, add_group, add_output, add_rerun
from lesioncount.cli.truth import FIRST_OF_TRUTH, add_results, add_truth_arguments, truth_options
from lesioncount.errors import CalibrationError
from lesioncount.results.scan_numbers import CONFIDENCE
from lesioncount.trust.candidate_table import FEATURES

if TYPE_CHECKING:
    from lesioncount.trust.fitting import CalibrationFit


# What is printed of the scores on held-out scans, in lesions but for the shares.
_SHOWN = {
    "rps": "RPS",
    "mae": "mean error",
    "bias": "bias",
    "coverage90": "90 % coverage",
    "width90": "width of 90 %",
}

# A guaranteed interval of 90 % needs 1 / 0.1 - 1 scans.
_SCANS_FOR_90 = 9


def _edges(text: str) -> tuple[int, ...]:
    """Ascending counts, with commas between them."""
    try:
        edges = tuple(int(part) for part in text.split(","))
    except ValueError:
        edges = ()
    if not edges or edges[0] < 1 or list(edges) != sorted(set(edges)):
        raise argparse.ArgumentTypeError(f"expected ascending counts of at least 1, such as 10,40, but got {text!r}")
    return edges


_FIT: dict[str, Option] = {
    "--fit-from {counts,lesions}": (
        "fit to true counts, or to candidates matched with true lesions (default: counts)",
        {"default": "counts"},
    ),
    f"--feature {{{','.join(FEATURES)}}}": (
        "let the calibration also learn from a property of candidates; may be given more than once",
        REPEATED,
    ),
    "--positive-weight W": ("undo the weight of lesion voxels in the loss, without a fit; needs no truth", NUMBER),
    "--interval-groups N,N": (
        "guaranteed intervals by group of the predicted count: 10,40 makes the groups 0 to 9, 10 to 39, and 40 or "
        "more, each with its own guarantee and at least 9 scans of its own",
        {"type": _edges, "default": ()},
    ),
}


# On the first screen of help; the others are shown by --help-all.
FIRST = (*FIRST_OF_TRUTH, "known", "positive_weight", "overwrite")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.epilog = (
        "A calibration needs at least 20 scans and 10 lesions, and 25 scans to test it. Do not use scans that the "
        "network was trained on. Then: lesioncount count NEW -o OUT --calibration FILE [--interval conformal]."
    )
    add_results(parser, nargs="?")
    add_output(parser, "FILE", "file for the calibration")
    add_truth_arguments(parser)
    fit = add_group(parser, "the fit", _FIT)
    add_rerun(fit, seed_of="folds and halves", overwrite="replace a calibration that is there", jobs=True)


def run(options: argparse.Namespace) -> int:
    """Fit, write, and print how much it helps."""
    from lesioncount.folder.output import OutputFolder

    if options.output.is_dir():
        raise CalibrationError(f"{options.output} is a folder. Name the file: {options.output / 'calibration.json'}.")
    if options.output.exists() and not options.overwrite:
        raise CalibrationError(f"{options.output} exists. Choose another name, or pass --overwrite.")
    folder = OutputFolder(options.output.parent)
    folder.check([options.output.name])
    fit = _fit(options)
    folder.write_text(options.output.name, fit.to_json())
    if not options.quiet:
        _print(fit, options.output)
    return 0


def _fit(options: argparse.Namespace) -> CalibrationFit:
    from lesioncount.trust.calibration import Calibration
    from lesioncount.trust.fitting import CalibrationFit

    if options.positive_weight is not None:
        given = (options.results, options.truth, options.truth_counts, options.reviews, *options.feature)
        if any(one is not None for one in given):
            raise CalibrationError("--positive-weight takes neither results nor truth nor features: nothing is fitted.")
        return CalibrationFit(Calibration.for_positive_weight(options.positive_weight))
    if options.results is None:
        raise CalibrationError("Expected the folder of results to calibrate, or --positive-weight.")
    from lesioncount.assess.evaluation import known_truth

    truth, compared = known_truth(
        options.results,
        truth_options(options),
        of=options.of,
        from_lesions=options.fit_from == "lesions",
        features=tuple(dict.fromkeys(options.feature)),
        jobs=options.jobs,
    )
    if not options.quiet:
        for note in compared.notes:
            print(f"note: {note}")
    return CalibrationFit.fit(
        truth, protocol=compared.results.protocol, seed=options.seed, group_edges=options.interval_groups
    )


def _print(fit: CalibrationFit, path: Path) -> None:
    print(f"Calibration: {fit.calibration}")
    if fit.held_out is not None:
        print(f"On held-out scans, {fit.held_out.n_folds} folds:")
        for name, title in _SHOWN.items():
            before, after, change = (
                part[name] for part in (fit.held_out.before, fit.held_out.after, fit.held_out.change)
            )
            print(
                f"  {title:<17}{before.value:>7.3g} -> {after.value:<7.3g} "
                f"change {change.value:+.3g} [{change.low:+.3g}, {change.high:+.3g}]"
            )
        print(fit.held_out.verdict)
    elif fit.conformal is not None:
        print("There are too few scans to test the calibration on held-out scans.")
    if fit.conformal is not None:
        sizes = fit.conformal.n_scans
        groups = f" in {len(sizes)} groups ({', '.join(map(str, sizes))})" if len(sizes) > 1 else ""
        command = "count" if fit.calibration.counted == "lesions" else "compare"
        begin = f"Guaranteed intervals: from {sum(sizes)} scans{groups}"
        if min(sizes) < _SCANS_FOR_90:
            print(f"{begin}, too few for 90 %, which needs {_SCANS_FOR_90}.")
        else:
            print(f"{begin}, for {command} --interval conformal. {fit.conformal.promise(CONFIDENCE)}")
    print(f"Written: {path}")

"""``lesioncount calibrate``: results and truth → ``calibration.json``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lesioncount.cli.map_arguments import add_definition, add_maps, protocol_of, selection_of, spacing_of
from lesioncount.cli.options import NUMBER, REPEATED, Option, add_group, add_output, add_rerun, given
from lesioncount.cli.truth import (
    FIRST_OF_TRUTH,
    KNOWN,
    add_results,
    add_truth_arguments,
    known_options,
    print_learned,
    truth_options,
)
from lesioncount.errors import CalibrationError
from lesioncount.protocol import CountingProtocol
from lesioncount.results.scan_numbers import CONFIDENCE
from lesioncount.trust.candidate_table import FEATURES

if TYPE_CHECKING:
    from lesioncount.assess.known_counts import Learned
    from lesioncount.runs import Settings
    from lesioncount.trust.fitting import CalibrationFit, KnownTruth


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


def _mean(text: str) -> tuple[float, float | None]:
    """A number, and how far it may be off: 1.7±0.3, 1.7+-0.3 or 1.7±35%."""
    number, doubt = _number_and_doubt(text)
    try:
        mean = float(number)
        return mean, _share(doubt) * (mean if "%" in doubt else 1) if doubt else None
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number such as 1.7 or 1.7±0.3, but got {text!r}") from None


def _prevalence(text: str) -> tuple[float, float | None]:
    """A share, and how far it may be off: 0.3±0.05 or 30%±5%."""
    number, doubt = _number_and_doubt(text)
    try:
        return _share(number), _share(doubt) if doubt else None
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a share such as 0.3, 30% or 0.3±0.05, but got {text!r}") from None


def _number_and_doubt(text: str) -> tuple[str, str]:
    number, _, doubt = text.replace("+-", "±").replace("+/-", "±").partition("±")
    return number, doubt.strip()


def _share(text: str) -> float:
    """A number, or one in percent."""
    number = text.strip()
    return float(number[:-1]) / 100 if number.endswith("%") else float(number)


_FIT: dict[str, Option] = {
    "--fit-from {counts,lesions}": (
        "fit to true counts, or to candidates matched with true lesions (default: counts)",
        {"default": "counts"},
    ),
    f"--feature {{{','.join(FEATURES)}}}": (
        "let the calibration also learn from a property of candidates; may be given more than once",
        REPEATED,
    ),
    "--mean M[±S]": (
        "without true counts: the mean number of lesions per scan, if you know it from elsewhere, such as 1.7 or "
        "1.7±0.3 (default: ± 35 %%). It is not checked against any counted scan",
        {"type": _mean},
    ),
    "--prevalence P[±S]": (
        "without true counts: the share of scans with at least one lesion, such as 0.3 or 30%%±5%% (default: ± 35 %% "
        "of it, or of the share without one, if that is smaller). If you know the mean, give the mean: it says more",
        {"type": _prevalence},
    ),
    "--check FILE": (
        "do not fit: say whether this calibration fits the truth of ten new scans or more, of results or with --known",
        {"type": Path},
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
        "A calibration needs at least 10 scans and 10 lesions (20 scans for changes). Do not use scans that the "
        "network was trained on. Then: lesioncount count NEW -o OUT --calibration FILE [--interval conformal]."
    )
    add_results(parser, "count or compare wrote; with --known, --mean or --prevalence, maps", nargs="*")
    add_output(parser, "FILE", "file for the calibration; not needed with --check", required=False)
    add_truth_arguments(parser)
    members = "of maps: treat each input folder as one member of an ensemble"
    add_group(parser, "known counts of some maps, in place of results and truth", KNOWN | {"--members": members})
    add_definition(parser)
    add_maps(parser)
    fit = add_group(parser, "the fit", _FIT)
    add_rerun(fit, seed_of="folds and halves", overwrite="replace a calibration that is there", jobs=True)


def run(options: argparse.Namespace) -> int:
    """Fit, write, and print how much it helps."""
    from lesioncount.folder.output import OutputFolder

    _check_ways(options)
    if options.check is not None:
        return _check(options)
    if options.output is None:
        raise CalibrationError("Expected a file for the calibration: -o calibration.json.")
    if options.output.is_dir():
        raise CalibrationError(f"{options.output} is a folder. Name the file: {options.output / 'calibration.json'}.")
    if options.output.exists() and not options.overwrite:
        raise CalibrationError(f"{options.output} exists. Choose another name, or pass --overwrite.")
    folder = OutputFolder(options.output.parent)
    folder.check([options.output.name])
    learned = None if options.known is None else _learn(options)
    fit = _fit(options) if learned is None else learned.choice.fit
    folder.write_text(options.output.name, fit.to_json())
    if not options.quiet:
        _print(fit, options.output)
        print_learned(learned, options.output)
    return 0


def _check_ways(options: argparse.Namespace) -> None:
    """Raise if two ways to a calibration are asked for at once: one of them would be left out without a word."""
    ways = ("mean", "prevalence", "check", "positive_weight")
    said = [name for name in ways if getattr(options, name) is not None]
    if len(said) > 1 and said != ["mean", "prevalence"]:
        raise CalibrationError(f"{_option(said[0])} does not go with {_option(said[1])}. Leave one of them out.")
    if options.known is not None and said and said != ["check"]:
        raise CalibrationError(f"--known is the truth by itself: leave {_option(said[0])} out.")


def _learn(options: argparse.Namespace) -> Learned:
    """What known counts of some maps teach."""
    from lesioncount.assess.known_counts import learn

    _check_known(options)
    kinds = None if options.candidates is None else (options.candidates,)
    how = _finding(options) | {"settings": _map_settings(options), "kinds": kinds, "seed": options.seed}
    return learn(options.results, known_options(options), **how)


def _check_known(options: argparse.Namespace) -> None:
    """Raise if known counts are of no maps, or not all that is said of the truth."""
    others = given(options, "truth", "truth_counts", "reviews", "positive_weight", "of")
    if said := [name for name, value in others.items() if value is not None]:
        raise CalibrationError(f"--known is the truth by itself: leave {_option(said[0])} out.")
    if any(map(_is_of_results, options.results)):
        raise CalibrationError("--known takes maps. For results, pass --truth or --truth-counts instead.")
    if not options.results:
        then = "-o calibration.json" if options.check is None else f"--check {options.check}"
        raise CalibrationError(
            "Expected the maps that the known counts are of, such as: "
            f"lesioncount calibrate maps/ --known {options.known[0]} {then}"
        )


def _is_of_results(path: Path) -> bool:
    return (path / "run.json").is_file()


def _map_settings(options: argparse.Namespace, fit: CalibrationFit | None = None) -> Settings:
    """How maps are read; what is not said is as a calibration has it."""
    from lesioncount.runs import Settings

    protocol = protocol_of(options, None if fit is None else fit.known_protocol)
    how: dict[str, Any] = given(options, "channel", "scale") | {"spacing_mm": spacing_of(options)}
    return Settings(protocol, logits=options.logits or None, calibration=fit, **how)  # type: ignore[arg-type]  # None: as it has it


def _finding(options: argparse.Namespace) -> dict[str, Any]:
    """Which maps there are."""
    return {"selection": selection_of(options), **given(options, "mask", "members", "jobs")}


def _check_no_maps(options: argparse.Namespace) -> None:
    """Raise if something is said that only maps need: results know it."""
    names = [field.name for field in fields(CountingProtocol)]
    names += ["protocol", "channel", "scale", "logits", "suffix", "root", "name_pattern", "mask", "members"]
    if said := [name for name in names if getattr(options, name, None) not in (None, False)]:
        raise CalibrationError(f"{_option(said[0])} goes with maps. Results know it already.")


def _fit(options: argparse.Namespace) -> CalibrationFit:
    from lesioncount.trust.calibration import Calibration
    from lesioncount.trust.fitting import CalibrationFit

    if options.mean is not None or options.prevalence is not None:
        return _from_stated(options)
    _check_no_maps(options)
    if options.positive_weight is not None:
        others = (options.truth, options.truth_counts, options.reviews, *options.results, *options.feature)
        if any(one is not None for one in others):
            raise CalibrationError("--positive-weight takes neither results nor truth nor features: nothing is fitted.")
        return CalibrationFit(Calibration.for_positive_weight(options.positive_weight))
    results = _only(options.results)
    from lesioncount.assess.evaluation import known_truth

    truth, compared = known_truth(
        results,
        truth_options(options, results),
        of=options.of,
        from_lesions=options.fit_from == "lesions",
        features=tuple(dict.fromkeys(options.feature)),
        jobs=options.jobs,
    )
    _print_notes(compared.notes, options)
    return CalibrationFit.fit(
        truth,
        protocol=compared.results.protocol,
        seed=options.seed,
        group_edges=options.interval_groups,
        reading=compared.results.settings.reading,
    )


def _check(options: argparse.Namespace) -> int:
    """Say whether the true counts of new scans lie in what a calibration says, as those it was fitted on do."""
    from lesioncount.trust.fitting import CalibrationFit

    if options.output is not None:
        raise CalibrationError("--check fits nothing and writes nothing: leave -o out.")
    fit = CalibrationFit.load(options.check)
    found = fit.check(_truth_to_check(options, fit), seed=options.seed)
    if fit.scans is None or not fit.scans.pits:
        _print_notes(["It has no counted scans of its own: these are compared with counts as it gives them."], options)
    print(found)
    return int(found.is_alarm)


def _truth_to_check(options: argparse.Namespace, fit: CalibrationFit) -> KnownTruth:
    """Results with their truth, or maps with --known: what a calibration is fitted on."""
    from lesioncount.assess.evaluation import known_truth
    from lesioncount.assess.known_counts import truth_of_maps

    if options.known is not None:
        _check_known(options)
        settings = _map_settings(options, fit)
        settings.check(members=options.members)
        truth, _, notes = truth_of_maps(options.results, known_options(options), settings, **_finding(options))
    else:
        _check_no_maps(options)
        how = {"of": options.of, "features": fit.features, "jobs": options.jobs}
        results = _only(options.results)
        truth, compared = known_truth(results, truth_options(options, results), **how)
        fit.calibration.check(compared.results.protocol, truth.counted)
        fit.check_reading(compared.results.settings.reading)
        notes = compared.notes
    _print_notes(notes, options)
    return truth


def _only(results: Sequence[Path]) -> Path:
    """The folder of results."""
    if not results:
        raise CalibrationError("Expected the folder of results to calibrate, or --positive-weight.")
    if len(results) > 1:
        raise CalibrationError(f"Expected one folder of results, but got {len(results)}. Maps go with --known.")
    return results[0]


def _from_stated(options: argparse.Namespace) -> CalibrationFit:
    """From what is known of the scans without counting any."""
    from lesioncount.assess.known_counts import learn_stated, learn_stated_of_maps
    from lesioncount.trust.fitting.stated import Stated

    useless = given(options, *_OF_TRUTH) | {"fit_from": options.fit_from != "counts"}
    if said := [name for name, value in useless.items() if value]:
        raise CalibrationError(f"--mean and --prevalence are for scans without truth: leave {_option(said[0])} out.")
    (mean, of_mean), (prevalence, of_prevalence) = options.mean or (None, None), options.prevalence or (None, None)
    stated = Stated(mean=mean, prevalence=prevalence, doubt=of_mean if mean is not None else of_prevalence)
    if not options.results:
        raise CalibrationError(
            "Expected the maps, or the folder of results, that the number is of: lesioncount calibrate maps/ --mean …"
        )
    if any(map(_is_of_results, options.results)):
        _check_no_maps(options)
        return learn_stated(_only(options.results), stated, seed=options.seed)
    how = _finding(options) | {"seed": options.seed}
    fit, notes = learn_stated_of_maps(options.results, stated, _map_settings(options), **how)
    _print_notes(notes, options)
    return fit


# What only a fit to truth has a use for.
_OF_TRUTH = ("truth", "truth_counts", "reviews", "feature", "interval_groups", "group_by", "of", "skip_missing")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _print_notes(notes: Sequence[str], options: argparse.Namespace) -> None:
    for note in () if options.quiet else notes:
        print(f"note: {note}")


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
        begin = f"Guaranteed intervals: from {sum(sizes)} {fit.conformal.what}{groups}"
        if min(sizes) < _SCANS_FOR_90:
            print(f"{begin}, too few for 90 %, which needs {_SCANS_FOR_90}.")
        else:
            print(f"{begin}, for {command} --interval conformal. {fit.conformal.promise(CONFIDENCE)}")
    print(f"Written: {path}")

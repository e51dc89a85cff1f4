"""``lesioncount compare``: maps of patients at several times → what is new, gone and persisting."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lesioncount.changes.coupling import DEFAULT_COUPLING
from lesioncount.cli.batch_runs import ended, n_shown, run_arguments, write_page
from lesioncount.cli.map_arguments import (
    IMAGES_SUFFIX,
    INTERVAL,
    add_definition,
    add_maps,
    add_run,
    add_written,
    selection_of,
    settings_of,
)
from lesioncount.cli.options import (
    NUMBER,
    REPEATED,
    Option,
    add_group,
    add_options,
    add_output,
    add_quiet,
    given,
)
from lesioncount.cli.printing import Summary, some
from lesioncount.cohort.names import shown_name
from lesioncount.errors import listed
from lesioncount.results.count_warnings import in_general

if TYPE_CHECKING:
    from lesioncount.results.record_parts import Pair
    from lesioncount.runs import ChangeSettings, Results

# Columns of a terminal that the numbers take.
_NUMBERS = 66

_PAIRING: dict[str, Option] = {
    "--pairs TABLE": "a table (.tsv, .csv) with the columns baseline and followup, paths of maps, and perhaps "
    "participant_id",
    "--sessions SESSION": (
        "compare these sessions of one folder, in this order (default: all, in the order of their dates or numbers)",
        {"nargs": "+"},
    ),
    "--baseline SESSION": "the session of one folder that comes first, where that is not clear",
}

_CHANGES: dict[str, Option] = {
    "--tolerance-mm D": (
        "search the other map this far around each voxel of a candidate (default: 2, or a voxel if that is more)",
        NUMBER,
    ),
    "--coupling C": (
        "how the doubts about a place at both times go together: 0 independent, 1 the same, above 1 a faint sign at "
        f"the other time counts for more (default: {DEFAULT_COUPLING:g}; a calibration brings its own)",
        {"type": float, "default": DEFAULT_COUPLING},
    ),
    "--calibration FILE": (
        "correct the numbers with this calibration of new, gone or persisting lesions, made by lesioncount calibrate; "
        "repeat the option for each of them",
        {"action": "append"},
    ),
    "--interval {distribution,conformal}": (INTERVAL.format("pairs"), {"default": "distribution"}),
    "--ask QUESTION": (
        "the probability that this is so, such as 'new >= 1' or 'new > gone': about new, gone and persisting lesions, "
        "and count, those of the later map. May be repeated",
        REPEATED,
    ),
}

_WRITTEN = {
    "labels": "PATIENT__SESSION_lineages.nii.gz, in which a lesion has the same number in all sessions, and "
    "PAIR_changes.nii.gz, in which 1 is new, 2 persisting, 3 gone",
    "parquet": "each table once more, for millions of rows",
}

_CHANGE_OUTPUTS: dict[str, Option] = {
    "--report": "also write changes.html, with both scans side by side: one page, or of more than 40 patients a page "
    "with the folder changes/ beside it",
    "--images FOLDER|PATTERN": "show candidates on these images: a folder, in which they have the names or BIDS "
    "entities of the maps, or a pattern such as 'flair/{participant}_{session}_FLAIR.nii.gz' or "
    "'flair/{folder}/{name}.nii.gz'",
    "--images-suffix TEXT": IMAGES_SUFFIX,
}


# On the first screen of help; the others are shown by --help-all.
FIRST = (
    *("output", "pairs", "sessions", "baseline", "calibration", "ask", "protocol", "threshold", "min_size", "mask"),
    *("channel", "report", "images", "write", "jobs", "resume"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.epilog = (
        "Writes changes.tsv, lineages.tsv, run.json and one JSON file per patient, answers.tsv where something is "
        "asked, and a line of runs.jsonl. Maps must be registered to each other. Exit code: 0 if all patients were "
        "compared, 1 if some failed, 2 if nothing could be done, 130 if interrupted. Research software: no diagnosis."
    )
    maps = (
        "BASELINE FOLLOWUP, folders or files, and more for later times; or one folder with sessions of participants, "
        "as BIDS has them"
    )
    parser.add_argument("inputs", nargs="*", metavar="MAPS", help=maps)
    add_output(parser, "FOLDER", "folder for the results")
    add_group(parser, "which maps belong together", _PAIRING)
    add_group(parser, "what is new", _CHANGES)
    add_definition(parser)
    add_maps(parser)
    work = add_run(parser, "compare", workers="a patient each")
    add_written(work, _WRITTEN)
    add_options(work, _CHANGE_OUTPUTS)
    add_quiet(work)


def run(options: argparse.Namespace) -> int:
    """Compare, and print what happened."""
    from lesioncount.runs import CourseSelection, compare_batch

    with run_arguments(options, doing="comparing", what="patients") as how:
        pairing = given(options, "pairs", "baseline") | {"sessions": options.sessions or ()}
        selection = CourseSelection(selection_of(options, "images", "images_suffix"), **pairing)
        results = compare_batch(options.inputs, options.output, settings=_settings(options), selection=selection, **how)
    if not options.quiet:
        _summary(results, shown=n_shown(options)).print()
    write_page(results, options)
    return ended(results, options, table="changes.tsv")


def _settings(options: argparse.Namespace) -> ChangeSettings:
    from lesioncount.runs import ChangeSettings

    fits = []
    if options.calibration:
        from lesioncount.trust.fitting import CalibrationFit

        fits = [CalibrationFit.load(path) for path in options.calibration]
    plain = given(options, "tolerance_mm", "coupling")
    return ChangeSettings(calibrations=tuple(fits), **plain, **settings_of(options, fits))


def _summary(results: Results, *, shown: int) -> Summary:
    """What has changed, a row for each pair."""
    pairs = [pair for course in results.compared for pair in course.pairs]
    calibrated = " and ".join(results.run.settings.calibrations)
    expected = sum(pair.counts["new"].numbers.best.count_mean for pair in pairs)
    what = f"{some(len(pairs), 'pair')} of {some(len(results.compared), 'patient')} compared"
    new = f"{expected:.1f} new lesions expected in total"
    return Summary(
        ("pair", "before", "after", "new", "90 %", "P(any)", "gone", "90 %", "persisting"),
        _NUMBERS,
        [_row(pair) for pair in pairs[:shown]],
        len(pairs),
        f"{what}, {new}, {len(results.failed)} failed. Results: {results.out}",
        heading=f"Calibrated: numbers of {calibrated} lesions" if calibrated else "",
        answers={shown_name(pair.name): pair.answers for pair in pairs if pair.answers},
        notes=[*(f"note: {note}" for note in _notes(results)), *_promises(results)],
    )


def _promises(results: Results) -> list[str]:
    """What is proven of guaranteed intervals, in a line."""
    kinds: dict[str, list[str]] = {}
    for kind, promise in results.run.settings.promises.items():
        kinds.setdefault(promise, []).append(kind)
    return [f"Guaranteed intervals of {' and '.join(those)} lesions. {promise}" for promise, those in kinds.items()]


def _row(pair: Pair) -> tuple[str, ...]:
    new, gone, stay = (pair.counts[kind].numbers for kind in ("new", "gone", "persisting"))
    ends = [one.guaranteed or (one.best.interval90_low, one.best.interval90_high) for one in (new, gone)]
    return (
        shown_name(pair.name),
        str(gone.candidates.n_candidates),
        str(new.candidates.n_candidates),
        f"{new.best.count_mean:.2f}",
        "{} to {}".format(*ends[0]),
        f"{1 - new.best.p_0:.2f}",
        f"{gone.best.count_mean:.2f}",
        "{} to {}".format(*ends[1]),
        f"{stay.best.count_mean:.2f}",
    )


def _notes(results: Results) -> list[str]:
    alone = results.run.alone
    notes = _uncalibrated(results)
    if alone:
        have = "has" if len(alone) == 1 else "have"
        notes.append(f"{some(len(alone), 'patient')} {have} one map only: {listed(alone)}")
    about: dict[str, list[str]] = {}
    for course in results.compared:
        warned = (in_general(warning) for session in course.sessions for warning in session.warnings)
        for note in dict.fromkeys((*course.notes, *warned)):
            about.setdefault(note, []).append(course.shown)
    for note, names in about.items():
        notes.append(f"{names[0] if len(names) == 1 else f'{len(names)} patients'}: {note}")
    return notes


def _uncalibrated(results: Results) -> list[str]:
    """Questions that are answered as the maps have it, though some numbers are calibrated."""
    kinds = results.run.settings.calibrations
    answers = results.compared[0].pairs[0].answers if results.compared and kinds else ()
    return [
        f"{answer.question!r} is answered as the maps have it: not all that it asks for was calibrated, only "
        f"{', '.join(kinds)}"
        for answer in answers
        if answer.probability_calibrated is None
    ]

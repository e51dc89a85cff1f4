"""``lesioncount compare``: maps of patients at several times → what is new, gone and persisting."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lesioncount.cli.batch_arguments import add_compare_arguments
from lesioncount.cli.count import shortened
from lesioncount.cli.map_arguments import protocol_of
from lesioncount.cli.region_arguments import questions_of
from lesioncount.cli.signals import ended_by_signals

if TYPE_CHECKING:
    from rich.table import Table

    from lesioncount.results.record import Record
    from lesioncount.results.record_parts import Pair
    from lesioncount.runs import Results

# How many pairs and failures are listed at the end; all of them are in changes.tsv.
_SHOWN = 20

# How many patients a note names.
_NAMED = 5

# Columns of a terminal that the numbers take, and the least that is left to names.
_NUMBERS, _SHORTEST = 66, 12

# Wider than any table: of a pipe, whose lines have no end.
_NO_LIMIT = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.set_defaults(run=run)
    add_compare_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Compare, and print what happened."""
    from lesioncount.cli.progress import progress_on
    from lesioncount.runs import compare_batch

    show = None
    if options.report:
        from lesioncount.report import SectionWriter, check_can_report

        check_can_report()  # before anything is compared
        show = SectionWriter(options.images)
    with (
        ended_by_signals(),
        progress_on(
            sys.stderr, quiet=options.quiet, verbose=options.verbose, doing="comparing", what="patients"
        ) as progress,
    ):
        results = compare_batch(
            options.inputs,
            options.output,
            settings=_settings(options),
            selection=_selection(options),
            mask=options.mask,
            jobs=options.jobs,
            resume=options.resume,
            overwrite=options.overwrite,
            progress=progress,
            show=show,
            command=options.typed,
            cluster=options.cluster,
            parquet=options.parquet,
        )
    shown = len(results.courses) if options.verbose else _SHOWN
    if not options.quiet:
        _print_summary(results, shown=shown)
    if options.report:
        _write_page(results, options)
    for course in results.failed[:shown]:
        print(f"failed: {course.name}: {course.error}", file=sys.stderr)
    if len(results.failed) > shown:
        print(f"… and {len(results.failed) - shown} more, see changes.tsv", file=sys.stderr)
    if results.interrupted:
        print("Interrupted. What was finished is written; --resume goes on from here.", file=sys.stderr)
        return 130
    return 1 if results.failed else 0


def _write_page(results: Results, options: argparse.Namespace) -> None:
    from lesioncount.cli.progress import report_progress_on
    from lesioncount.report import write_report

    with report_progress_on(sys.stderr, quiet=options.quiet) as sections:
        page = write_report(
            results,
            images=options.images,
            images_suffix=options.images_suffix,
            jobs=options.jobs,
            progress=sections,
        )
    if not options.quiet:
        print(f"Report: {page}")


def _settings(options: argparse.Namespace) -> Any:
    from lesioncount.runs import ChangeSettings

    fits = []
    if options.calibration:
        from lesioncount.trust.fitting import CalibrationFit

        fits = [CalibrationFit.load(path) for path in options.calibration]
    return ChangeSettings(
        protocol=protocol_of(options),
        channel=options.channel,
        scale=options.scale,
        logits=options.logits,
        tolerance_mm=options.tolerance_mm,
        coupling=options.coupling,
        calibrations=tuple(fits),
        conformal=options.interval == "conformal",
        save_labels=options.save_labels,
        questions=questions_of(options.ask),
    )


def _selection(options: argparse.Namespace) -> Any:
    from lesioncount.runs import CourseSelection, Selection

    return CourseSelection(
        Selection(
            suffix=options.suffix,
            root=options.root,
            name_pattern=options.name_pattern,
            mask_suffix=options.mask_suffix,
            images=options.images,
            images_suffix=options.images_suffix,
        ),
        pairs=options.pairs,
        sessions=options.sessions or (),
    )


def _print_summary(results: Results, *, shown: int) -> None:
    from rich.console import Console

    from lesioncount.cli.answers_table import print_answers

    console = Console(soft_wrap=True)
    pairs = [(course, pair) for course in results.compared for pair in course.pairs]
    if pairs:
        wide = console if console.is_terminal else Console(width=_NO_LIMIT)
        if results.run.settings.calibrations:
            wide.print(f"Calibrated: numbers of {' and '.join(results.run.settings.calibrations)} lesions")
        wide.print(_table(pairs[:shown], longest=max(wide.width - _NUMBERS, _SHORTEST)))
        print_answers(wide, {pair.name: pair.answers for _, pair in pairs if pair.answers}, shown=shown)
    if len(pairs) > shown:
        console.print(f"… and {len(pairs) - shown} more (-v lists all)")
    for note in _notes(results):
        console.print(f"note: {note}", markup=False, highlight=False)
    expected = sum(pair.counts["new"].numbers.best.count_mean for _, pair in pairs)
    what = f"{_some(len(pairs), 'pair')} of {_some(len(results.compared), 'patient')} compared"
    console.print(
        f"{what}, {expected:.1f} new lesions expected in total, {len(results.failed)} failed. Results: {results.out}",
        markup=False,
        highlight=False,
    )


def _table(pairs: Sequence[tuple[Record, Pair]], *, longest: int) -> Table:
    """What has changed, a line for each pair, with names of at most so many letters."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("pair", no_wrap=True, overflow="ellipsis")
    for name in ("before", "after", "new", "90 %", "P(any)", "gone", "90 %", "persisting"):
        table.add_column(name, justify="right", no_wrap=True)
    for _, pair in pairs:
        new, gone, stay = (pair.counts[kind].numbers for kind in ("new", "gone", "persisting"))
        ends = [one.guaranteed or (one.best.interval90_low, one.best.interval90_high) for one in (new, gone)]
        table.add_row(
            escape(shortened(pair.name, longest)),
            str(gone.candidates.n_candidates),
            str(new.candidates.n_candidates),
            f"{new.best.count_mean:.2f}",
            "{} to {}".format(*ends[0]),
            f"{1 - new.best.p_0:.2f}",
            f"{gone.best.count_mean:.2f}",
            "{} to {}".format(*ends[1]),
            f"{stay.best.count_mean:.2f}",
        )
    return table


def _notes(results: Results) -> list[str]:
    alone = results.run.alone
    notes = _uncalibrated(results)
    if alone:
        more = f" and {len(alone) - _NAMED} more" if len(alone) > _NAMED else ""
        have = "has" if len(alone) == 1 else "have"
        notes.append(f"{_some(len(alone), 'patient')} {have} one map only: {', '.join(alone[:_NAMED])}{more}")
    about: dict[str, list[str]] = {}
    for course in results.compared:
        for note in course.notes:
            about.setdefault(note, []).append(course.name)
    for note, names in about.items():
        notes.append(f"{names[0] if len(names) == 1 else f'{len(names)} patients'}: {note}")
    return notes


def _some(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _uncalibrated(results: Results) -> list[str]:
    """Questions that are answered as the maps have it, though some numbers are calibrated."""
    given = results.run.settings.calibrations
    answers = results.compared[0].pairs[0].answers if results.compared and given else ()
    return [
        f"{answer.question!r} is answered as the maps have it: not all that it asks for was calibrated, only "
        f"{', '.join(given)}"
        for answer in answers
        if answer.probability_calibrated is None
    ]

"""What ``count`` and ``compare`` do alike, around their runs and after them."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from lesioncount.cli.options import given

if TYPE_CHECKING:
    from lesioncount.runs import Results

# How many scans or pairs, and failures, are listed at the end; all of them are in the tables.
_SHOWN = 20

# What schedulers, shut-downs and terminals that are closed send. Windows has no SIGHUP.
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def run_arguments(options: argparse.Namespace, *, doing: str, what: str) -> Iterator[dict[str, Any]]:
    """What a batch is told of how to run; around it, progress is shown, and signals end it as Ctrl-C does."""
    from lesioncount.cli.progress import progress_on

    show = None
    if options.report:
        from lesioncount.report import SectionWriter, check_can_report

        check_can_report()  # before anything is read
        show = SectionWriter(options.images)
    plain = given(options, "mask", "jobs", "cluster", "resume", "overwrite", "parquet")
    if options.cluster_timeout is not None:
        plain["cluster_timeout"] = options.cluster_timeout
    showing = progress_on(sys.stderr, quiet=options.quiet, verbose=options.verbose, doing=doing, what=what)
    with _ended_by_signals(), showing as progress:
        yield plain | {"progress": progress, "show": show, "command": options.typed}


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP interrupt what is done, unless somebody has decided about them (nohup)."""
    if threading.current_thread() is not threading.main_thread():  # others cannot
        yield
        return
    before = {one: signal.getsignal(one) for one in _ENDING}
    for one in _ENDING:
        if before[one] is signal.SIG_DFL:
            signal.signal(one, _interrupt)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def n_shown(options: argparse.Namespace) -> int:
    """How many scans or pairs are listed."""
    return sys.maxsize if options.verbose else _SHOWN


def write_page(results: Results, options: argparse.Namespace) -> None:
    """Write the report, if it was asked for."""
    if not options.report:
        return
    from lesioncount.cli.progress import report_progress_on
    from lesioncount.report import write_report

    with report_progress_on(sys.stderr, quiet=options.quiet) as sections:
        page = write_report(results, progress=sections, **given(options, "images", "images_suffix", "jobs"))
    if not options.quiet:
        print(f"Report: {page}")


def ended(results: Results, options: argparse.Namespace, *, table: str) -> int:
    """Say what has failed, which a table has all of; the exit code."""
    shown = n_shown(options)
    for item in results.failed[:shown]:
        print(f"failed: {item.name}: {item.error}", file=sys.stderr)
    if len(results.failed) > shown:
        print(f"… and {len(results.failed) - shown} more, see {table}", file=sys.stderr)
    if results.interrupted:
        print("Interrupted. What was finished is written; --resume goes on from here.", file=sys.stderr)
        return 130
    return 1 if results.failed else 0

"""Progress of a run: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Protocol

from lesioncount.cohort.names import shown_name

# Without a terminal, a line now and then: a log of ten thousand scans must stay readable.
_LINES = 20

# Where items take long, nobody is left without a line for so many seconds.
_SILENCE = 60.0

# Seconds after which the pace is known, seconds that are not worth saying, and the units of those that are.
_LEAST_KNOWN, _SHORTEST_LEFT = 5.0, 10.0
_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


class Stopped(Protocol):
    """Gives the question, if there is one, that must be answered before a run goes on."""

    def __call__(self, item: Any) -> str | None:
        """After an item is done."""


class Item(Protocol):
    """What a run is done with: a scan, or a patient."""

    @property
    def name(self) -> str:
        """In the results."""

    @property
    def status(self) -> str:
        """Ok or failed."""


@contextmanager
def progress_on(
    stream: IO[str],
    *,
    quiet: bool,
    verbose: bool = False,
    doing: str = "counting",
    what: str = "scans",
    stop: Stopped | None = None,
) -> Iterator[Callable[[Item, int, int], None] | None]:
    """A callback that shows how far a run is; ``verbose``: with a line for every scan.

    On a terminal it stops for a question, and ends the run as Ctrl-C does unless the answer is yes.
    """
    if quiet:
        yield None
    elif stream.isatty() and not verbose:
        with _bar(stream, doing, what, stop) as update:
            yield update
    else:
        lines = _Lines(stream, every=verbose)
        yield lines.show


@contextmanager
def report_progress_on(stream: IO[str], *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A callback that shows how many sections of a report are made, of those that are not there yet."""
    if quiet:
        yield None
    elif stream.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(file=stream), transient=True) as bar:
            task = bar.add_task("drawing the report", total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
    else:
        yield lambda done, total: _report_line(stream, done, total)


def _report_line(stream: IO[str], done: int, total: int) -> None:
    if total > _LINES and (done == total or done % (total // _LINES) == 0):
        print(f"report: {done}/{total} sections drawn", file=stream, flush=True)


class _Lines:
    """A line now and then, with the time that is left; and one for every item that failed, or for each."""

    def __init__(self, stream: IO[str], *, every: bool) -> None:
        self._stream, self._every = stream, every
        self._said_at = time.monotonic()
        self._first: tuple[float, int] | None = None

    def show(self, item: Item, done: int, total: int) -> None:
        """Say how far it is, where that is due."""
        now = time.monotonic()
        began, before = self._first = self._first or (now, done)  # what came before the first is no pace
        is_due = done == total or done % max(1, total // _LINES) == 0 or now - self._said_at > _SILENCE
        if is_due:
            self._said_at = now
        if is_due or self._every or item.status != "ok":
            left = _time_left(now - began, done - before, total - done) if is_due else ""
            print(f"{done}/{total} {shown_name(item.name)} {item.status}{left}", file=self._stream, flush=True)


def _time_left(seconds: float, n_done: int, n_left: int) -> str:
    """How long the rest takes if it goes on like this; nothing of what takes seconds.

    Examples
    --------
    >>> _time_left(120, 1000, 30000)
    ', about 1 h left'
    """
    left = seconds * n_left / max(n_done, 1)
    if seconds < _LEAST_KNOWN or left < _SHORTEST_LEFT:
        return ""
    unit, size = next((unit, size) for unit, size in _UNITS if left >= size)
    return f", about {left / size:.0f} {unit} left"


@contextmanager
def _bar(stream: IO[str], doing: str, what: str, stop: Stopped | None) -> Iterator[Callable[[Item, int, int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    rate = TextColumn("{task.fields[rate]}")
    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn())
    with Progress(*columns, console=Console(file=stream), transient=True) as bar:
        task = bar.add_task("count", total=None, rate="")

        def update(item: Item, done: int, total: int) -> None:
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            bar.update(task, completed=done, total=total, rate=f"{speed:.1f} {what}/s" if speed else "")
            question = None if stop is None else stop(item)
            if question is not None and done < total:  # of the last, the end says it
                bar.stop()
                ask(question, stream)
                bar.start()

        yield update


def ask(question: str, stream: IO[str]) -> None:
    """Wait for an answer; KeyboardInterrupt unless it is yes."""
    print(f"{question}\nCount on? [y/N] ", end="", file=stream, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise KeyboardInterrupt

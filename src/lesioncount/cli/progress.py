"""Progress of a run: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Protocol

# Without a terminal, a line now and then: a log of ten thousand scans must stay readable.
_LINES = 20


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
    stream: IO[str], *, quiet: bool, verbose: bool = False, doing: str = "counting", what: str = "scans"
) -> Iterator[Callable[[Item, int, int], None] | None]:
    """A callback that shows how far a run is; ``verbose``: with a line for every scan."""
    if quiet:
        yield None
    elif stream.isatty() and not verbose:
        with _bar(stream, doing, what) as update:
            yield update
    else:
        yield lambda item, done, total: _line(stream, item, done, total, every=verbose)


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


def _line(stream: IO[str], item: Item, done: int, total: int, *, every: bool) -> None:
    if every or item.status != "ok" or done == total or done % max(1, total // _LINES) == 0:
        print(f"{done}/{total} {item.name} {item.status}", file=stream, flush=True)


@contextmanager
def _bar(stream: IO[str], doing: str, what: str) -> Iterator[Callable[[Item, int, int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    rate = TextColumn("{task.fields[rate]}")
    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn())
    with Progress(*columns, console=Console(file=stream), transient=True) as bar:
        task = bar.add_task("count", total=None, rate="")

        def update(_: Item, done: int, total: int) -> None:
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            bar.update(task, completed=done, total=total, rate=f"{speed:.1f} {what}/s" if speed else "")

        yield update

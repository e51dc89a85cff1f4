"""Jobs that depend on each other → done, in parallel; jobs that were finished before are not repeated.

Knows nothing of networks: a process that waits for others need not import torch.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path

from lesioncount.errors import ExperimentError
from lesioncount.folder.atomic import remove_left_overs
from lesioncount.folder.output import OutputFolder
from lesioncount.runs.workers import Workers
from lesioncount_reproduction.experiments.arms import Arm

_TIMES, _TIME = "times.tsv", re.compile(r"[^\t]+\t[^\t]*\t[0-9.]+")


class Job(ABC):
    """Something expensive, whose result is a file.

    Attributes
    ----------
    arm : Arm
        The training that it belongs to.
    """

    arm: Arm

    @property
    @abstractmethod
    def key(self) -> str:
        """A name that changes with everything that the result depends on."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What it does, for messages."""

    @property
    @abstractmethod
    def needs(self) -> tuple[Job, ...]:
        """What must be done before."""

    @abstractmethod
    def path(self, cache: Path) -> Path:
        """The file that exists once it is done."""

    @abstractmethod
    def run(self, cache: Path) -> None:
        """Do it."""

    def is_done(self, cache: Path) -> bool:
        """Whether it need not be done again."""
        return self.path(cache).exists()


def run_jobs(
    wanted: Iterable[Job],
    cache: Path,
    /,
    *,
    n_processes: int = 1,
    prepare: Callable[[], None] | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> None:
    """Do all jobs and what they need.

    Parameters
    ----------
    wanted : iterable of Job
        In the order in which they should be done, as far as possible.
    cache : Path
        Folder of results. ``times.tsv`` in it says how many seconds each job took.
    n_processes : int, default 1
        Number of processes.
    prepare : callable, optional
        Called once in each process before its first job.
    report : callable, optional
        Called with a line of text for each job that is done.

    Raises
    ------
    ExperimentError
        When jobs failed, after all others that can be done are done.
    """
    waiting = {job.key: job for job in _in_order(wanted) if not job.is_done(cache)}
    n_all, failed = len(waiting), dict[str, str]()
    if not waiting:
        return
    _check_times(cache / _TIMES)
    with OutputFolder(cache).alone():
        for folder in cache.glob("*/"):
            remove_left_overs(folder)
        with Workers(n_processes, prepare=prepare) as workers:
            _run(waiting, failed, cache, workers, n_processes, report)
    if failed:
        raise ExperimentError(
            f"{len(failed)} of {n_all} parts failed, and {len(waiting)} that need them were not begun; the others are "
            f"kept. First: {next(iter(failed.values()))}"
        )


def _check_times(path: Path) -> None:
    """Lines are added to the list of times; a file of somebody else under its name is left alone."""
    try:
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
    except (OSError, UnicodeDecodeError):
        lines = [""]
    if not all(_TIME.fullmatch(line) for line in lines):
        raise ExperimentError(f"{path} is not a list of times by lesioncount. Move it, or choose another --cache.")


def _run(
    waiting: dict[str, Job],
    failed: dict[str, str],
    cache: Path,
    workers: Workers,
    n_processes: int,
    report: Callable[[str], None],
) -> None:
    n_all = len(waiting)
    running: dict[Future[float], Job] = {}
    try:
        while waiting or running:
            for job in _ready(waiting, running, failed, n_processes):
                running[workers.submit(_timed, job, cache)] = waiting.pop(job.key)
            if not running:
                break  # all that is left needs something that failed
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                job = running.pop(future)
                how = _outcome(future, job, failed, cache / _TIMES)
                n_done = n_all - len(waiting) - len(running)
                report(f"[{n_done}/{n_all}] {job.title}: {how}")
    except (KeyboardInterrupt, GeneratorExit):
        workers.shutdown(wait=True, cancel_futures=True)
        raise


def _in_order(wanted: Iterable[Job]) -> Iterable[Job]:
    """Each job once, after what it needs."""
    seen: set[str] = set()

    def visit(job: Job) -> Iterable[Job]:
        if job.key not in seen:
            seen.add(job.key)
            for need in job.needs:
                yield from visit(need)
            yield job

    for job in wanted:
        yield from visit(job)


def _ready(
    waiting: dict[str, Job], running: dict[Future[float], Job], failed: dict[str, str], n_processes: int
) -> list[Job]:
    """Jobs to begin now: as many as processes are free, of those whose needs are met."""
    open_keys = waiting.keys() | {job.key for job in running.values()} | failed.keys()
    free = n_processes - len(running)
    ready = (job for job in waiting.values() if not any(need.key in open_keys for need in job.needs))
    return [job for job, _ in zip(ready, range(free), strict=False)]


def _timed(job: Job, cache: Path) -> float:
    began = time.monotonic()
    job.run(cache)
    return time.monotonic() - began


def _outcome(future: Future[float], job: Job, failed: dict[str, str], times: Path) -> str:
    try:
        seconds = future.result()
    except Exception as error:  # noqa: BLE001 - whatever it was, the other jobs go on
        failed[job.key] = f"{job.title}: {type(error).__name__}: {error}"
        return f"failed ({type(error).__name__}: {error})"
    with times.open("a", encoding="utf-8") as log:
        log.write(f"{job.key}\t{job.title}\t{seconds:.1f}\n")
    return f"{seconds:.0f} s"

"""Jobs that depend on each other → done, in parallel; jobs that were finished before are not repeated."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path

import torch

from lesioncount.errors import ExperimentError
from lesioncount.folder.atomic import remove_left_overs
from lesioncount.folder.output import OutputFolder
from lesioncount.runs.workers import Workers
from lesioncount_reproduction.experiments.jobs import Job

_TIMES, _TIME = "times.tsv", re.compile(r"[^\t]+\t[^\t]*\t[0-9.]+")


def run_jobs(
    wanted: Iterable[Job], cache: Path, /, *, n_processes: int = 1, report: Callable[[str], None] = lambda _: None
) -> None:
    """Do all jobs and what they need.

    Parameters
    ----------
    wanted : iterable of Job
        In the order in which they should be done, as far as possible.
    cache : Path
        Folder of results. ``times.tsv`` in it says how many seconds each job took.
    n_processes : int, default 1
        Number of processes, each with one thread.
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
        _run(waiting, failed, cache, n_processes, report)
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
    waiting: dict[str, Job], failed: dict[str, str], cache: Path, n_processes: int, report: Callable[[str], None]
) -> None:
    n_all = len(waiting)
    running: dict[Future[float], Job] = {}
    with Workers(n_processes, prepare=_one_thread) as executor:
        try:
            while waiting or running:
                for job in _ready(waiting, running, failed, n_processes):
                    running[executor.submit(_timed, job, cache)] = waiting.pop(job.key)
                if not running:
                    break  # all that is left needs something that failed
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    job = running.pop(future)
                    how = _outcome(future, job, failed, cache / _TIMES)
                    n_done = n_all - len(waiting) - len(running)
                    report(f"[{n_done}/{n_all}] {job.title}: {how}")
        except (KeyboardInterrupt, GeneratorExit):
            executor.shutdown(wait=True, cancel_futures=True)
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


def _one_thread() -> None:
    """Networks side by side, each on a core of its own."""
    torch.set_num_threads(1)

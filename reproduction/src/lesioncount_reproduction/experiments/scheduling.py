"""Jobs that need each other → done, in parallel; jobs whose file is there are not repeated.

Knows nothing of networks: a process that waits for others need not import torch.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import Future, as_completed
from pathlib import Path

from lesioncount.errors import ExperimentError
from lesioncount.folder.atomic import remove_left_overs
from lesioncount.folder.output import OutputFolder
from lesioncount.runs.workers import Workers
from lesioncount_reproduction.experiments.arms import Arm


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
        """A hash that changes with everything that the result depends on."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What it does, for messages."""

    @property
    @abstractmethod
    def needs(self) -> tuple[Job, ...]:
        """What must be at hand before."""

    @abstractmethod
    def path(self, cache: Path) -> Path:
        """The file that exists once it is done."""

    @abstractmethod
    def run(self, cache: Path) -> None:
        """Do it."""

    def is_done(self, cache: Path) -> bool:
        """Whether it need not be done again."""
        return self.path(cache).exists()

    def is_at_hand(self, cache: Path) -> bool:
        """Whether what needs it can begin, which may take more than its file."""
        return self.is_done(cache)


def run_jobs(
    wanted: Iterable[Job],
    cache: Path,
    /,
    *,
    n_processes: int = 1,
    prepare: Callable[[], None] | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> None:
    """Do all jobs, and first what they need.

    Parameters
    ----------
    wanted : iterable of Job
        In the order in which they should be done, among those that need equally many others.
    cache : Path
        Folder of results.
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
    waves = _waves(wanted, cache)
    if not waves:
        return
    n_all, n_done, failed = sum(map(len, waves)), 0, dict[str, str]()
    lost: set[str] = set()
    with OutputFolder(cache).alone(), Workers(n_processes, prepare=prepare) as workers:
        for folder in cache.glob("*/"):
            remove_left_overs(folder)
        try:
            for wave in waves:
                lost |= {job.key for job in wave if any(need.key in failed.keys() | lost for need in job.needs)}
                running = {workers.submit(_timed, job, cache): job for job in wave if job.key not in lost}
                for future in as_completed(running):
                    n_done += 1
                    report(f"[{n_done}/{n_all}] {running[future].title}: {_outcome(future, running[future], failed)}")
        except (KeyboardInterrupt, GeneratorExit):
            workers.shutdown(wait=True, cancel_futures=True)
            raise
    if failed:
        raise ExperimentError(
            f"{len(failed)} of {n_all} parts failed, and {len(lost)} that need them were not begun; the others are "
            f"kept. First: {next(iter(failed.values()))}"
        )


def _waves(wanted: Iterable[Job], cache: Path) -> list[list[Job]]:
    """Jobs that are to be done, each once, after what they need: those of a wave need only those of earlier ones."""
    depths: dict[str, int] = {}
    waves: list[list[Job]] = []

    def depth_of(job: Job, is_there: Callable[[Path], bool]) -> int:
        if job.key not in depths and is_there(cache):
            return -1
        if job.key not in depths:
            depths[job.key] = 1 + max((depth_of(need, need.is_at_hand) for need in job.needs), default=-1)
            waves.extend([] for _ in range(depths[job.key] + 1 - len(waves)))
            waves[depths[job.key]].append(job)
        return depths[job.key]

    for job in wanted:
        depth_of(job, job.is_done)
    return waves


def _timed(job: Job, cache: Path) -> float:
    began = time.monotonic()
    job.run(cache)
    return time.monotonic() - began


def _outcome(future: Future[float], job: Job, failed: dict[str, str]) -> str:
    try:
        return f"{future.result():.0f} s"
    except Exception as error:  # noqa: BLE001 - whatever it was, the other jobs go on
        failed[job.key] = f"{job.title}: {type(error).__name__}: {error}"
        return f"failed ({type(error).__name__}: {error})"

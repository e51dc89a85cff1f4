"""Workers side by side: each is given a case, watched from outside, killed when it hangs, and replaced when it dies."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from fuzzing.cases import Case, Outcome
from fuzzing.worker import work

SECONDS_PER_INPUT = 20

# Imports come with the first input of a format: torch alone takes seconds on a busy machine.
_SECONDS_TO_MAKE = 90

_SPAWN = multiprocessing.get_context("spawn")


@dataclass(eq=False)
class _Worker:
    """A process and what it is doing."""

    number: int
    folder: Path
    process: Any
    connection: Connection
    case: Case | None = None
    stage: str = "idle"
    since: float = 0.0
    made_at: float = 0.0
    outcome: Outcome = field(default_factory=lambda: Outcome("accepted"))

    @property
    def deadline(self) -> float:
        return self.since + (_SECONDS_TO_MAKE if self.stage == "asked" else SECONDS_PER_INPUT)


Done = Callable[[Case, Outcome, Path, float], None]


class Pool:
    """Workers that handle cases as long as there are some."""

    def __init__(self, n: int, home: Path, folder: Path) -> None:
        self._home, self._folder = home, folder
        self._workers = [self._started(number) for number in range(n)]

    def run(self, next_case: Callable[[], Case | None], done: Done) -> None:
        """Hand out cases until there is none, and tell what became of each."""
        while True:
            for worker in self._workers:
                if worker.stage == "idle" and (case := next_case()) is not None:
                    worker.case, worker.stage, worker.since = case, "asked", time.monotonic()
                    worker.made_at = worker.since
                    worker.connection.send(case)
            busy = [worker for worker in self._workers if worker.stage != "idle"]
            if not busy:
                break
            ready = wait([worker.connection for worker in busy], timeout=0.5)
            for worker in busy:
                if worker.connection in ready:
                    self._listen(worker, done)
                elif time.monotonic() > worker.deadline:
                    self._hung(worker, done)
        for worker in self._workers:
            worker.connection.send(None)
            worker.process.join(5)
            _kill(worker)

    def _listen(self, worker: _Worker, done: Done) -> None:
        try:
            stage, outcome = worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join(5)
            code = worker.process.exitcode
            ended = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            self._lost(worker, Outcome("died", ended), done)
            return
        took = time.monotonic() - worker.since
        worker.stage, worker.since = stage, time.monotonic()
        if stage == "made":
            worker.made_at = worker.since
        elif stage == "handled":
            worker.outcome = Outcome("hung", f"over {SECONDS_PER_INPUT} s") if took > SECONDS_PER_INPUT else outcome
        elif stage == "checked":
            self._tell(worker, outcome or worker.outcome, done)
            worker.stage = "idle"

    def _hung(self, worker: _Worker, done: Done) -> None:
        self._lost(worker, Outcome("hung", f"over {SECONDS_PER_INPUT} s"), done)

    def _lost(self, worker: _Worker, outcome: Outcome, done: Done) -> None:
        """A worker is gone, or must go. While another reader checked a count, that is not our fault."""
        if worker.stage == "handled":
            outcome = worker.outcome
        elif worker.stage == "asked":
            outcome = replace(outcome, kind="fuzzer", cause=f"{outcome.kind} while the input was made")
        _kill(worker)
        self._tell(worker, outcome, done)
        self._workers[self._workers.index(worker)] = self._started(worker.number)

    def _tell(self, worker: _Worker, outcome: Outcome, done: Done) -> None:
        if worker.case is not None:
            done(worker.case, outcome, worker.folder, time.monotonic() - worker.made_at)

    def _started(self, number: int) -> _Worker:
        here, there = _SPAWN.Pipe()
        folder = self._folder / f"worker{number}"
        process = _SPAWN.Process(target=work, args=(there, self._home, folder))
        process.start()
        there.close()
        return _Worker(number, folder, process, here)


def _kill(worker: _Worker) -> None:
    with contextlib.suppress(OSError):
        os.killpg(worker.process.pid, signal.SIGKILL)
    worker.process.kill()
    worker.process.join(5)
    worker.connection.close()

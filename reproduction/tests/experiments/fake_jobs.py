"""Jobs that are done at once, or fail, or sleep: in a module of their own, which other processes can import."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from lesioncount_reproduction.experiments.scheduling import Job


@dataclass(frozen=True)
class Written(Job):
    """Writes a file, and a line into a list of what was begun."""

    name: str
    after: tuple[Job, ...] = ()

    @property
    def key(self) -> str:
        return self.name

    @property
    def title(self) -> str:
        return f"write {self.name}"

    @property
    def needs(self) -> tuple[Job, ...]:
        return self.after

    def path(self, cache: Path) -> Path:
        return cache / f"{self.name}.txt"

    def run(self, cache: Path) -> None:
        with (cache / "begun").open("a") as file:
            file.write(f"{self.name}\n")
        missing = [need.key for need in self.needs if not need.is_done(cache)]
        self.path(cache).write_text(f"{os.getpid()} without {missing}")


@dataclass(frozen=True)
class Failing(Written):
    """Cannot be done."""

    def run(self, cache: Path) -> None:
        raise ValueError(f"no {self.name} in {cache.name}")


@dataclass(frozen=True)
class Dying(Written):
    """Takes its process with it."""

    def run(self, cache: Path) -> None:  # noqa: ARG002 - as all jobs
        os._exit(3)


@dataclass(frozen=True)
class Sleeping(Written):
    """Says which process it sleeps in."""

    def run(self, cache: Path) -> None:
        unfinished = cache / "sleeper.new"
        unfinished.write_text(str(os.getpid()))
        unfinished.replace(cache / "sleeper")
        time.sleep(120)

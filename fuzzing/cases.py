"""One input, known by three words: the seed, the format and a number; and what became of it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# What becomes of an input. The first two are as they should be, all others are findings.
FINE = ("accepted", "refused")
FINDINGS = ("traceback", "differs", "memory", "hung", "died", "fuzzer")


@dataclass(frozen=True)
class Case:
    """One input: the same three words make the same changes.

    And the same bytes, but where the valid file itself holds times, paths or identifiers that are new in every run:
    files that are read back, and DICOM. The input that a finding saves is always the one that showed it.
    """

    seed: int
    format: str
    number: int

    def rng(self) -> np.random.Generator:
        """The random numbers that it is made with."""
        return np.random.default_rng([self.seed, zlib.crc32(self.format.encode()), self.number])

    def __str__(self) -> str:
        return f"--seed {self.seed} --only {self.format} --case {self.number}"


@dataclass(frozen=True)
class Outcome:
    """What became of an input.

    Attributes
    ----------
    kind : str
        One of `FINE` or `FINDINGS`.
    cause : str
        For people, and to tell causes apart: of a traceback, the error and the place in our code that it came through.
    detail : str
        The message, or the traceback.
    """

    kind: str
    cause: str = ""
    detail: str = ""

    @property
    def is_finding(self) -> bool:
        """Whether it is not as it should be."""
        return self.kind in FINDINGS


@dataclass(frozen=True)
class Numbers:
    """What a count stands on: the number of candidates, and their peaks in ascending order."""

    n: int
    peaks: tuple[float, ...]


@dataclass(frozen=True)
class Target:
    """Something that reads files.

    Attributes
    ----------
    make : callable
        Writes a mutated input into a folder, with valid files of the home folder at hand, and says how to read it.
    handle : callable
        Has it read by the library. Gives the numbers of an accepted map, or None where there is nothing to compare.
    check : callable, optional
        Reads the same without the library: the numbers that are right, or None where they cannot be known.
    """

    make: Callable[[np.random.Generator, Path, Path], dict[str, Any]]
    handle: Callable[[Path, dict[str, Any]], Numbers | None]
    check: Callable[[Path, dict[str, Any]], Numbers | None] | None = None


class RefusedError(Exception):
    """A command that ended with a sentence, and an exit code that says so."""

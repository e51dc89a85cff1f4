"""Chest CTs of LIDC-IDRI: a detector's scored candidates, and how many nodules each of four readers counted."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import CohortError, reason_of

COUNTS, CANDIDATES = "reader_counts.tsv.gz", "detector_candidates.tsv.gz"
_Row = TypeVar("_Row")
_READERS = tuple(f"nodules_3mm_reader{number}" for number in (1, 2, 3, 4))


@dataclass(frozen=True, eq=False)
class DetectedScan:
    """One CT.

    Attributes
    ----------
    name, patient : str
    scores : ndarray of float
        Of its candidates, the highest first; another part of the scans was learned from.
    readings : tuple of int
        Nodules of 3 mm and more, by each of four readers.
    """

    name: str
    patient: str
    scores: NDArray[np.float64] = field(repr=False)
    readings: tuple[int, ...]


def read_lidc(folder: Path) -> list[DetectedScan]:
    """The scans that have candidates and readings, from two tables in a folder."""
    scores = defaultdict(list)
    for name, score in _rows(folder / CANDIDATES, _candidate):
        scores[name].append(score)
    counted = _rows(folder / COUNTS, _counted)
    found = [
        DetectedScan(name, patient, np.sort(scores[name])[::-1], readings)
        for name, patient, readings in counted
        if name in scores
    ]
    if not found:
        raise CohortError(f"No scan of {folder / COUNTS} has candidates in {folder / CANDIDATES}.")
    return found


def _candidate(row: Mapping[str, str]) -> tuple[str, float]:
    score = float(row["score"])
    if not 0 <= score <= 1:
        raise ValueError(f"a score of {score:g}, which is not between 0 and 1")
    return row["series_uid"], score


def _counted(row: Mapping[str, str]) -> tuple[str, str, tuple[int, ...]]:
    readings = tuple(int(row[reader]) for reader in _READERS)
    if min(readings) < 0:
        raise ValueError(f"a count of {min(readings)}")
    return row["series_uid"], row["patient"], readings


def _rows(path: Path, read: Callable[[Mapping[str, str]], _Row]) -> list[_Row]:
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            return [read(row) for row in csv.DictReader(file, delimiter="\t")]
    except KeyError as error:
        raise CohortError(f"{path} is not a table of LIDC: it has no column {error}.") from None
    except (OSError, EOFError, zlib.error, csv.Error, ValueError, TypeError) as error:
        raise CohortError(f"{path} is not a table of LIDC: {reason_of(error)}") from None

"""Chest CTs of LIDC-IDRI: a detector's scored candidates, and how many nodules each of four readers counted."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import CohortError, reason_of

COUNTS, CANDIDATES = "reader_counts.tsv.gz", "detector_candidates.tsv.gz"
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
    for row in _rows(folder / CANDIDATES):
        scores[row["series_uid"]].append(float(row["score"]))
    return [
        DetectedScan(
            (name := row["series_uid"]),
            row["patient"],
            np.sort(scores[name])[::-1],
            tuple(int(row[reader]) for reader in _READERS),
        )
        for row in _rows(folder / COUNTS)
        if row["series_uid"] in scores
    ]


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, delimiter="\t"))
    except (OSError, EOFError, UnicodeError) as error:
        raise CohortError(f"{path} is not a table of LIDC: {reason_of(error)}") from None

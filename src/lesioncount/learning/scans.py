"""What a network learns from: images, and as much truth as is known of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

# Stands for "any number": no cohort has a scan with more lesions.
MANY = 1 << 30


@dataclass(frozen=True, eq=False)
class LearningScan:
    """One scan to learn from.

    Attributes
    ----------
    name, patient : str
    images : array of float32, shape (channels, *spatial)
    mask : array of uint8, shape spatial, or None
        Lesion voxels; None where only the count is known.
    at_least, at_most : int
        Bounds of the number of lesions, both included; equal where it is known exactly.
    """

    name: str
    patient: str
    images: NDArray[np.float32]
    mask: NDArray[np.uint8] | None
    at_least: int
    at_most: int


class ScanSource(Protocol):
    """A series of scans that are made, or read, when they are asked for."""

    def __len__(self) -> int:
        """How many scans there are."""

    def __getitem__(self, index: int) -> LearningScan:
        """One of them."""


class Kept:
    """Scans that are kept once they were made or read, for as long as they fit into memory."""

    def __init__(self, source: ScanSource) -> None:
        self._source = source
        self._kept: dict[int, LearningScan] = {}

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: int) -> LearningScan:
        if index not in self._kept:
            self._kept[index] = self._source[index]
        return self._kept[index]


class Part:
    """Some scans of a source, of which some may have to do without their mask."""

    def __init__(self, source: ScanSource, rows: Sequence[int], without_mask: Sequence[int] = ()) -> None:
        self._source, self._rows, self._without = source, list(rows), set(without_mask)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> LearningScan:
        row = self._rows[index]
        scan = self._source[row]
        if row not in self._without:
            return scan
        return LearningScan(scan.name, scan.patient, scan.images, None, scan.at_least, scan.at_most)

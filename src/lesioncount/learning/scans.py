"""What a network learns from: images, and as much as is known about each of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from lesioncount.baselines import connected_component_count

if TYPE_CHECKING:
    from lesioncount.learning.config import TrainingConfig

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
        Bounds on the number of lesions, both included; equal where it is known exactly.
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


class TrainingData(ABC):
    """The data that a configuration names: pictures of one's own, or what another package offers.

    Such a package has an entry point in the group ``lesioncount.sources``: something that makes this of a `DataConfig`.

    Attributes
    ----------
    alike : int
        Counts from here on are taken to be similar when folds are made.
    """

    alike: int = 4

    @abstractmethod
    def sources(self) -> Mapping[str, ScanSource]:
        """The scans of the training, validation and test parts, made or read when they are asked for."""

    def completed(self, config: TrainingConfig) -> TrainingConfig:
        """The configuration with what it leaves to the data."""
        return config

    def lists(self, parts: Mapping[str, ScanSource]) -> dict[str, list[Path]]:  # noqa: ARG002 - for those with files
        """The files of the scans of each part, if they have any that `lesioncount predict` takes."""
        return {}


@dataclass
class Memory:
    """How many bytes of scans may still be kept."""

    n_bytes_left: int

    @classmethod
    def of_gb(cls, gigabytes: float) -> Self:
        """A limit in units of 10⁹ bytes."""
        return cls(int(gigabytes * 1e9))

    def takes(self, scan: LearningScan) -> bool:
        """Whether a scan still fits; if so, its bytes are taken."""
        size = scan.images.nbytes + (0 if scan.mask is None else scan.mask.nbytes)
        if size > self.n_bytes_left:
            return False
        self.n_bytes_left -= size
        return True


class Kept:
    """Scans that are kept in memory once they have been made or read, as far as they fit.

    The first scans stay and the others are made again each time: every epoch asks for all of them, so throwing out old
    ones for new ones would keep none until it is asked for again.

    Parameters
    ----------
    source : ScanSource
    memory : Memory
        The limit, which several sources may share.
    """

    def __init__(self, source: ScanSource, memory: Memory) -> None:
        self._source, self._memory = source, memory
        self._kept: dict[int, LearningScan] = {}

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: int) -> LearningScan:
        if index in self._kept:
            return self._kept[index]
        scan = self._source[index]
        if self._memory.takes(scan):
            self._kept[index] = scan
        return scan


class Part:
    """Some scans, each a place in a source. The masks of some of them may be hidden.

    Parameters
    ----------
    places : sequence of (ScanSource, int)
    hidden : sequence of int
        Which of these scans are given without their masks.
    """

    def __init__(self, places: Sequence[tuple[ScanSource, int]], hidden: Sequence[int] = ()) -> None:
        self._places, self._hidden = list(places), set(hidden)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> LearningScan:
        source, place = self._places[index]
        return replace(source[place], mask=None) if index in self._hidden else source[place]


def count_of(mask: NDArray[np.bool_]) -> int:
    """The number of lesions in a mask: its 18-connected components, as in the paper."""
    return connected_component_count(mask) if mask.any() else 0

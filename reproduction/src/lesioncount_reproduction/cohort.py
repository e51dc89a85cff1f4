"""A visit: five images, where the brain and its lesions are, and how many lesions there are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import CohortError
from lesioncount.learning.split import SPLITS, Split

# In the order of the images, by their names in BIDS: T1, T1 with gadolinium, T2, FLAIR and proton density.
SEQUENCES = ("T1w", "ce-gadolinium_T1w", "T2w", "FLAIR", "PDw")


@dataclass(frozen=True, eq=False)
class Visit:
    """One visit of one patient.

    Attributes
    ----------
    patient, session : str
        Such as ``"001"`` and ``"01"``. A session may be empty.
    split : str or None
        ``"train"``, ``"val"`` or ``"test"``.
    images : ndarray of float32, shape (5, z, y, x)
        T1, T1 with gadolinium, T2, FLAIR, PD.
    brain : ndarray of bool, shape (z, y, x)
    lesions : ndarray of bool, shape (z, y, x), or None
        Enhancing lesions that the rater has marked; None when nobody has.
    all_lesions : ndarray of bool, shape (z, y, x), or None
        All enhancing lesions, including those that the rater has missed. Known for synthetic scans only.
    affine : ndarray, shape (4, 4)
        From voxel index in the order of NIfTI, (x, y, z), to millimetres.
    count : int or None
        Number of lesions that the rater has marked, in the paper's sense: 18-connected.
    at_least, at_most : int or None
        Bounds on the count, where it is not known exactly.
    """

    patient: str
    session: str
    split: str | None
    images: NDArray[np.float32] = field(repr=False)
    brain: NDArray[np.bool_] = field(repr=False)
    lesions: NDArray[np.bool_] | None = field(repr=False)
    all_lesions: NDArray[np.bool_] | None = field(repr=False)
    affine: NDArray[np.float64] = field(repr=False)
    count: int | None = None
    at_least: int | None = None
    at_most: int | None = None

    @property
    def name(self) -> str:
        """How the names of its files begin: ``sub-001_ses-01``."""
        return bids_name(self.patient, self.session)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of voxels along z, y, x."""
        return self.images.shape[1:]

    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        """Voxel size along z, y, x."""
        x, y, z = (float(size) for size in np.sqrt((self.affine[:3, :3] ** 2).sum(axis=0)))
        return z, y, x


class Cohort(Sequence[Visit]):
    """The visits of many patients, each made or read when it is asked for."""

    @abstractmethod
    def split(self, name: Split, /) -> Self:
        """The scans of one part: ``"train"``, ``"val"`` or ``"test"``. No patient is in two of them."""

    @abstractmethod
    def scan(self, index: int, /) -> Visit:
        """The scan at a position, counted from 0."""

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the scans come from, for the description of the data set."""
        return {}

    @overload
    def __getitem__(self, index: int) -> Visit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Visit]: ...
    def __getitem__(self, index: int | slice) -> Visit | list[Visit]:
        """The scan at a position, or a list of scans."""
        places = range(len(self))[index]
        return self.scan(places) if isinstance(places, int) else [self.scan(place) for place in places]

    def __iter__(self) -> Iterator[Visit]:
        """One scan after another, so that only one needs to be in memory."""
        return (self.scan(place) for place in range(len(self)))


def bids_name(patient: str, session: str) -> str:
    """The name of a visit in BIDS. The session may be empty."""
    return f"sub-{patient}_ses-{session}" if session else f"sub-{patient}"


def checked_split(name: str) -> str:
    """The name of a part, or a `CohortError`."""
    if name not in SPLITS:
        raise CohortError(f"Expected one of {', '.join(SPLITS)}, but got {name!r}.")
    return name

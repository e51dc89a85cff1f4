"""A visit: five images, where the brain and its lesions are, and how many lesions there are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args, overload

import numpy as np
from numpy.typing import NDArray

from lesioncount.baselines import connected_component_count
from lesioncount.errors import CohortError

# In the order of the images, by their names in BIDS: T1, T1 with gadolinium, T2, FLAIR and proton density.
SEQUENCES = ("T1w", "ce-gadolinium_T1w", "T2w", "FLAIR", "PDw")

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


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


def count_of(mask: NDArray[np.bool_]) -> int:
    """The number of lesions in a mask, in the paper's sense."""
    return connected_component_count(mask) if mask.any() else 0


def checked_split(name: str) -> str:
    """The name of a part, or a `CohortError`."""
    if name not in SPLITS:
        raise CohortError(f"Expected one of {', '.join(SPLITS)}, but got {name!r}.")
    return name


def z_scored(images: NDArray[np.float32], brain: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Images with mean 0 and variance 1 inside the brain, each by itself, and 0 outside.

    Parameters
    ----------
    images : ndarray, shape (n, z, y, x)
    brain : ndarray of bool, shape (z, y, x)
    """
    scored = np.zeros_like(images, dtype=np.float32)
    for image, out in zip(images, scored, strict=True):
        values = image[brain].astype(np.float64)  # single precision sums differently on other machines
        spread = values.std() if values.size else 0.0
        if spread > 0:
            out[brain] = (values - values.mean()) / spread
    return scored

"""What synthetic cohorts have in common: patients and sessions planned from a seed, and scans made when asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import CohortError
from lesioncount.learning.scans import count_of
from lesioncount.learning.split import Split
from lesioncount_reproduction.cohort import Cohort, Visit, checked_split
from lesioncount_reproduction.synthetic.areas import area_map, instance_map, marked
from lesioncount_reproduction.synthetic.blob import Blob
from lesioncount_reproduction.synthetic.lattice import Lattice, Places
from lesioncount_reproduction.synthetic.placing import GAP_MM
from lesioncount_reproduction.synthetic.scanner import Content, acquired


@dataclass(frozen=True)
class PlannedVisit:
    """A scan that has not been made yet: whose, which, and for what."""

    patient: int
    session: int
    split: str

    @property
    def patient_label(self) -> str:
        """As in the names of files: 001 for the first."""
        return f"{self.patient + 1:03d}"

    @property
    def session_label(self) -> str:
        """As in the names of files: 01 for the first."""
        return f"{self.session + 1:02d}"


Planned = TypeVar("Planned", bound=PlannedVisit)


class SyntheticCohort(Cohort, Generic[Planned]):
    """Scans that are made up from a seed, each when it is asked for.

    Parameters
    ----------
    n_patients, seed : int
    shape : sequence of int
        Voxels along z, y, x.

    Attributes
    ----------
    visits : tuple of PlannedVisit
        The scans, before they are made.
    """

    visits: tuple[Planned, ...]

    def __init__(self, n_patients: int, seed: int, shape: Sequence[int]) -> None:
        if n_patients < 1 or seed < 0:
            raise CohortError(
                f"Expected at least one patient and a seed of at least 0, but got n_patients={n_patients} and "
                f"seed={seed}."
            )
        self.n_patients, self.seed, self.lattice = int(n_patients), int(seed), Lattice(_triple(shape))

    @abstractmethod
    def content(self, visit: Planned) -> Content:
        """What a scan shows, in millimetres and without faults of the scanner."""

    @abstractmethod
    def lesions(self, visit: Planned) -> dict[int, Blob]:
        """The enhancing lesions of a scan, where they lie in it, by their numbers, which count from 1."""

    @abstractmethod
    def places(self, visit: Planned) -> Places:
        """Where in the head the voxels of a scan are."""

    @abstractmethod
    def acquisition(self, visit: Planned) -> np.random.Generator:
        """The random numbers of the scanner."""

    def __len__(self) -> int:
        """Number of scans."""
        return len(self.visits)

    def split(self, name: Split, /) -> Self:
        """The scans of one part: ``"train"``, ``"val"`` or ``"test"``, 60, 20 and 20 % of the patients."""
        part = object.__new__(type(self))
        part.__dict__.update(self.__dict__)
        part.visits = tuple(visit for visit in self.visits if visit.split == checked_split(name))
        return part

    def scan(self, index: int, /) -> Visit:
        """Make a scan."""
        visit = self.visits[index]
        content = self.content(visit)
        lesions = self._mask([blob for blob in content.gad if blob.labelled])
        return Visit(
            patient=visit.patient_label,
            session=visit.session_label,
            split=visit.split,
            images=acquired(content, self.lattice, self.acquisition(visit)),
            brain=content.tissues.brain,
            lesions=lesions,
            all_lesions=self._mask(content.gad),
            affine=self.lattice.affine,
            count=count_of(lesions),
        )

    def areas(self, visit: Planned) -> NDArray[np.uint8]:
        """The area of the brain that each voxel of a scan belongs to: see `AREAS`."""
        return area_map(self.content(visit).tissues, self.places(visit).coordinates[0])

    def instances(self, visit: Planned) -> NDArray[np.uint16]:
        """The number of the lesion that each voxel of a scan belongs to, of those that the rater has marked."""
        return instance_map(marked(self.lesions(visit)), self.lattice)

    def _mask(self, blobs: Sequence[Blob]) -> NDArray[np.bool_]:
        mask = np.zeros(self.lattice.shape, np.bool_)
        for blob in blobs:
            blob.paint_mask(mask, self.lattice)
        return mask

    @property
    def _edge_mm(self) -> float:
        """Width over which tissues pass into each other: a voxel."""
        return float(np.mean(self.lattice.spacing_mm))

    @property
    def _gap_mm(self) -> float:
        """Lesions must not touch, also where voxels are larger than those that the gap was chosen for."""
        return max(GAP_MM, 2 * max(self.lattice.spacing_mm))


def _triple(shape: Sequence[int]) -> tuple[int, int, int]:
    """Plain numbers, so that equal shapes are equal; the lattice refuses what is not three."""
    return cast("tuple[int, int, int]", tuple(int(n) for n in shape))

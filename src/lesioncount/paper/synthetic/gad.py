"""The synthetic Gad cohort: patients with one to three annual scans, made from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import CohortError
from lesioncount.learning.cohort import Cohort, Split, Visit, checked_split, count_of
from lesioncount.paper.synthetic.anatomy import Anatomy
from lesioncount.paper.synthetic.blob import Blob
from lesioncount.paper.synthetic.counts import drawn_counts, drawn_splits
from lesioncount.paper.synthetic.lattice import Lattice
from lesioncount.paper.synthetic.lesions import aged, chronic_lesions, gad_lesions, mimics
from lesioncount.paper.synthetic.placing import GAP_MM, WhiteMatter
from lesioncount.paper.synthetic.scanner import Content, acquired
from lesioncount.paper.synthetic.vessels import Tube, long_vessels, short_vessels

# What random numbers are for: each purpose, patient and session has a stream of its own, so that a scan is the same
# whatever was made before it, and in which process.
_COHORT, _PATIENT, _LESIONS, _ACQUISITION = range(4)

_MOST_SESSIONS = 3


@dataclass(frozen=True)
class PlannedVisit:
    """A scan that has not been made yet: whose, which, for what, and how many lesions it will have."""

    patient: int
    session: int
    split: str
    n_lesions: int


class GadCohort(Cohort):
    """Scans of patients with enhancing lesions, made up from a seed: a stand-in for data that cannot be shared.

    Five sequences, brain mask, lesion masks and counts, with what makes the real task hard: faint and small lesions,
    vessels, plexus and blobs that enhance as lesions do, old lesions that do not, noise, bias, slight misregistration,
    and a rater who misses what is faint. The number of lesions follows the class balance of the paper's data.

    A scan is made when it is asked for, and is the same in any order, any process and on any machine.

    Parameters
    ----------
    n_patients : int
        Each has one to three scans.
    seed : int
    shape : tuple of int, default (24, 48, 40)
        Voxels along z, y, x. They always fill the same field of view: other shapes show the same disease.

    Attributes
    ----------
    visits : tuple of PlannedVisit
        The scans, before they are made.

    Examples
    --------
    >>> cohort = GadCohort(10, seed=1)
    >>> scan = cohort.split("test")[0]
    >>> scan.images.shape, scan.spacing_mm
    ((5, 24, 48, 40), (3.5, 3.5, 3.5))
    >>> scan.count <= GadCohort(10, seed=1).split("test").visits[0].n_lesions
    True
    """

    def __init__(self, n_patients: int, seed: int = 0, shape: tuple[int, int, int] = (24, 48, 40)) -> None:
        if n_patients < 1 or seed < 0:
            raise CohortError(
                f"Expected at least one patient and a seed of at least 0, but got n_patients={n_patients} and "
                f"seed={seed}."
            )
        self.n_patients, self.seed, self.lattice = int(n_patients), int(seed), Lattice(_triple(shape))
        rng = _stream(self.seed, _COHORT)
        counts = drawn_counts(rng, rng.integers(1, _MOST_SESSIONS + 1, size=self.n_patients))
        splits = drawn_splits(rng, counts)
        self.visits = tuple(
            PlannedVisit(patient, session, splits[patient], n)
            for patient, sessions in enumerate(counts)
            for session, n in enumerate(sessions)
        )
        self._counts = tuple(counts)

    def __len__(self) -> int:
        """Number of scans."""
        return len(self.visits)

    def __repr__(self) -> str:
        """How to make it, and its size."""
        made_from = f"{self.n_patients} patients, seed {self.seed}, shape {self.lattice.shape}"
        return f"<GadCohort of {made_from}: {len(self)} scans>"

    @property
    def provenance(self) -> dict[str, Any]:
        """That it is synthetic, and how to make it again."""
        shape = " ".join(map(str, self.lattice.shape))
        options = f"--patients {self.n_patients} --seed {self.seed} --shape {shape}"
        return {
            "Name": "Synthetic Gad cohort of lesioncount",
            "Synthetic": True,
            "Seed": self.seed,
            "Patients": self.n_patients,
            "Shape": list(self.lattice.shape),
            "Command": f"lesioncount synthesize -o FOLDER {options}",
        }

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
        acquisition = _stream(self.seed, _ACQUISITION, visit.patient, visit.session)
        images = acquired(content, self.lattice, acquisition)
        lesions = self._mask([blob for blob in content.gad if blob.labelled])
        return Visit(
            patient=f"{visit.patient + 1:03d}",
            session=f"{visit.session + 1:02d}",
            split=visit.split,
            images=images,
            brain=content.tissues.brain,
            lesions=lesions,
            all_lesions=self._mask(content.gad),
            affine=self.lattice.affine,
            count=count_of(lesions),
        )

    def content(self, visit: PlannedVisit) -> Content:
        """What a scan shows, in millimetres and without faults of the scanner."""
        counts = self._counts[visit.patient][: visit.session + 1]
        # Lesions must not touch, also where voxels are larger than those that the gap was chosen for.
        course = _course(self.seed, visit.patient, counts, max(GAP_MM, 2 * max(self.lattice.spacing_mm)))
        edge = float(np.mean(self.lattice.spacing_mm))
        return Content(
            tissues=course.anatomy.tissues(self.lattice, edge_mm=edge),
            gad=course.gad,
            mimics=course.mimics,
            chronic=course.chronic,
            vessels=course.vessels,
        )

    def _mask(self, blobs: Sequence[Blob]) -> NDArray[np.bool_]:
        mask = np.zeros(self.lattice.shape, np.bool_)
        for blob in blobs:
            blob.paint_mask(mask, self.lattice)
        return mask


@dataclass(frozen=True)
class _Course:
    """A patient up to some session."""

    anatomy: Anatomy
    white_matter: WhiteMatter
    vessels: tuple[Tube, ...]
    chronic: tuple[Blob, ...]
    gad: tuple[Blob, ...] = ()
    mimics: tuple[Blob, ...] = ()


# The scans of a patient are mostly asked for together.
@lru_cache(maxsize=16)
def _course(seed: int, patient: int, counts: tuple[int, ...], gap_mm: float) -> _Course:
    """The disease of a patient, whose sessions so far had these numbers of new lesions."""
    if not counts:
        return _healthy_or_not(seed, patient, gap_mm)
    before = _course(seed, patient, counts[:-1], gap_mm)
    rng = _stream(seed, _LESIONS, patient, len(counts) - 1)
    chronic = before.chronic + tuple(aged(blob, rng) for blob in before.gad)
    gad = before.white_matter.placed(gad_lesions(rng, counts[-1]), rng, gap_mm=gap_mm)
    alike = before.white_matter.placed(mimics(rng), rng, gap_mm=gap_mm, beside=gad)
    return replace(before, chronic=chronic, gad=gad, mimics=alike)


def _healthy_or_not(seed: int, patient: int, gap_mm: float) -> _Course:
    """A patient before the first session."""
    rng = _stream(seed, _PATIENT, patient)
    anatomy = Anatomy.drawn(rng)
    white_matter = WhiteMatter(anatomy, rng)
    vessels = (*long_vessels(rng, anatomy), *short_vessels(rng, anatomy))
    return _Course(anatomy, white_matter, vessels, white_matter.placed(chronic_lesions(rng), rng, gap_mm=gap_mm))


def _triple(shape: Sequence[int]) -> tuple[int, int, int]:
    """Plain numbers, so that equal shapes are equal; the lattice refuses what is not three."""
    return cast("tuple[int, int, int]", tuple(int(n) for n in shape))


def _stream(seed: int, *purpose: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=purpose))

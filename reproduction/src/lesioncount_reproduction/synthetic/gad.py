"""The synthetic Gad cohort: patients with one to three annual scans, made from a seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from lesioncount_reproduction.synthetic.anatomy import Anatomy
from lesioncount_reproduction.synthetic.blob import Blob
from lesioncount_reproduction.synthetic.cohort import PlannedVisit, SyntheticCohort
from lesioncount_reproduction.synthetic.counts import Purpose, drawn_counts, drawn_splits, stream
from lesioncount_reproduction.synthetic.lattice import Lattice
from lesioncount_reproduction.synthetic.lesions import aged, chronic_lesions, gad_lesions, mimics
from lesioncount_reproduction.synthetic.placing import WhiteMatter
from lesioncount_reproduction.synthetic.scanner import Content
from lesioncount_reproduction.synthetic.vessels import Tube, long_vessels, short_vessels

_MOST_SESSIONS = 3


@dataclass(frozen=True)
class GadVisit(PlannedVisit):
    """A scan that has not been made yet, and how many lesions it will have."""

    n_lesions: int


class GadCohort(SyntheticCohort[GadVisit]):
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
    visits : tuple of GadVisit
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
        super().__init__(n_patients, seed, shape)
        rng = stream(self.seed, Purpose.COHORT)
        counts = drawn_counts(rng, rng.integers(1, _MOST_SESSIONS + 1, size=self.n_patients))
        splits = drawn_splits(rng, counts)
        self.visits = tuple(
            GadVisit(patient, session, splits[patient], n)
            for patient, sessions in enumerate(counts)
            for session, n in enumerate(sessions)
        )
        self._counts = tuple(counts)

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

    def content(self, visit: GadVisit) -> Content:
        """What a scan shows, in millimetres and without faults of the scanner."""
        course = self._course(visit)
        return Content(
            tissues=course.anatomy.tissues(self.places(visit), edge_mm=self._edge_mm),
            gad=course.gad,
            mimics=course.mimics,
            chronic=course.chronic,
            vessels=course.vessels,
        )

    def lesions(self, visit: GadVisit) -> dict[int, Blob]:
        """The enhancing lesions of a scan by their numbers, which say nothing about other scans."""
        return dict(enumerate(self._course(visit).gad, start=1))

    def places(self, visit: GadVisit) -> Lattice:  # noqa: ARG002 - the head lies in the same place at each visit
        """Where in the head the voxels of a scan are."""
        return self.lattice

    def acquisition(self, visit: GadVisit) -> np.random.Generator:
        """The random numbers of the scanner."""
        return stream(self.seed, Purpose.ACQUISITION, visit.patient, visit.session)

    def _course(self, visit: GadVisit) -> _Course:
        counts = self._counts[visit.patient][: visit.session + 1]
        return _course(self.seed, visit.patient, counts, self._gap_mm)


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
    rng = stream(seed, Purpose.LESIONS, patient, len(counts) - 1)
    chronic = before.chronic + tuple(aged(blob, rng) for blob in before.gad)
    gad = before.white_matter.placed(gad_lesions(rng, counts[-1]), rng, gap_mm=gap_mm)
    alike = before.white_matter.placed(mimics(rng), rng, gap_mm=gap_mm, beside=gad)
    return replace(before, chronic=chronic, gad=gad, mimics=alike)


def _healthy_or_not(seed: int, patient: int, gap_mm: float) -> _Course:
    """A patient before the first session."""
    rng = stream(seed, Purpose.PATIENT, patient)
    anatomy = Anatomy.drawn(rng)
    white_matter = WhiteMatter(anatomy, rng)
    vessels = (*long_vessels(rng, anatomy), *short_vessels(rng, anatomy))
    return _Course(anatomy, white_matter, vessels, white_matter.placed(chronic_lesions(rng), rng, gap_mm=gap_mm))

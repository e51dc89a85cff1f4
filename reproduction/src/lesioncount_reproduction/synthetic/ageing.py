"""The ageing cohort: patients whose lesions appear, grow, shrink and vanish from session to session."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from lesioncount.errors import CohortError
from lesioncount_reproduction.synthetic.blob import Blob
from lesioncount_reproduction.synthetic.changes import Changes
from lesioncount_reproduction.synthetic.cohort import PlannedVisit, SyntheticCohort
from lesioncount_reproduction.synthetic.counts import Purpose, drawn_splits, stream
from lesioncount_reproduction.synthetic.lattice import Places
from lesioncount_reproduction.synthetic.lifetimes import Plan
from lesioncount_reproduction.synthetic.motion import Motion, MovedLattice
from lesioncount_reproduction.synthetic.placing import Room
from lesioncount_reproduction.synthetic.scanner import Content
from lesioncount_reproduction.synthetic.stages import Stage, first_stage, next_stage, patient_before

# More sessions than any trial has; a course is made from its beginning.
_MOST_SESSIONS = 50

# Further away, it is another place of the head that is seen.
_MOST_MISREGISTRATION_MM = 20.0


class AgeingCohort(SyntheticCohort[PlannedVisit]):
    """Scans of patients at several sessions, with the truth of what has changed between them.

    Lesions are those of `GadCohort`, and networks that find those find these; but here they stay: at the next session,
    most still enhance, a little brighter or fainter, some have grown, shrunk or vanished, and others are new. Vessels
    and look-alikes mostly stay as well; noise, bias and contrast are drawn anew. From the second session on, the head
    lies a little otherwise, and the header does not say so.

    A patient is the same whatever the number of patients, and whatever the misregistration is.

    Parameters
    ----------
    n_patients : int
    seed : int
    shape : tuple of int, default (24, 48, 40)
        Voxels along z, y, x. They always fill the same field of view: other shapes show the same disease.
    n_sessions : int, default 2
        Of each patient.
    misregistration_mm : float, default 0.5
        How far the head has moved since the first session, 50 mm from its centre: root of the mean square.

    Attributes
    ----------
    visits : tuple of PlannedVisit
        The scans, before they are made.

    Examples
    --------
    >>> cohort = AgeingCohort(3, seed=1)
    >>> [cohort.visits[i].session_label for i in cohort.pairs[0]]
    ['01', '02']
    >>> counts = cohort.changes(*cohort.pairs[0]).counts
    >>> counts["n_before_all"] - counts["n_gone_all"] + counts["n_new_all"] == counts["n_after_all"]
    True
    """

    def __init__(
        self,
        n_patients: int,
        seed: int = 0,
        shape: tuple[int, int, int] = (24, 48, 40),
        *,
        n_sessions: int = 2,
        misregistration_mm: float = 0.5,
    ) -> None:
        super().__init__(n_patients, seed, shape)
        _check(n_sessions, misregistration_mm)
        self.n_sessions, self.misregistration_mm = int(n_sessions), float(misregistration_mm)
        counts = [(_plan(self.seed, patient).n_first,) for patient in range(self.n_patients)]
        splits = drawn_splits(stream(self.seed, Purpose.AGEING_COHORT), counts)
        self.visits = tuple(
            PlannedVisit(patient, session, splits[patient])
            for patient in range(self.n_patients)
            for session in range(self.n_sessions)
        )

    def __repr__(self) -> str:
        """How to make it, and its size."""
        made_from = f"{self.n_patients} patients, seed {self.seed}, shape {self.lattice.shape}"
        return f"<AgeingCohort of {made_from}, {self.misregistration_mm:g} mm misregistration: {len(self)} scans>"

    @property
    def provenance(self) -> dict[str, Any]:
        """That it is synthetic, and how to make it again."""
        shape = " ".join(map(str, self.lattice.shape))
        ageing = f"--ageing --sessions {self.n_sessions} --misregistration {self.misregistration_mm:g}"
        options = f"--patients {self.n_patients} --seed {self.seed} --shape {shape} {ageing}"
        return {
            "Name": "Synthetic ageing cohort of lesioncount",
            "Synthetic": True,
            "Seed": self.seed,
            "Patients": self.n_patients,
            "Sessions": self.n_sessions,
            "MisregistrationMillimetres": self.misregistration_mm,
            "Shape": list(self.lattice.shape),
            "Command": f"lesioncount synthesize -o FOLDER {options}",
        }

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Positions of a scan and of the next one of the same patient."""
        following = zip(self.visits, self.visits[1:], strict=False)
        return tuple((i, i + 1) for i, (one, other) in enumerate(following) if one.patient == other.patient)

    def changes(self, before: int, after: int, /) -> Changes:
        """What has changed between two scans of a patient, which are given by their positions."""
        first, second = self.visits[before], self.visits[after]
        if first.patient != second.patient or first.session >= second.session:
            raise CohortError(
                f"Expected two scans of a patient, the earlier one first, but got session {first.session_label} of "
                f"patient {first.patient_label} and session {second.session_label} of patient {second.patient_label}."
            )
        moved = self._motion(first).distance_mm(self._motion(second))
        return Changes.between(self.lesions(first), self.lesions(second), self.lattice, misregistration_mm=moved)

    def lesions(self, visit: PlannedVisit) -> dict[int, Blob]:
        """The enhancing lesions of a scan, where they lie in it, by their numbers, the same at all sessions."""
        motion = self._motion(visit)
        return {lesion.number: motion.blob(lesion.blob) for lesion in self._stage(visit).seen()}

    def places(self, visit: PlannedVisit) -> Places:
        """Where in the head the voxels of a scan are."""
        motion = self._motion(visit)
        return self.lattice if motion.is_none else MovedLattice(self.lattice, motion)

    def content(self, visit: PlannedVisit) -> Content:
        """What a scan shows, in millimetres and without faults of the scanner."""
        motion, stage = self._motion(visit), self._stage(visit)
        mimics = (replace(blob, amplitude=blob.amplitude * stage.contrast) for blob in stage.mimics)
        vessels = (replace(tube, amplitude=tube.amplitude * stage.contrast) for tube in (*stage.vessels, *stage.pieces))
        return Content(
            tissues=stage.anatomy.tissues(self.places(visit), edge_mm=self._edge_mm),
            gad=tuple(self.lesions(visit).values()),
            mimics=tuple(map(motion.blob, mimics)),
            chronic=tuple(map(motion.blob, stage.chronic)),
            vessels=tuple(map(motion.tube, vessels)),
        )

    def acquisition(self, visit: PlannedVisit) -> np.random.Generator:
        """The random numbers of the scanner."""
        return stream(self.seed, Purpose.AGEING_ACQUISITION, visit.patient, visit.session)

    def _motion(self, visit: PlannedVisit) -> Motion:
        if visit.session == 0:
            return Motion.none()
        rng = stream(self.seed, Purpose.AGEING_MOTION, visit.patient, visit.session)
        return Motion.drawn(rng, self.misregistration_mm)

    def _stage(self, visit: PlannedVisit) -> Stage:
        apart_mm = float(np.linalg.norm(self.lattice.spacing_mm))
        return _stage(self.seed, visit.patient, visit.session, Room(self._gap_mm, apart_mm))


def _plan(seed: int, patient: int) -> Plan:
    return Plan.drawn(stream(seed, Purpose.AGEING_PLAN, patient))


# The scans of a patient are mostly asked for together.
@lru_cache(maxsize=16)
def _stage(seed: int, patient: int, session: int, room: Room) -> Stage:
    """A patient at some session; at -1, before the first."""
    if session < 0:
        return patient_before(_plan(seed, patient), stream(seed, Purpose.AGEING_PATIENT, patient), room)
    before = _stage(seed, patient, session - 1, room)
    rng = stream(seed, Purpose.AGEING_LESIONS, patient, session)
    return next_stage(before, rng, room) if session else first_stage(before, rng, room)


def _check(n_sessions: int, misregistration_mm: float) -> None:
    if not 1 <= n_sessions <= _MOST_SESSIONS:
        raise CohortError(f"Expected 1 to {_MOST_SESSIONS} sessions, but got {n_sessions}.")
    if not 0 <= misregistration_mm <= _MOST_MISREGISTRATION_MM:
        raise CohortError(
            f"Expected a misregistration of 0 to {_MOST_MISREGISTRATION_MM:g} mm, but got {misregistration_mm:g}."
        )

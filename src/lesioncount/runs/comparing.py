"""One course → its record: what has changed from each session to the next."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lesioncount.changes.counted_map import CountedMap
from lesioncount.changes.lesion_changes import LesionChanges, changes_between
from lesioncount.changes.lineages import Lineages
from lesioncount.cohort.courses import Course
from lesioncount.cohort.item import FileFacts
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.results.course_answers import answers_of, table_of
from lesioncount.results.course_record import ChangeCount, CourseRecord, PairRecord, SessionRecord
from lesioncount.results.course_settings import KINDS, ChangeSettings
from lesioncount.results.lesion_rows import lesion_rows
from lesioncount.results.record import MapFacts
from lesioncount.results.scan_count import COMPONENT_THRESHOLD, THRESHOLDS, CourseMaps, SessionMap
from lesioncount.results.scan_numbers import CONFIDENCE, CandidateNumbers, CountNumbers, ScanNumbers
from lesioncount.results.session_rows import Neighbour, followed
from lesioncount.runs.components import components_changed
from lesioncount.trust.candidate_table import Counted


def compared(course: Course, maps: CourseMaps, files: tuple[FileFacts, ...], settings: ChangeSettings) -> CourseRecord:
    """The record of a course whose maps have been read."""
    counted = [one.counted for one in maps.sessions]
    steps = [
        changes_between(before, after, tolerance_mm=settings.tolerance_mm, coupling=settings.coupling)
        for before, after in itertools.pairwise(counted)
    ]
    candidates = [one.count.candidates for one in counted]
    lineages = Lineages.follow(candidates, steps[0].tolerance_mm) if len(counted) > 2 else steps[0].lineages
    sessions = tuple(
        _session(course.sessions[place], maps.sessions[place], files[place], lineages.of[place], _around(steps, place))
        for place in range(len(counted))
    )
    pairs = tuple(
        PairRecord(
            course.pair_name(place),
            place,
            place + 1,
            step.tolerance_mm,
            _counts(step, counted[place:], settings),
            answers_of(step, settings),
        )
        for place, step in enumerate(steps)
    )
    return CourseRecord(
        course.name,
        participant=course.participant,
        compared_with=settings.recorded,
        sessions=sessions,
        pairs=pairs,
        notes=maps.notes,
        paths=tuple(one.path for one in files),
    )


def _around(steps: list[LesionChanges], place: int) -> list[Neighbour]:
    """What the sessions before and after say of the candidates of a session."""
    found = []
    if place > 0:
        found.append(Neighbour.before(steps[place - 1]))
    if place < len(steps):
        found.append(Neighbour.after(steps[place]))
    return found


def _session(
    name: str, session: SessionMap, files: FileFacts, lineages: NDArray[np.int64], around: list[Neighbour]
) -> SessionRecord:
    count = session.count
    return SessionRecord(
        name,
        files,
        MapFacts.of(count),
        session.is_resampled,
        count.warnings,
        followed(lesion_rows([count], None), lineages, around),
        count.result.candidates.n_dropped,
    )


def _counts(step: LesionChanges, maps: list[CountedMap], settings: ChangeSettings) -> Mapping[Counted, ChangeCount]:
    components = components_changed(maps[0], maps[1], THRESHOLDS, settings.protocol)
    raw: dict[Counted, PoissonBinomial] = {"new": step.new, "gone": step.gone, "persisting": step.persisting}
    return {kind: _count(kind, raw[kind], step, components[kind], settings) for kind in KINDS}


def _count(
    kind: Counted, raw: PoissonBinomial, step: LesionChanges, components: tuple[int, ...], settings: ChangeSettings
) -> ChangeCount:
    fit = settings.fit(kind)
    of, table = step.before if kind == "gone" else step.after, table_of(step, kind, *(fit.features if fit else ()))
    corrected = None if fit is None else fit.calibration.distribution(table)
    guaranteed = None
    if settings.conformal and fit is not None and fit.conformal is not None:
        guaranteed = fit.conformal.interval(table, CONFIDENCE)
    volume = float(of.candidates.volume_mm3.sum())
    numbers = ScanNumbers(
        CandidateNumbers(
            len(of.candidates),
            components[THRESHOLDS.index(COMPONENT_THRESHOLD)],
            None if np.isnan(volume) else volume,
        ),
        CountNumbers.of(raw),
        None if corrected is None else CountNumbers.of(corrected),
        None if fit is None else fit.fingerprint,
        guaranteed,
    )
    return ChangeCount(
        numbers,
        tuple(raw.pmf().tolist()),
        () if corrected is None else tuple(corrected.pmf().tolist()),
        components,
    )

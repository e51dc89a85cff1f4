"""One course → its record: what has changed from each session to the next, and what subtracting maps gives."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lesioncount.candidates import Candidates, find_candidates
from lesioncount.changes.counted_map import CountedMap
from lesioncount.changes.lesion_changes import LesionChanges, changes_between
from lesioncount.changes.lineages import Lineages
from lesioncount.cohort.courses import Course
from lesioncount.cohort.item import FileFacts
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.protocol import CountingProtocol
from lesioncount.regions.nearby import axes_in_memory
from lesioncount.results.answers import answers_of_changes, table_of
from lesioncount.results.lesion_rows import followed, lesion_rows
from lesioncount.results.record import CHANGES, FORMAT_VERSION, Record
from lesioncount.results.record_parts import Count, MapFacts, Pair, SessionRecord
from lesioncount.results.recorded import KINDS
from lesioncount.results.scan_count import COMPONENT_THRESHOLD, THRESHOLDS, CourseMaps, SessionMap
from lesioncount.results.scan_numbers import CONFIDENCE, CandidateNumbers, CountNumbers, ScanNumbers
from lesioncount.results.settings import ChangeSettings
from lesioncount.runs.detection_changes import changes_of_detections, detection_links, detections_changed
from lesioncount.trust.candidate_table import Counted


def compared(course: Course, maps: CourseMaps, files: tuple[FileFacts, ...], settings: ChangeSettings) -> Record:
    """The record of a course whose maps have been read."""
    counted = [one.counted for one in maps.sessions]
    steps = [_changes(before, after, settings) for before, after in itertools.pairwise(counted)]
    candidates = [one.count.candidates for one in counted]
    links = detection_links if settings.protocol.has_detections else None
    lineages = Lineages.follow(candidates, steps[0].tolerance_mm, links)
    around = zip([None, *steps], [*steps, None], strict=True)
    sessions = tuple(
        _session(course.sessions[place], maps.sessions[place], files[place], lineages.of[place], *steps_around)
        for place, steps_around in enumerate(around)
    )
    pairs = tuple(
        Pair(
            course.pair_name(place),
            place,
            place + 1,
            step.tolerance_mm,
            *_counts(step, counted[place:], settings),
            answers_of_changes(step, settings),
        )
        for place, step in enumerate(steps)
    )
    return Record(
        FORMAT_VERSION,
        CHANGES,
        patient=course.name,
        participant_id=course.participant,
        status="ok",
        paths=tuple(one.path for one in files),
        settings=settings.recorded,
        notes=(*course.notes, *maps.notes),
        pairs=pairs,
        sessions=sessions,
    )


def _changes(before: CountedMap, after: CountedMap, settings: ChangeSettings) -> LesionChanges:
    if settings.protocol.has_detections:
        return changes_of_detections(before.count, after.count, settings)
    return changes_between(before, after, tolerance_mm=settings.tolerance_mm, coupling=settings.coupling)


def _session(
    name: str,
    session: SessionMap,
    files: FileFacts,
    lineages: NDArray[np.int64],
    before: LesionChanges | None,
    after: LesionChanges | None,
) -> SessionRecord:
    count = session.count
    return SessionRecord(
        name,
        files,
        MapFacts.of(count),
        session.is_resampled,
        count.warnings,
        count.result.candidates.n_dropped,
        followed(lesion_rows([count], None), lineages, before=before, after=after),
    )


def _counts(step: LesionChanges, maps: list[CountedMap], settings: ChangeSettings) -> tuple[Count, Count, Count]:
    """Of new, gone and persisting lesions."""
    if settings.protocol.has_detections:
        components = dict(detections_changed(step, THRESHOLDS))
    else:
        components = dict(components_changed(maps[0], maps[1], THRESHOLDS, settings.protocol))
    raw: dict[Counted, PoissonBinomial] = {"new": step.new, "gone": step.gone, "persisting": step.persisting}
    new, gone, persisting = (_count(kind, raw[kind], step, components[kind], settings) for kind in KINDS)
    return new, gone, persisting


def _count(
    kind: Counted, raw: PoissonBinomial, step: LesionChanges, components: tuple[int, ...], settings: ChangeSettings
) -> Count:
    fit = settings.fit(kind)
    of, table = step.before if kind == "gone" else step.after, table_of(step, kind, *(fit.features if fit else ()))
    corrected = None if fit is None else fit.calibration.distribution(table)
    guaranteed = fit.guaranteed(table, CONFIDENCE) if settings.conformal and fit is not None else None
    volume = float(of.candidates.volume_mm3.sum())
    numbers = ScanNumbers.of(
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
    return Count(
        numbers,
        tuple(raw.pmf().tolist()),
        () if corrected is None else tuple(corrected.pmf().tolist()),
        components,
    )


def components_changed(
    before: CountedMap, after: CountedMap, thresholds: Sequence[float], protocol: CountingProtocol
) -> Mapping[Counted, tuple[int, ...]]:
    """Components of what is above a threshold after and not before, before and not after, and at both times.

    Parameters
    ----------
    before, after : CountedMap
        Of probabilities, as floating-point numbers.
    thresholds : sequence of float
        The lowest first.
    protocol : CountingProtocol
        What is connected, and the smallest size.
    """
    found = before.count.candidates, after.count.candidates
    box = _box(found, protocol, thresholds)
    then, now = (_levels(one, box, thresholds) for one in (before, after))
    always = np.minimum(then, now)
    components, voxel = protocol.components_above(protocol.threshold), found[1].voxel_size
    edges = None if voxel is None else voxel.edges_mm

    def count(mask: NDArray[np.bool_]) -> int:
        return len(find_candidates(mask, protocol=components, spacing_mm=edges, warn=False))

    return {
        "new": tuple(count((now > at) ^ (always > at)) for at in range(len(thresholds))),
        "gone": tuple(count((then > at) ^ (always > at)) for at in range(len(thresholds))),
        "persisting": tuple(count(always > at) for at in range(len(thresholds))),
    }


def _box(found: Sequence[Candidates], protocol: CountingProtocol, thresholds: Sequence[float]) -> tuple[slice, ...]:
    """What holds all voxels above the thresholds: the boxes of all candidates; everything, if some were dropped."""
    n = len(found[0].shape)
    boxes = np.concatenate([one.bbox for one in found])
    if len(boxes) == 0 or min(thresholds) < protocol.threshold or any(one.n_dropped for one in found):
        return (slice(None),) * n
    return tuple(slice(int(boxes[:, axis].min()), int(boxes[:, n + axis].max())) for axis in range(n))


def _levels(counted: CountedMap, box: tuple[slice, ...], thresholds: Sequence[float]) -> NDArray[np.uint8]:
    """How many thresholds each voxel is above: bytes are compared much faster than numbers, and few are not 0."""
    values: NDArray[np.floating] = counted.voxels[box]
    if counted.inside is not None:
        values = np.where(counted.inside[box], values, 0.0)
    axes = axes_in_memory(values)
    in_memory = values.transpose(axes)
    above = in_memory > thresholds[0]
    levels = np.zeros(above.shape, dtype=np.uint8)
    # Thresholds in the precision of the map, as in a comparison with it.
    levels[above] = np.searchsorted(np.array(thresholds, dtype=values.dtype), in_memory[above])
    return levels.transpose(np.argsort(axes))

"""Label maps of a course: each lesion with the same number in all sessions, and what has become of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lesioncount.cohort.courses import Course, session_name
from lesioncount.files.nifti import nifti_bytes
from lesioncount.folder.output import OutputFolder
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.record import Record
from lesioncount.results.record_files import shard_of
from lesioncount.results.record_parts import Pair
from lesioncount.results.scan_count import CourseMaps

# Values of the map of changes.
NEW, PERSISTING, GONE = 1, 2, 3

# The folder of the parts of the page that shows a comparison.
SECTIONS = "changes"

LABEL_ENDINGS = _LINEAGES, _CHANGES = "_lineages.nii.gz", "_changes.nii.gz"


def label_names(course: Course) -> tuple[str, ...]:
    """The label maps of a course: one for each session, and one for each pair of sessions."""
    n = len(course.scans)
    lineages = (f"{course.session_name(place)}{_LINEAGES}" for place in range(n))
    return (*lineages, *(f"{course.pair_name(place)}{_CHANGES}" for place in range(n - 1)))


def names_of_record(record: Record) -> tuple[str, ...]:
    """What may have been written of a course when its record was: label maps, and its part of the page."""
    sessions = (session_name(record.name, one.session) for one in record.sessions)
    return (
        f"{SECTIONS}/{record.name}.js",
        f"{SECTIONS}/{shard_of(record.name)}/{record.name}.js",
        *(f"{one}{_LINEAGES}" for one in sessions),
        *(f"{pair.name}{_CHANGES}" for pair in record.pairs),
    )


def write_labels(folder: OutputFolder, course: Course, maps: CourseMaps, record: Record) -> None:
    """Write them, on the grid of the last session."""
    sessions = [
        _painted(maps, place, [lesion.lineage for lesion in session.lesions])
        for place, session in enumerate(record.sessions)
    ]
    pairs = [_changes(maps, record, pair) for pair in record.pairs]
    for name, labels in zip(label_names(course), (*sessions, *pairs), strict=True):
        with folder.replacing(name) as temporary:
            temporary.write_bytes(nifti_bytes(labels, maps.grid, intent="label"))


def _changes(maps: CourseMaps, record: Record, pair: Pair) -> NDArray[np.unsignedinteger]:
    """New and persisting candidates of the later session, and between them those of the earlier that are gone."""
    after = _painted(maps, pair.after, [_of_later(lesion) for lesion in record.sessions[pair.after].lesions])
    before = _painted(maps, pair.before, [_of_earlier(lesion) for lesion in record.sessions[pair.before].lesions])
    return np.where(after > 0, after, before)


def _of_later(lesion: LesionRow) -> int:
    return NEW if (lesion.p_new or 0.0) > (lesion.p_persisting or 0.0) else PERSISTING


def _of_earlier(lesion: LesionRow) -> int:
    """Gone, if it is more probably gone than still there."""
    return GONE if 2 * (lesion.p_gone or 0.0) > lesion.existence else 0


def _painted(maps: CourseMaps, place: int, values: Sequence[int]) -> NDArray[np.unsignedinteger]:
    labels = maps.sessions[place].count.result.candidates.label_map()
    numbers = np.array([0, *values])
    painted: NDArray[np.unsignedinteger] = numbers.astype(np.uint16 if numbers.max() < 1 << 16 else np.uint32)[labels]
    return painted

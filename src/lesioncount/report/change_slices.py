"""The maps of a course → pictures of its lesions at both times: the same planes of the same place, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from lesioncount.changes.resampling import resampled
from lesioncount.cohort.item import ScanFiles
from lesioncount.errors import ShapeError
from lesioncount.files import open_map
from lesioncount.report.backgrounds import (
    Background,
    Layer,
    Slices,
    behind,
    cut_or_why,
    image_on,
    in_colours,
    in_grey,
    shades_of,
)
from lesioncount.report.lineages import LineageChange
from lesioncount.report.pictures import Plane
from lesioncount.report.planes import window_of
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.record import Record
from lesioncount.results.recorded import Recorded
from lesioncount.results.scan_count import CourseMaps
from lesioncount.results.settings import ChangeSettings
from lesioncount.runs.file_counts import MOST_SHADES
from lesioncount.runs.session_maps import read_maps
from lesioncount.trust.candidate_table import Counted


@dataclass(frozen=True, eq=False)
class Pictured:
    """A lesion to be shown: from which session to the next, what has become of it, and why it was chosen."""

    before: int
    change: LineageChange
    kind: Counted

    @property
    def lesion(self) -> LesionRow:
        """What a window is laid around: where it is new or gone, in a box around all candidates of both times."""
        boxes = [one.bbox.split() for seen in (self.change.before, self.change.after) for one in seen.candidates]
        corners = np.array(boxes, dtype=int).reshape(len(boxes), 2, -1)
        around = [*corners[:, 0].min(axis=0), *corners[:, 1].max(axis=0)]
        lesion = self.change.peak(self.kind)
        at = {"new": lesion.new_at, "gone": lesion.gone_at}.get(self.kind)
        i, j, *k = lesion.peak if at is None else map(int, at.split())
        return replace(lesion, peak_i=i, peak_j=j, peak_k=k[0] if k else None, bbox=" ".join(map(str, around)))


def cut_changes(
    record: Record,
    lesions: Sequence[Pictured],
    images: Sequence[Path | str | None],
    maps: CourseMaps | None = None,
) -> Slices:
    """Cut the planes through lesions of a course at both times; what is wrong with its files ends up as a note.

    Parameters
    ----------
    record : Record
    lesions : sequence of Pictured
    images : sequence of path, text or None
        What to show of each session; a text says why there is none, though images were asked for.
    maps : CourseMaps, optional
        What was just compared. Default: the maps are read again, and must be the same.
    """
    if not lesions:
        return Slices()
    if math.prod(record.sessions[-1].map.shape) > MOST_SHADES:
        return Slices(notes=(f"No pictures, because the maps have more than {MOST_SHADES:,} voxels.",))
    cut = partial(_cut, record, lesions, images, maps)
    return cut_or_why(cut, "the maps can no longer be read as they were compared")


def _cut(
    record: Record, lesions: Sequence[Pictured], images: Sequence[Path | str | None], maps: CourseMaps | None
) -> Slices:
    maps = _read_again(record) if maps is None else maps
    grid = maps.grid
    windows = [window_of(one.lesion, grid.shape, grid.spacing_mm) for one in lesions]
    cut: list[list[tuple[Plane, ...]]] = [[] for _ in lesions]
    on_image, notes = [], []
    # Session by session: only the shades and labels of one are held.
    for place, session in enumerate(maps.sessions):
        shown, note = behind(images[place], partial(_image, record, place, maps), in_colours(session.counted.voxels))
        on_image.append(shown.is_image)
        notes += [] if note is None else [f"Session {record.sessions[place].session}: {note}"]
        layer = Layer(shown, _painted(record, place, maps), grid, session.count.result.candidates.bbox)
        for lesion, window, planes in zip(lesions, windows, cut, strict=True):
            if place in (lesion.before, lesion.before + 1):
                planes.append(layer.planes(window, lesion.change.lineage))
    why = grid.why_unplaced if grid.affine is None else None
    return Slices(tuple(map(tuple, cut)), tuple(on_image), why, tuple(dict.fromkeys(notes)))


def _painted(record: Record, place: int, maps: CourseMaps) -> NDArray[np.int32]:
    """The candidates of a session, each with the number of its lineage."""
    numbers = np.array([0, *(one.lineage for one in record.sessions[place].lesions)], dtype=np.int32)
    painted: NDArray[np.int32] = numbers[maps.sessions[place].count.result.candidates.label_map()]
    return painted


def _image(record: Record, place: int, maps: CourseMaps, path: Path) -> Background:
    """An image, which lies on the grid of all sessions or on that of its map, if that was resampled."""
    try:
        return in_grey(maps.grid, path)
    except ShapeError:
        if not maps.sessions[place].is_resampled:
            raise
    own = open_map(record.sessions[place].files.path, **_settings(record).reading).grid
    # Only maps whose place is known are resampled.
    affines = cast("tuple[NDArray[np.float64], NDArray[np.float64]]", (own.affine, maps.grid.affine))
    return shades_of(resampled(image_on(own, path).values(), affines[0], maps.grid.shape, affines[1])[0])


def _read_again(record: Record) -> CourseMaps:
    """The maps of a course, which must not have changed."""
    scans = []
    for session in record.sessions:
        files = session.files
        scan = ScanFiles(record.name, Path(files.path), None if files.mask is None else Path(files.mask))
        files.check_unchanged()
        scans.append(scan)
    return read_maps(scans, _settings(record), [session.session for session in record.sessions])


def _settings(record: Record) -> ChangeSettings:
    """As far as the reading of maps depends on them."""
    how = record.settings or Recorded()
    return ChangeSettings(how.protocol, how.channel, how.scale, how.logits)

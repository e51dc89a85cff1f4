"""The maps of a course → pictures of its lesions at both times: the same planes of the same place, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from lesioncount.changes.resampling import resampled
from lesioncount.cohort.item import FileFacts, ScanFiles
from lesioncount.errors import MapFileError, ShapeError
from lesioncount.files import open_map
from lesioncount.files.geometry import VoxelGrid, check_same_grid
from lesioncount.report.backgrounds import UNREADABLE, Background, behind, image_on, reason, shaded
from lesioncount.report.lineages import LineageChange
from lesioncount.report.planes import Plane, View, planes_through
from lesioncount.report.windows import Window, window_of
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.record import Record
from lesioncount.results.recorded import Recorded
from lesioncount.results.scan_count import CourseMaps, SessionMap
from lesioncount.results.settings import ChangeSettings
from lesioncount.runs.file_counts import MOST_SHADES
from lesioncount.runs.session_maps import read_maps
from lesioncount.trust.candidate_table import Counted

# The planes through a place before and after.
BothTimes = tuple[tuple[Plane, Plane], ...]


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


@dataclass(frozen=True)
class ChangeSlices:
    """The pictures of a course.

    Attributes
    ----------
    planes : tuple of BothTimes
        Of each lesion that was to be shown; none, if there are no pictures.
    on_image : tuple of bool
        Whether those of each session show the image, not the map.
    why_unplaced : str or None
        Why it is not known how the patient lies in the maps, where it is not.
    notes : tuple of str
        What could not be done, and why.
    """

    planes: tuple[BothTimes, ...] = ()
    on_image: tuple[bool, ...] = ()
    why_unplaced: str | None = None
    notes: tuple[str, ...] = field(default=())


def cut_changes(
    record: Record,
    lesions: Sequence[Pictured],
    images: Sequence[Path | str | None],
    maps: CourseMaps | None = None,
) -> ChangeSlices:
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
        return ChangeSlices()
    if math.prod(record.sessions[-1].map.shape) > MOST_SHADES:
        return ChangeSlices(notes=(f"No pictures, because the maps have more than {MOST_SHADES:,} voxels.",))
    try:
        return _cut(record, lesions, images, _read_again(record) if maps is None else maps)
    except UNREADABLE as error:
        return ChangeSlices(
            notes=(f"No pictures, because the maps can no longer be read as they were compared: {reason(error)}",)
        )


def _cut(
    record: Record, lesions: Sequence[Pictured], images: Sequence[Path | str | None], maps: CourseMaps
) -> ChangeSlices:
    grid = maps.grid
    windows = [window_of(one.lesion, grid.shape, grid.spacing_mm) for one in lesions]
    cut: list[list[tuple[Plane, ...]]] = [[] for _ in lesions]
    on_image, notes = [], []
    # Session by session: only the shades and labels of one are held.
    for place, session in enumerate(maps.sessions):
        shown, note = _behind(record, place, session, grid, images[place])
        on_image.append(shown.is_image)
        notes += [] if note is None else [f"Session {record.sessions[place].session}: {note}"]
        labels = _painted(session, [one.lineage for one in record.sessions[place].lesions])
        for lesion, window, planes in zip(lesions, windows, cut, strict=True):
            if place in (lesion.before, lesion.before + 1):
                planes.append(_planes(shown, labels, session, window, lesion.change.lineage))
    both = tuple(tuple(zip(before, after, strict=True)) for before, after in cut)
    why = grid.why_unplaced if grid.affine is None else None
    return ChangeSlices(both, tuple(on_image), why, tuple(dict.fromkeys(notes)))


def _planes(
    shown: Background, labels: NDArray[Any], session: SessionMap, window: Window, lineage: int
) -> tuple[Plane, ...]:
    grid, candidates = session.count.source.grid, session.count.result.candidates
    near = None if window.is_all_of(grid.shape) else window.box
    return planes_through(
        shown.whole, labels, window.peak, view=View.of(grid.affine), spacing_mm=grid.spacing_mm,
        palette=shown.palette, label=lineage, near=near, boxes=candidates.bbox,
    )  # fmt: skip


def _painted(session: SessionMap, lineages: Sequence[int]) -> NDArray[np.int32]:
    """The candidates of a session, each with the number of its lineage."""
    numbers = np.array([0, *lineages], dtype=np.int32)
    painted: NDArray[np.int32] = numbers[session.count.result.candidates.label_map()]
    return painted


def _behind(
    record: Record, place: int, session: SessionMap, grid: VoxelGrid, image: Path | str | None
) -> tuple[Background, str | None]:
    shades = shaded(session.counted.voxels, 0.0, 1.0)
    if not session.is_resampled:
        return behind(shades, image, partial(image_on, grid))
    return behind(shades, image, partial(_resampled, _own_grid(record, place), grid))


def _own_grid(record: Record, place: int) -> VoxelGrid:
    """The grid that a map has itself."""
    return open_map(record.sessions[place].files.path, **_settings(record).reading).grid


def _resampled(own: VoxelGrid, grid: VoxelGrid, path: Path) -> NDArray[Any]:
    """An image, which lies on the grid of all sessions or on that of its map, which was resampled as well."""
    image = open_map(path)
    try:
        check_same_grid(grid, image.grid, "the image")
    except ShapeError:
        check_same_grid(own, image.grid, "the image")
        # Only maps whose place is known are resampled.
        affines = cast("tuple[NDArray[np.float64], NDArray[np.float64]]", (own.affine, grid.affine))
        return resampled(image.values(), affines[0], grid.shape, affines[1])[0]
    return image.values()


def _read_again(record: Record) -> CourseMaps:
    """The maps of a course, which must not have changed."""
    scans = []
    for session in record.sessions:
        files = session.files
        scan = ScanFiles(record.name, Path(files.path), None if files.mask is None else Path(files.mask))
        if not FileFacts.of(scan).is_same_content(files):
            raise MapFileError(f"{files.path} or its mask has changed. Compare again.")
        scans.append(scan)
    return read_maps(scans, _settings(record), [session.session for session in record.sessions])


def _settings(record: Record) -> ChangeSettings:
    """As far as the reading of maps depends on them."""
    how = record.settings or Recorded()
    return ChangeSettings(how.protocol, how.channel, how.scale, how.logits)

"""The maps of a course, in memory and on one grid: that of the last session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lesioncount.candidates import find_candidates
from lesioncount.changes.counted_map import CountedMap
from lesioncount.changes.resampling import resampled, same_place
from lesioncount.cohort.item import ScanFiles
from lesioncount.errors import ShapeError
from lesioncount.files import MapSource, open_map, open_mask
from lesioncount.files.geometry import VoxelGrid, check_same_grid
from lesioncount.files.masks import mask_on
from lesioncount.results.count_warnings import EMPTY_MASK, warnings_of
from lesioncount.results.scan_count import COMPONENT_THRESHOLD, CourseMaps, ScanCount, SessionMap
from lesioncount.results.settings import MapSettings

# Below this share of the grid, that one map does not cover another one is worth a word.
_NEARLY_ALL = 0.999


def read_maps(scans: Sequence[ScanFiles], settings: MapSettings, sessions: Sequence[str]) -> CourseMaps:
    """Read the maps of a course, bring them to one grid, and count each."""
    read = [_Read.of(scan, settings) for scan in scans]
    if any(one.inside is not None and not one.inside.any() for one in read):
        raise ShapeError(EMPTY_MASK)
    grid = read[-1].source.grid
    placed = [one.on(grid) for one in read]
    parts = [one.inside for one in placed if one.inside is not None]
    inside = np.logical_and.reduce(parts) if parts else None
    if inside is not None and not inside.any():
        raise ShapeError(
            "Every voxel lies outside the mask or the field of view of some session: nothing is left to compare."
        )
    notes = tuple(note for one, name in zip(placed, sessions, strict=True) for note in one.notes(name))
    return CourseMaps(tuple(_counted(one, grid, inside, settings) for one in placed), notes)


@dataclass(frozen=True, eq=False)
class _Read:
    """A map as it was read, or brought to another grid, and where it is to be looked at; None for everywhere."""

    source: MapSource
    values: NDArray[np.floating]
    inside: NDArray[np.bool_] | None
    largest: float
    is_resampled: bool = False
    covered: float = 1.0

    @classmethod
    def of(cls, scan: ScanFiles, settings: MapSettings) -> _Read:
        source = open_map(scan.path, **settings.reading)
        source.check_scale()
        inside = None if scan.mask is None else mask_on(source.grid, open_mask(scan.mask))
        values = source.probabilities()
        return cls(source, values, inside, float(np.fmax.reduce(values, axis=None)))

    def on(self, grid: VoxelGrid) -> _Read:
        """The same on a grid of the same space."""
        own = self.source.grid
        has_size = own.shape == grid.shape
        if own.affine is None or grid.affine is None or (has_size and len(grid.shape) == 2):
            check_same_grid(grid, own, "the map of an earlier session")
            return self
        if has_size and same_place(own.affine, grid.affine, grid.shape):
            return self
        values = self.values if self.inside is None else np.where(self.inside, self.values, 0.0)
        moved, covered = resampled(values, own.affine, grid.shape, grid.affine)
        share = float(covered.mean())
        if self.inside is not None:
            covered &= resampled(self.inside, own.affine, grid.shape, grid.affine)[0] > 0.5
        return replace(self, values=moved, inside=None if covered.all() else covered, is_resampled=True, covered=share)

    def notes(self, session: str) -> Iterator[str]:
        if self.is_resampled:
            yield f"The map of session {session} has another grid, and was resampled to that of the last session."
        if self.covered < _NEARLY_ALL:
            yield (
                f"The map of session {session} covers {self.covered:.0%} of the last one. Only what all sessions show "
                "was compared."
            )


def _counted(read: _Read, grid: VoxelGrid, inside: NDArray[np.bool_] | None, settings: MapSettings) -> SessionMap:
    protocol = settings.protocol
    counted = CountedMap.of(read.values, protocol=protocol, inside=inside, spacing_mm=grid.voxel_edges_mm)
    components = find_candidates(
        read.values,
        protocol=protocol.components_above(COMPONENT_THRESHOLD),
        mask=inside,
        spacing_mm=grid.voxel_edges_mm,
        warn=False,
    )
    n_voxels = read.values.size if inside is None else int(np.count_nonzero(inside))
    warnings = warnings_of(
        counted.count,
        len(components),
        component_threshold=COMPONENT_THRESHOLD,
        n_voxels=n_voxels,
        largest=read.largest,
        scale=None if settings.logits else settings.scale,
    )
    source = replace(read.source, grid=replace(grid, path=read.source.path))
    return SessionMap(counted, ScanCount(source, counted.count, len(components), tuple(warnings)), read.is_resampled)

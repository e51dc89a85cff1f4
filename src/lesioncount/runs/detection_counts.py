"""A scan of a table of detections → its count, without a map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np

from lesioncount.cohort.item import ScanFiles
from lesioncount.counting import LesionCount
from lesioncount.detections import NEEDS_A_MAP, DetectedCandidates, detected, has_doubles
from lesioncount.errors import MapFileError, ProtocolError
from lesioncount.files import MapSource, open_map
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.masks import read_label_map
from lesioncount.results.count_warnings import UNLISTED, UNPLACED, doubled
from lesioncount.results.scan_count import COMPONENT_THRESHOLD, DETECTIONS, ScanCount
from lesioncount.results.settings import ChangeSettings, Settings
from lesioncount.trust.candidate_table import CandidateTable

# Optional outputs that tables of detections have, too.
_WITHOUT_A_MAP = frozenset({"bids", "dicom"})


def count_table(item: ScanFiles, table: CandidateTable, how: Settings) -> ScanCount:
    """Count the candidates of a scan.

    Parameters
    ----------
    item : ScanFiles
        The scan; its image or its regions say where voxels lie.
    table : CandidateTable
        What a detector has found in it.
    how : Settings
    """
    grid = _grid(item, how)
    regions = None if item.regions is None or how.regions is None else how.regions.on(item.regions, grid)
    candidates = detected(table, how.protocol, grid, regions)
    result = LesionCount.of(candidates, regions)
    source = MapSource(replace(grid, path=item.path), DETECTIONS, np.dtype(np.float64), 0, _no_pieces)
    n_usual = int((candidates.scores > COMPONENT_THRESHOLD).sum())
    return ScanCount(source, result, n_usual, tuple(_warnings(item, table, candidates)))


def check_needs(
    settings: Settings | ChangeSettings, scans: Sequence[ScanFiles], *, mask: str | Path | None = None
) -> None:
    """Raise if detections are to be counted as maps are, or maps as detections; or what is asked for needs a map."""
    are_tables = any(scan.tables for scan in scans)
    if are_tables != settings.protocol.has_detections and scans:
        kind = "detections" if are_tables else "regions or peaks"
        given = "Tables of detections are" if are_tables else "Maps are"
        raise ProtocolError(
            f"{given} counted with a protocol of {kind}, not with one of {settings.protocol.candidates}."
        )
    if not are_tables:
        return
    wanted = ["--mask"] if mask is not None else []
    needing = [name for name in settings.outputs if getattr(settings, name) and name not in _WITHOUT_A_MAP]
    wanted += [f"--write {name.removeprefix('save_')}" for name in needing]
    if wanted:
        raise MapFileError(f"{wanted[0]} needs a map, {NEEDS_A_MAP} Leave it out.")


def _grid(item: ScanFiles, how: Settings) -> VoxelGrid:
    if item.image is not None:
        grid = open_map(item.image).grid
    elif item.regions is not None:
        grid = read_label_map(item.regions).grid
    else:
        return VoxelGrid(item.path, (), spacing_mm=how.spacing_mm)
    return grid if grid.spacing_mm is not None else replace(grid, spacing_mm=how.spacing_mm)


def _warnings(item: ScanFiles, table: CandidateTable, candidates: DetectedCandidates) -> Iterator[str]:
    if not item.is_listed:
        yield UNLISTED
    n = len(candidates) + candidates.n_merged
    if has_doubles(candidates):
        yield doubled(candidates.n_near, n, candidates.protocol.merge_within_mm or 0.0)
    is_merged = candidates.protocol.merge_within_mm != 0
    if len(table) and is_merged and not candidates.is_in_mm:
        yield UNPLACED


def _no_pieces() -> NoReturn:
    raise MapFileError(f"This needs the voxels of a map, {NEEDS_A_MAP}")

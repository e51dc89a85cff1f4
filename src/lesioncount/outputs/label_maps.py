"""Candidates as images: label maps of scans and of courses, and maps of existence."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.cohort.courses import Course, session_name
from lesioncount.cohort.item import ScanFiles
from lesioncount.files import volumes
from lesioncount.files.formats import map_ending
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.nifti import nifti_bytes
from lesioncount.files.zarr_store import level_shapes
from lesioncount.folder.output import OutputFolder
from lesioncount.outputs.label_volumes import (
    LAST_OF_ARRAY,
    LAST_OF_OME,
    label_files,
    ome_label_files,
    remove_store,
    write_labels_into,
)
from lesioncount.outputs.output import Keep, Output, check_not_large, lesions_of
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.record import Record, read_record
from lesioncount.results.record_parts import Pair
from lesioncount.results.scan_count import CourseMaps, ScanCount

# Label maps of scans: an image; of a volume that is never held as a whole, a zarr array; of OME-Zarr, a label image.
_IMAGE, _ARRAY, _OME = "_lesions.nii.gz", "_lesions.zarr", "_lesions.ome.zarr"

# The store that a file is in.
_STORE = re.compile(r"[^/]*_lesions(\.ome)?\.zarr(?=/)")

# Of courses: the lesions of a session, and what has become of them since the one before.
_LINEAGES, _CHANGES = "_lineages.nii.gz", "_changes.nii.gz"

# Values of the map of changes.
NEW, PERSISTING, GONE = 1, 2, 3


class LabelMaps(Output):
    """The candidates of a scan, each with its number; of an ensemble, those of its first member.

    Of a store, the file is named that is written last: where it is, all are.
    """

    endings = (_IMAGE, f"{_ARRAY}/{LAST_OF_ARRAY}", *(f"{_OME}/{last}" for last in LAST_OF_OME.values()))
    keep = Keep(runs=True)

    def names(self, item: ScanFiles) -> tuple[str, ...]:
        """An image; of a zarr store that, or a store, or both."""
        return super().names(item) if map_ending(item.path) == ".zarr" else (f"{item.name}{_IMAGE}",)

    def expected(self, item: ScanFiles, record: Record) -> tuple[str, ...]:
        """Those of a map of this format and size."""
        file_format, shape = ("", ()) if record.map is None else (record.map.file_format, record.map.shape)
        ome = [f"{_OME}/{last}" for version, last in LAST_OF_OME.items() if file_format == f"OME-Zarr {version}"]
        is_large = (ome or file_format == "zarr") and math.prod(shape) > volumes.LARGE_VOLUME
        endings = ome or [f"{_ARRAY}/{LAST_OF_ARRAY}"] if is_large else [_IMAGE, *ome]
        return tuple(f"{item.name}{ending}" for ending in endings)

    def write(self, folder: OutputFolder, item: ScanFiles, record: Record, found: ScanCount) -> None:
        """Write candidates as an image, or chunk by chunk; those of an OME-Zarr image as its labels in any case."""
        candidates, source = found.result.candidates, found.source
        is_large = source.volume is not None and source.volume.is_large
        if not is_large:
            labels = candidates.label_map(np.uint16 if len(candidates) < 1 << 16 else np.int32)
            _write_image(folder, f"{item.name}{_IMAGE}", labels, source.grid, intent="label")
        if source.ome is not None:
            existence = [lesion.best_existence for lesion in lesions_of(record)]
            shapes = level_shapes(source.path, source.ome)
            files = ome_label_files(candidates, source.ome, existence, shapes=shapes)
            write_labels_into(folder, f"{item.name}{_OME}", files)
        elif source.volume is not None and is_large:
            write_labels_into(folder, f"{item.name}{_ARRAY}", label_files(candidates, source.volume.chunk_shape))

    def remove(self, folder: OutputFolder, item: ScanFiles, *, but: Collection[str] = ()) -> None:
        """Remove images, and stores as a whole."""
        kept = _stores(but)
        if f"{item.name}{_IMAGE}" not in but:
            folder.remove(f"{item.name}{_IMAGE}")
        for store in {f"{item.name}{_ARRAY}", f"{item.name}{_OME}"} - kept:
            remove_store(folder, store)

    def remove_stale(self, folder: OutputFolder, made: Collection[str]) -> None:
        """Remove images, and stores as a whole."""
        super().remove_stale(folder, made)
        for store in _stores(folder.names()) - _stores(made):
            remove_store(folder, store)


def _stores(names: Collection[str]) -> set[str]:
    """The stores of labels that files are in."""
    return {found[0] for name in names if (found := _STORE.match(name))}


class ExistenceMap(Output):
    """A map in which each candidate of a scan has its existence, calibrated where there is a calibration."""

    endings = ("_existence.nii.gz",)
    keep = Keep(runs=True)

    def write(self, folder: OutputFolder, item: ScanFiles, record: Record, found: ScanCount) -> None:
        """Write the map."""
        check_not_large(found.source, "--write existence")
        values = found.result.candidates.existence_map([lesion.best_existence for lesion in lesions_of(record)])
        _write_image(folder, self.names(item)[0], values, found.source.grid)


class CourseLabels(Output):
    """Label maps of a course, on the grid of its last session.

    A lesion has the same number in all sessions; and one map for each pair of sessions says what has become of it.
    """

    endings = (_LINEAGES, _CHANGES)

    def names(self, item: Course) -> tuple[str, ...]:
        """A map for each session, and one for each pair of sessions."""
        n = len(item.scans)
        lineages = (f"{item.session_name(place)}{_LINEAGES}" for place in range(n))
        return (*lineages, *(f"{item.pair_name(place)}{_CHANGES}" for place in range(n - 1)))

    def write(self, folder: OutputFolder, item: Course, record: Record, found: CourseMaps) -> None:
        """Write them."""
        sessions = [
            _painted(found, place, [lesion.lineage for lesion in session.lesions])
            for place, session in enumerate(record.sessions)
        ]
        pairs = [_changes(found, record, pair) for pair in record.pairs]
        for name, labels in zip(self.names(item), (*sessions, *pairs), strict=True):
            _write_image(folder, name, labels, found.grid, intent="label")

    def remove(self, folder: OutputFolder, item: Course, *, but: Collection[str] = ()) -> None:
        """Remove them, also those of sessions that are gone, which the earlier record names."""
        earlier, names = read_record(folder.path, item.name, of_changes=True), set(self.names(item))
        if earlier is not None:
            names |= {f"{session_name(item.name, one.session)}{_LINEAGES}" for one in earlier.sessions}
            names |= {f"{pair.name}{_CHANGES}" for pair in earlier.pairs}
        for name in names.difference(but):
            folder.remove(name)


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


def _write_image(
    folder: OutputFolder, name: str, voxels: NDArray[Any], grid: VoxelGrid, *, intent: str = "none"
) -> None:
    with folder.replacing(name) as temporary:
        temporary.write_bytes(nifti_bytes(voxels, grid, intent=intent))

"""What may be written of a scan beside its record: label map, existence map, colour tables, BIDS, DICOM."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.cohort.item import ScanFiles
from lesioncount.errors import LesionCountError, MapFileError
from lesioncount.files.formats import is_large_volume, map_ending
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.nifti import nifti_bytes
from lesioncount.files.ome_zarr import VERSIONS
from lesioncount.files.zarr_store import level_shapes, ome_version
from lesioncount.folder.output import OutputFolder
from lesioncount.outputs.bids import BidsPlace, write_scan
from lesioncount.outputs.colours import COLOUR_TABLES
from lesioncount.outputs.dicom import dicom_names, write_dicom
from lesioncount.outputs.label_volumes import label_files, remove_store, write_labels_into
from lesioncount.outputs.ome_labels import last_ome_file, ome_label_files
from lesioncount.results.record import Record
from lesioncount.results.record_files import shard_of
from lesioncount.results.recorded import Recorded
from lesioncount.results.scan_count import ScanCount
from lesioncount.results.settings import Settings

# The folder of the parts of the page that shows a run, and the name of the page.
REPORT = "report"


def label_name(name: str) -> str:
    """The file of the label map of a scan."""
    return f"{name}_lesions.nii.gz"


def label_volume_name(name: str) -> str:
    """The zarr array of the label map of a scan, where its map is a volume that is never held as a whole."""
    return f"{name}_lesions.zarr"


def label_volume_file(name: str) -> str:
    """The file of that array which is written last: where it is, all are."""
    return f"{label_volume_name(name)}/.zarray"


def ome_label_name(name: str) -> str:
    """The label image of a scan whose map is OME-Zarr."""
    return f"{name}_lesions.ome.zarr"


def remove_outputs(folder: OutputFolder, name: str, *, but: Collection[str] = ()) -> None:
    """Remove what was written of a scan beside its record, as far as it is ours, but for some files."""
    for one in own_names(name):
        if one not in but:
            folder.remove(one)
    if not any(f"{ome_label_name(name)}/{last_ome_file(version)}" in but for version in VERSIONS):
        remove_store(folder, ome_label_name(name))
    if label_volume_file(name) not in but:
        remove_store(folder, label_volume_name(name))


def existence_name(name: str) -> str:
    """The file of the map in which each candidate has its existence."""
    return f"{name}_existence.nii.gz"


def colour_names(name: str) -> tuple[str, ...]:
    """The files of the colour tables of a scan, beside its label map."""
    return tuple(f"{name}_lesions{ending}" for ending in COLOUR_TABLES)


def own_names(name: str, wanted: Recorded | None = None) -> tuple[str, ...]:
    """The files called after a scan that are written beside its record; without settings, all there may be."""
    everything = {
        (f"{REPORT}/{name}.js", f"{REPORT}/{shard_of(name)}/{name}.js"): wanted is None,
        (label_name(name),): wanted is None or wanted.save_labels,
        (existence_name(name),): wanted is None or wanted.save_existence,
        colour_names(name): wanted is None or wanted.save_colours,
        dicom_names(name): wanted is None or wanted.dicom is not None,
    }
    return tuple(one for names, is_wanted in everything.items() if is_wanted for one in names)


def output_names(scan: ScanFiles, wanted: Recorded) -> tuple[str, ...]:
    """All files that are written of a scan beside its record, those of a BIDS derivative included."""
    bids = BidsPlace.of(scan.whose).files if wanted.bids and scan.problem is None else ()
    own = own_names(scan.name, wanted)
    if wanted.save_labels and map_ending(scan.path) == ".zarr":
        labels = _labels_of_zarr(scan, wanted.level)
        own = (*labels, *(one for one in own if one != label_name(scan.name)))
    return (*own, *bids)


def _labels_of_zarr(scan: ScanFiles, level: int | None) -> tuple[str, ...]:
    """The label maps of a scan, each by the file of it that is written last."""
    version, is_large = None, is_large_volume(scan.path, level)
    with suppress(LesionCountError, OSError):  # what is wrong with it is said when it is counted
        version = ome_version(scan.path)
    image = () if version is None else (f"{ome_label_name(scan.name)}/{last_ome_file(version)}",)
    return image or (label_volume_file(scan.name),) if is_large else (label_name(scan.name), *image)


def expected_names(scan: ScanFiles, wanted: Recorded, n_candidates: int) -> tuple[str, ...]:
    """Those that must be there of a scan with so many candidates: without any, there is no segmentation."""
    left_out = dicom_names(scan.name)[:1] if n_candidates == 0 else ()
    return tuple(one for one in output_names(scan, wanted) if one not in left_out)


def write_outputs(folder: OutputFolder, scan: ScanFiles, record: Record, count: ScanCount, how: Settings) -> None:
    """Write what is wanted of a scan; of an ensemble, the candidates of its first member."""
    candidates, grid = count.result.candidates, count.source.grid
    lesions = [lesion for lesion in record.lesions if lesion.is_of_first_member]
    volume = count.source.volume
    is_large = volume is not None and volume.is_large
    if is_large:
        _check_volume(count, how)
    if how.save_labels:
        _write_labels(folder, scan.name, count, [one.best_existence for one in lesions], as_whole=not is_large)
    if how.save_existence:
        values = candidates.existence_map([lesion.best_existence for lesion in lesions])
        _write_image(folder, existence_name(scan.name), values, grid)
    if how.save_colours:
        for name, table in zip(colour_names(scan.name), COLOUR_TABLES.values(), strict=True):
            folder.write_text(name, table(lesions))
    if how.bids:
        write_scan(folder, scan, record, count)
    if how.dicom is not None:
        write_dicom(folder, record, count, scan.series, how.dicom.kind)


def _write_labels(
    folder: OutputFolder, name: str, count: ScanCount, existence: Sequence[float], *, as_whole: bool
) -> None:
    """Write candidates as an image, or chunk by chunk; those of an OME-Zarr image as its labels in any case."""
    candidates, source = count.result.candidates, count.source
    if as_whole:
        labels = candidates.label_map(np.uint16 if len(candidates) < 1 << 16 else np.int32)
        _write_image(folder, label_name(name), labels, source.grid, intent="label")
    if source.ome is not None:
        files = ome_label_files(candidates, source.ome, existence, shapes=level_shapes(source.path, source.ome))
        write_labels_into(folder, ome_label_name(name), files)
    elif source.volume is not None and not as_whole:
        write_labels_into(folder, label_volume_name(name), label_files(candidates, source.volume.chunk_shape))


def _check_volume(count: ScanCount, how: Settings) -> None:
    """Raise if something is wanted that is only written as a whole."""
    wanted = {"--save-existence": how.save_existence, "--bids": how.bids, "--dicom": how.dicom is not None}
    for option, is_wanted in wanted.items():
        if is_wanted:
            raise MapFileError(
                f"{count.source.path} has too many voxels for {option}, which writes a map as a whole. Leave it out; "
                "--save-labels writes zarr, chunk by chunk."
            )


def _write_image(
    folder: OutputFolder, name: str, voxels: NDArray[Any], grid: VoxelGrid, *, intent: str = "none"
) -> None:
    with folder.replacing(name) as temporary:
        temporary.write_bytes(nifti_bytes(voxels, grid, intent=intent))

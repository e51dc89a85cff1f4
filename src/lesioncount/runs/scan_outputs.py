"""What may be written of a scan beside its record: label map, existence map, colour tables, BIDS, DICOM."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapFileError
from lesioncount.files.formats import is_large_volume
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.label_volumes import write_labels_into
from lesioncount.files.nifti_writing import nifti_bytes
from lesioncount.files.ome_labels import ome_label_files
from lesioncount.files.output import OutputFolder
from lesioncount.files.zarr_store import level_shapes
from lesioncount.runs.bids_output import BidsPlace, write_scan
from lesioncount.runs.colours import COLOUR_TABLES
from lesioncount.runs.dicom import dicom_names, write_dicom
from lesioncount.runs.file_counts import ScanCount
from lesioncount.runs.records import ScanRecord
from lesioncount.runs.scan_files import ScanFiles
from lesioncount.runs.settings import CountedWith, Settings


def label_name(name: str) -> str:
    """The file of the label map of a scan."""
    return f"{name}_lesions.nii.gz"


def label_volume_name(name: str) -> str:
    """The zarr array of the label map of a scan, where its map is a volume that is never held as a whole."""
    return f"{name}_lesions.zarr"


def label_volume_file(name: str) -> str:
    """The file of that array which is written last: where it is, all are."""
    return f"{label_volume_name(name)}/.zarray"


def remove_label_volume(folder: OutputFolder, name: str) -> None:
    """Remove those files of that array that are ours."""
    array = label_volume_name(name)
    if not (folder.path / array).is_dir():
        return
    for file in folder.names():
        if file.startswith(f"{array}/"):
            folder.remove(file)
    folder.remove_empty(array)


def existence_name(name: str) -> str:
    """The file of the map in which each candidate has its existence."""
    return f"{name}_existence.nii.gz"


def colour_names(name: str) -> tuple[str, ...]:
    """The files of the colour tables of a scan, beside its label map."""
    return tuple(f"{name}_lesions{ending}" for ending in COLOUR_TABLES)


def own_names(name: str, wanted: CountedWith | None = None) -> tuple[str, ...]:
    """The files called after a scan that are written beside its record; without settings, all there may be."""
    everything = {
        (label_name(name),): wanted is None or wanted.save_labels,
        (existence_name(name),): wanted is None or wanted.save_existence,
        colour_names(name): wanted is None or wanted.save_colours,
        dicom_names(name): wanted is None or wanted.dicom is not None,
    }
    return tuple(one for names, is_wanted in everything.items() if is_wanted for one in names)


def ome_label_name(name: str) -> str:
    """The folder of the label image of a scan whose map is OME-Zarr."""
    return f"{name}_lesions.ome.zarr"


def remove_ome_labels(folder: OutputFolder, name: str) -> None:
    """Remove the label image of a scan, as far as it is ours."""
    store = ome_label_name(name)
    written = sorted(one for one in folder.names() if one.startswith(f"{store}/"))
    for one in written:
        folder.remove(one)
    folders = {str(parent) for one in written for parent in PurePosixPath(one).parents} - {"."}
    for one in sorted(folders, key=len, reverse=True):
        folder.remove_empty(one)


def output_names(scan: ScanFiles, wanted: CountedWith) -> tuple[str, ...]:
    """All files that are written of a scan beside its record, those of a BIDS derivative included."""
    bids = BidsPlace.of(scan.whose).files if wanted.bids and scan.problem is None else ()
    own = own_names(scan.name, wanted)
    if wanted.save_labels and is_large_volume(scan.path, wanted.reading.level):
        own = (label_volume_file(scan.name), *(one for one in own if one != label_name(scan.name)))
    return (*own, *bids)


def expected_names(scan: ScanFiles, wanted: CountedWith, n_candidates: int) -> tuple[str, ...]:
    """Those that must be there of a scan with so many candidates: without any, there is no segmentation."""
    left_out = dicom_names(scan.name)[:1] if n_candidates == 0 else ()
    return tuple(one for one in output_names(scan, wanted) if one not in left_out)


def write_outputs(folder: OutputFolder, scan: ScanFiles, record: ScanRecord, count: ScanCount, how: Settings) -> None:
    """Write what is wanted of a scan; of an ensemble, the candidates of its first member."""
    candidates, grid = count.result.candidates, count.source.grid
    lesions = [lesion for lesion in record.lesions if lesion.is_of_first_member]
    volume = count.source.volume
    if volume is not None and volume.is_large:
        _check_volume(count, how)
        if how.save_labels:
            write_labels_into(folder, label_volume_name(scan.name), candidates, volume.chunk_shape)
    elif how.save_labels:
        labels = candidates.label_map(np.uint16 if len(candidates) < 1 << 16 else np.int32)
        _write_image(folder, label_name(scan.name), labels, grid, intent="label")
        remove_ome_labels(folder, scan.name)  # chunks that are empty now would stay
        if count.source.ome is not None:
            existence, shapes = [one.best_existence for one in lesions], level_shapes(grid.path, count.source.ome)
            files = ome_label_files(labels, count.source.ome, existence, shapes=shapes)
            folder.write_together({f"{ome_label_name(scan.name)}/{key}": content for key, content in files.items()})
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

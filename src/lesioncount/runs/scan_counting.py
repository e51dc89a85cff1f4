"""One scan → its record in the folder of results, and its label map where one is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lesioncount.errors import LesionCountError, MapFileError
from lesioncount.files.output import OutputFolder
from lesioncount.runs.bids_output import BidsPlace, remove_scan, write_scan
from lesioncount.runs.file_counts import ScanCount, count_file
from lesioncount.runs.records import ScanRecord, ScanSummary, read_record, record_name
from lesioncount.runs.scan_files import FileFacts, ScanFiles, check_states, file_states
from lesioncount.runs.settings import CountedWith, Settings


def count_scan(scan: ScanFiles, settings: Settings, out: Path) -> ScanSummary:
    """Count one scan and write its record; what goes wrong with the scan is part of the record, not an exception."""
    folder = OutputFolder(out)
    record, counts = _recorded(scan, settings)
    if counts:
        record = _with_maps(record, scan, counts[0], folder)
    if not record.summary.is_counted:  # not the maps of another time
        folder.remove(label_name(scan.name))
        remove_scan(folder, scan)
    try:
        folder.write_text(record_name(scan.name), record.to_json(), though_changed=scan.was_counted)
    except (MapFileError, OSError) as error:
        return failed(scan, record.summary.error or str(error), record.summary.files)
    return record.summary


def failed(scan: ScanFiles, why: str, files: FileFacts | None = None) -> ScanSummary:
    """The summary of a scan that could not be counted."""
    return ScanSummary(scan.name, error=why, files=FileFacts.unread(scan) if files is None else files)


def counted_before(scan: ScanFiles, settings: Settings, out: Path) -> ScanSummary | None:
    """The summary of a scan whose record is there, without error, and of the same files and settings."""
    folder = OutputFolder(out)
    record = read_record(out, scan.name) if folder.is_ours(record_name(scan.name)) else None
    if scan.problem is not None or record is None or not record.summary.is_counted:
        return None
    if not all(_is_there(out / name) for name in map_names(scan, settings)):
        return None
    if record.counted_with != settings.recorded:
        return None
    try:
        now = FileFacts.of(scan)
    except OSError:
        return None
    before = record.summary.files
    is_right = before is not None and before.is_same_content(now) and before.is_same_scan(now)
    return record.summary if is_right else None


def label_name(name: str) -> str:
    """The file of the label map of a scan."""
    return f"{name}_lesions.nii.gz"


def _is_there(path: Path) -> bool:
    """Whether a file is there, and not left empty by a power cut."""
    return path.exists() and path.stat().st_size > 0


def map_names(scan: ScanFiles, settings: Settings) -> list[str]:
    """The files that are written of a scan beside its record."""
    labels = [label_name(scan.name)] if settings.save_labels else []
    return [*labels, *(BidsPlace.of(scan.whose).files if settings.bids and scan.problem is None else ())]


def _recorded(scan: ScanFiles, settings: Settings) -> tuple[ScanRecord, list[ScanCount]]:
    files = None
    try:
        files, before = FileFacts.of(scan), file_states(scan)
        counts = [_counted(path, scan, settings) for path in scan.maps]
        check_states(scan, before)
        return ScanRecord.of(scan.name, counts, files, settings), counts
    except (LesionCountError, OSError, MemoryError) as error:
        why = str(error) or type(error).__name__
    except Exception as error:  # noqa: BLE001 - whatever one file does to a reader, the others are counted
        why = f"unexpected {type(error).__name__}: {error}"
    return ScanRecord(failed(scan, why, files), settings.recorded), []


def _counted(path: Path, scan: ScanFiles, settings: Settings) -> ScanCount:
    return count_file(
        path,
        protocol=settings.protocol,
        mask=scan.mask,
        channel=settings.channel,
        scale=settings.scale,
        logits=settings.logits,
        keep_runs=settings.save_labels or settings.bids,
    )


def _with_maps(record: ScanRecord, scan: ScanFiles, count: ScanCount, folder: OutputFolder) -> ScanRecord:
    """The record, once the maps that are wanted of a scan are written; one of a failure if they cannot be."""
    wanted = record.counted_with or CountedWith()
    try:
        if wanted.save_labels:
            _write_labels(folder, label_name(record.name), count)
        if wanted.bids:
            write_scan(folder, scan, record, count)
    except (LesionCountError, OSError, MemoryError) as error:
        why = ScanSummary(record.name, error=str(error) or type(error).__name__, files=record.summary.files)
        return ScanRecord(why, record.counted_with)
    return record


def _write_labels(folder: OutputFolder, name: str, count: ScanCount) -> None:
    import nibabel

    n, grid = len(count.result.candidates), count.source.grid
    labels = count.result.candidates.label_map(np.uint16 if n < 1 << 16 else np.int32)
    kind: Any = nibabel.Nifti1Image if max(labels.shape) < 1 << 15 else nibabel.Nifti2Image  # 16 bits for each axis
    image = kind(labels, grid.affine)
    if grid.affine is None and grid.spacing_mm is not None:
        image.header.set_zooms(grid.spacing_mm)
    with folder.replacing(name) as temporary:
        nibabel.save(image, temporary)

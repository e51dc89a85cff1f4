"""One scan → its record in the folder of results, and what is wanted beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lesioncount.cohort.item import FileFacts, ScanFiles, check_states, file_states
from lesioncount.errors import LesionCountError, MapFileError
from lesioncount.files.remote_path import without_secrets
from lesioncount.folder.output import OutputFolder
from lesioncount.outputs.bids import remove_scan
from lesioncount.outputs.label_maps import expected_names, output_names, remove_outputs, write_outputs
from lesioncount.results.record import ScanRecord, ScanSummary, read_record
from lesioncount.results.record_files import record_in
from lesioncount.results.scan_count import ScanCount
from lesioncount.results.settings import Settings
from lesioncount.runs.file_counts import count_file

# Shows a scan that has just been counted, while its map is at hand; given its files, its record, and the count of its
# map (of an ensemble, that of its first member), with shades and runs. What goes wrong with it is its own affair.
Show = Callable[[OutputFolder, ScanFiles, ScanRecord, ScanCount], None]


def count_scan(
    scan: ScanFiles,
    settings: Settings,
    out: Path | OutputFolder,
    show: Show | None = None,
    *,
    is_announced: bool = False,
    jobs: int = 1,
    client: Any = None,
) -> ScanSummary:
    """Count one scan and write its record; what goes wrong with the scan is part of the record, not an exception.

    Parameters
    ----------
    scan : ScanFiles
    settings : Settings
    out : Path or OutputFolder
    show : callable, optional
    is_announced : bool, default False
        Whether the folder knows that the record is about to be written: then nobody waits for the disk.
    jobs, client : int, Dask client
        Of a volume, boxes may be counted by several processes, or by a cluster.
    """
    folder = out if isinstance(out, OutputFolder) else OutputFolder(out)
    record, counts = _recorded(scan, settings, is_shown=show is not None, jobs=jobs, client=client)
    if settings.has_outputs and counts:
        record = _with_outputs(record, counts[0], scan, settings, folder)
    if scan.was_counted or not record.summary.is_counted:
        _remove_stale(folder, scan, record, settings)
    write = folder.write_announced if is_announced else folder.write_text
    try:
        write(record_in(folder.path, scan.name), record.to_json(), though_changed=scan.was_counted)
    except (MapFileError, OSError) as error:
        return failed(scan, record.summary.error or str(error), record.summary.files)
    if show is not None and record.summary.is_counted:
        show(folder, scan, record, counts[0])
    return record.summary


def _remove_stale(folder: OutputFolder, scan: ScanFiles, record: ScanRecord, settings: Settings) -> None:
    """Remove what was made of the scan at another time, and not again now."""
    made = output_names(scan, settings.recorded) if record.summary.is_counted else ()
    remove_outputs(folder, scan.name, but=made)
    if not (settings.bids and record.summary.is_counted):
        remove_scan(folder, scan)


def failed(scan: ScanFiles, why: str, files: FileFacts | None = None) -> ScanSummary:
    """The summary of a scan that could not be counted."""
    error = without_secrets(why)  # of an error that nobody expected, nobody knows what it quotes
    return ScanSummary(scan.name, error=error, files=FileFacts.unread(scan) if files is None else files)


def counted_before(scan: ScanFiles, settings: Settings, out: Path) -> ScanSummary | None:
    """The summary of a scan whose record is there, without error, and of the same files and settings."""
    record = read_record(out, scan.name, unchanged=True)
    if scan.problem is not None or record is None or not record.summary.is_counted:
        return None
    if record.counted_with is None or not record.counted_with.counts_as(settings.recorded):
        return None
    n_candidates = len(record.summary.tables[0])
    if not all(_is_there(out / name) for name in expected_names(scan, settings.recorded, n_candidates)):
        return None
    try:
        now = FileFacts.of(scan)
    except OSError:
        return None
    before = record.summary.files
    is_right = before is not None and before.is_same_content(now) and before.is_same_scan(now)
    return record.summary if is_right else None


def _is_there(path: Path) -> bool:
    """Whether a file is there, and not left empty by a power cut."""
    return path.exists() and path.stat().st_size > 0


def _recorded(
    scan: ScanFiles, settings: Settings, *, is_shown: bool, jobs: int, client: Any
) -> tuple[ScanRecord, list[ScanCount]]:
    files = None
    try:
        files, before = FileFacts.of(scan), file_states(scan)
        counts = [
            _counted(path, scan, settings, is_shown=is_shown and path == scan.path, jobs=jobs, client=client)
            for path in scan.maps
        ]
        check_states(scan, before)
        return ScanRecord.of(scan.name, counts, files, settings), counts
    except (LesionCountError, OSError, MemoryError) as error:
        why = str(error) or type(error).__name__
    except Exception as error:  # noqa: BLE001 - whatever one file does to a reader, the others are counted
        why = f"unexpected {type(error).__name__}: {error}"
    return ScanRecord(failed(scan, why, files), settings.recorded), []


def _counted(path: Path, scan: ScanFiles, settings: Settings, *, is_shown: bool, jobs: int, client: Any) -> ScanCount:
    return count_file(
        path,
        protocol=settings.protocol,
        mask=scan.mask,
        regions=scan.regions,
        region_names=settings.regions,
        channel=settings.channel,
        scale=settings.scale,
        logits=settings.logits,
        level=settings.level,
        keep_runs=settings.has_outputs or is_shown,
        keep_shades=is_shown,
        jobs=jobs,
        client=client,
    )


def _with_outputs(
    record: ScanRecord, count: ScanCount, scan: ScanFiles, settings: Settings, folder: OutputFolder
) -> ScanRecord:
    try:
        write_outputs(folder, scan, record, count, settings)
    except (LesionCountError, OSError, MemoryError) as error:
        why = str(error) or type(error).__name__
    except Exception as error:  # noqa: BLE001 - images of a series can be odd in many ways
        why = f"its results could not be written: unexpected {type(error).__name__}: {error}"
    else:
        return record
    return ScanRecord(failed(scan, why, record.summary.files), record.counted_with)

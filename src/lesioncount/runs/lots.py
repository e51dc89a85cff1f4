"""Scans in lots: many small ones are one task, and wait for the disk once."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lesioncount.cohort.item import ScanFiles
from lesioncount.folder.output import OutputFolder
from lesioncount.results.record import ScanSummary
from lesioncount.results.record_files import record_in
from lesioncount.results.settings import Settings
from lesioncount.runs.scan_counting import Show, count_scan, counted_before

# A lot ends at so many scans, or at so many bytes of maps: it takes a fraction of a second, even where maps are
# compressed well. To hand over a task takes a millisecond, and to wait for the disk several.
_MOST_SCANS, _MOST_BYTES = 32, 1 << 18

# So many lots for each process, at least: all are busy to the end, and few scans are not held back by each other.
_LOTS_PER_JOB = 8

Lot = tuple[ScanFiles, ...]


def lots_of(scans: Sequence[ScanFiles], *, jobs: int) -> Iterator[Lot]:
    """Scans in their order, in lots for so many processes; large ones, and a few, are each a lot of its own."""
    most = max(1, min(_MOST_SCANS, len(scans) // (_LOTS_PER_JOB * jobs)))
    lot: list[ScanFiles] = []
    n_bytes = 0
    for scan in scans:
        size = _size(scan.path)
        if lot and (len(lot) == most or n_bytes + size > _MOST_BYTES):
            yield tuple(lot)
            lot, n_bytes = [], 0
        lot.append(scan)
        n_bytes += size
    if lot:
        yield tuple(lot)


class CountedLot(NamedTuple):
    """What is known of the scans of a lot, and how many of them were not known before."""

    summaries: list[ScanSummary]
    n_new: int


def count_lot(
    lot: Lot,
    settings: Settings,
    out: Path,
    show: Show | None = None,
    *,
    resume: bool = False,
    jobs: int = 1,
    client: Any = None,
) -> CountedLot:
    """Count the scans of a lot, but for those that need not be counted again.

    Of a volume, boxes may be counted by several processes, or by the cluster of a Dask client.
    """
    folder = OutputFolder(out)
    before = [counted_before(scan, settings, out) if resume else None for scan in lot]
    is_announced = len(lot) > 1
    if is_announced:
        folder.announce(record_in(out, scan.name) for scan, known in zip(lot, before, strict=True) if known is None)
    summaries = [
        count_scan(scan, settings, folder, show, is_announced=is_announced, jobs=jobs, client=client)
        if known is None
        else known
        for scan, known in zip(lot, before, strict=True)
    ]
    return CountedLot(summaries, before.count(None))


def _size(path: Path) -> int:
    """Bytes of a map; of a folder, and of what cannot be looked at, more than a lot takes."""
    try:
        status = os.stat(path)  # noqa: PTH116 - an address, too, is no file
        return status.st_size if stat.S_ISREG(status.st_mode) else _MOST_BYTES + 1
    except (OSError, ValueError):
        return _MOST_BYTES + 1

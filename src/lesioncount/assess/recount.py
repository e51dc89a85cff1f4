"""A scan of a run → its count once more, from its map: with what is needed to paint candidates, or other thresholds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lesioncount.errors import MapFileError
from lesioncount.files.remote_path import why_gone
from lesioncount.results.record import Entry
from lesioncount.results.recorded import Recorded
from lesioncount.results.scan_count import ScanCount
from lesioncount.runs.file_counts import count_file


def counted_again(
    scan: Entry, counted_with: Recorded, /, *, purpose: str = "to show its candidates", **options: Any
) -> ScanCount:
    """The count of a map, which must not have changed since.

    Parameters
    ----------
    scan : Entry
        Of an ensemble, its first member is counted.
    counted_with : Recorded
    purpose : str
        What the map is needed for, in case that it is gone.
    **options
        Of `count_file`, such as ``keep_runs``.
    """
    path = existing_map(scan, purpose)
    how = counted_with.reading | options
    again = count_file(path, protocol=counted_with.protocol, mask=scan.within, **how)
    if not np.array_equal(again.result.existence, scan.tables[0].existence()):
        raise MapFileError(f"The map {path} of {scan.name} has changed since it was counted. Count again.")
    return again


def existing_map(scan: Entry, purpose: str = "to show its candidates") -> Path:
    """The file of the map, which must hold what was counted; of an ensemble, that of its first member."""
    path = scan.grid.path
    if not path.exists():
        raise MapFileError(f"The map {path} of {scan.name} {why_gone(path)}, but is needed {purpose}.")
    if scan.files is not None:
        scan.files.check_unchanged()
    return path

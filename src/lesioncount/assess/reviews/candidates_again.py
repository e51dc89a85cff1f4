"""The candidates of a scan that was counted, found again in its map: records do not hold their voxels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lesioncount.candidates import Candidates
from lesioncount.errors import MapFileError
from lesioncount.files.remote_path import why_gone
from lesioncount.results.record import ScanSummary
from lesioncount.results.settings import CountedWith
from lesioncount.runs.file_counts import count_file


def candidates_again(scan: ScanSummary, counted_with: CountedWith) -> Candidates:
    """The candidates of a scan, with what is needed to paint them; an error if they are others than were counted."""
    again = count_file(
        existing_map(scan),
        protocol=counted_with.protocol,
        mask=scan.within,
        keep_runs=True,
        **counted_with.reading.to_dict(),
    )
    if not np.array_equal(again.result.existence, scan.tables[0].existence()):
        raise MapFileError(f"The map {scan.grid.path} of {scan.name} has changed since it was counted. Count again.")
    return again.result.candidates


def existing_map(scan: ScanSummary) -> Path:
    """The file of the map; of an ensemble, that of its first member."""
    path = scan.grid.path
    if not path.exists():
        raise MapFileError(f"The map {path} of {scan.name} {why_gone(path)}, but is needed to show its candidates.")
    return path

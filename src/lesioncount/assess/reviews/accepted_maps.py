"""What readers have accepted → label maps."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.reviews.journals import REVIEWS, file_stem
from lesioncount.assess.reviews.reviews import ReviewedScan
from lesioncount.candidates import Candidates
from lesioncount.errors import LesionCountError, MapFileError
from lesioncount.files.nifti import nifti_bytes
from lesioncount.files.remote_path import why_gone
from lesioncount.folder.output import OutputFolder
from lesioncount.results.record import Entry
from lesioncount.results.recorded import Recorded
from lesioncount.results.results import Results
from lesioncount.runs.file_counts import count_file


def accepted_name(reader: str, scan: str) -> str:
    """The file of the label map of what a reader has accepted in a scan."""
    return f"{REVIEWS}/{file_stem(reader)}/{scan}_accepted.nii.gz"


def write_accepted_maps(results: Results, scans: Iterable[ReviewedScan]) -> tuple[list[str], list[str]]:
    """Write a label map for each scan; the names of the files, and what could not be written, and why."""
    folder = OutputFolder(results.out)
    written: list[str] = []
    notes: list[str] = []
    for scan in scans:
        name = accepted_name(scan.reader, scan.record.name)
        try:
            labels = accepted_labels(scan, results.run.settings)
        except (LesionCountError, OSError, MemoryError) as error:
            notes.append(f"There is no label map of {scan.record.name} by {scan.reader}. {error}")
            continue
        with folder.replacing(name) as temporary:
            temporary.write_bytes(nifti_bytes(labels, scan.record.grid, intent="label"))
        written.append(name)
    return written, notes


def accepted_labels(scan: ReviewedScan, counted_with: Recorded) -> NDArray[Any]:
    """The candidates that a reader has accepted, with their labels; lesions that were added have the numbers after.

    Nobody has drawn a lesion that was added: its one voxel says where it is, not how large.
    """
    candidates = candidates_again(scan.record.summary, counted_with)
    n = len(candidates)
    is_accepted = np.array([False, *(n_lesions > 0 for n_lesions in scan.decided)])
    found = candidates.label_map()
    labels = np.where(is_accepted[found], found, 0).astype(
        np.uint16 if n + len(scan.review.added) < 1 << 16 else np.int32
    )
    for number, event in enumerate(scan.review.added, start=n + 1):
        labels[event.at] = number
    return labels


def candidates_again(scan: Entry, counted_with: Recorded) -> Candidates:
    """The candidates of a scan, with what is needed to paint them; an error if they are others than were counted."""
    again = count_file(
        existing_map(scan),
        protocol=counted_with.protocol,
        mask=scan.within,
        keep_runs=True,
        **counted_with.reading,
    )
    if not np.array_equal(again.result.existence, scan.tables[0].existence()):
        raise MapFileError(f"The map {scan.grid.path} of {scan.name} has changed since it was counted. Count again.")
    return again.result.candidates


def existing_map(scan: Entry) -> Path:
    """The file of the map; of an ensemble, that of its first member."""
    path = scan.grid.path
    if not path.exists():
        raise MapFileError(f"The map {path} of {scan.name} {why_gone(path)}, but is needed to show its candidates.")
    return path

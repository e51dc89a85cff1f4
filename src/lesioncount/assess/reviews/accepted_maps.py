"""What readers have accepted → label maps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.recount import counted_again
from lesioncount.assess.reviews.journals import REVIEWS, file_stem
from lesioncount.assess.reviews.reviews import ReviewedScan
from lesioncount.errors import LesionCountError
from lesioncount.files.nifti import nifti_bytes
from lesioncount.folder.output import OutputFolder
from lesioncount.results.results import RunResults
from lesioncount.results.settings import CountedWith


def accepted_name(reader: str, scan: str) -> str:
    """The file of the label map of what a reader has accepted in a scan."""
    return f"{REVIEWS}/{file_stem(reader)}/{scan}_accepted.nii.gz"


def write_accepted_maps(results: RunResults, scans: Iterable[ReviewedScan]) -> tuple[list[str], list[str]]:
    """Write a label map for each scan; the names of the files, and what could not be written, and why."""
    folder = OutputFolder(results.out)
    written: list[str] = []
    notes: list[str] = []
    for scan in scans:
        name = accepted_name(scan.reader, scan.record.name)
        try:
            labels = accepted_labels(scan, results.run.counted_with)
        except (LesionCountError, OSError, MemoryError) as error:
            notes.append(f"There is no label map of {scan.record.name} by {scan.reader}. {error}")
            continue
        with folder.replacing(name) as temporary:
            temporary.write_bytes(nifti_bytes(labels, scan.record.summary.grid, intent="label"))
        written.append(name)
    return written, notes


def accepted_labels(scan: ReviewedScan, counted_with: CountedWith) -> NDArray[Any]:
    """The candidates that a reader has accepted, with their labels; lesions that were added have the numbers after.

    Nobody has drawn a lesion that was added: its one voxel says where it is, not how large.
    """
    candidates = counted_again(scan.record.summary, counted_with, keep_runs=True).result.candidates
    n = len(candidates)
    is_accepted = np.array([False, *(n_lesions > 0 for n_lesions in scan.decided)])
    found = candidates.label_map()
    labels = np.where(is_accepted[found], found, 0).astype(
        np.uint16 if n + len(scan.review.added) < 1 << 16 else np.int32
    )
    for number, event in enumerate(scan.review.added, start=n + 1):
        labels[event.at] = number
    return labels

"""What readers have decided → tables, their agreement, label maps, and a new count that keeps to it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.recount import counted_again, painted_boxes
from lesioncount.assess.reviews.agreement import agreements
from lesioncount.assess.reviews.journals import REVIEWS, file_stem, readers_of
from lesioncount.assess.reviews.reviews import ReviewedScan, Reviews, the_reader
from lesioncount.assess.reviews.scan_review import reviewed_lesions
from lesioncount.errors import LesionCountError, ReviewError
from lesioncount.files.nifti import nifti_bytes
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.plain import cells
from lesioncount.folder.tables import filled_columns, to_tsv
from lesioncount.results.record import Entry
from lesioncount.results.recorded import Recorded
from lesioncount.results.results import Results
from lesioncount.results.scan_numbers import WHOSE_COLUMNS, AnotherReader, CountNumbers
from lesioncount.trust.fitting.reader_pool import ReaderPool
from lesioncount.trust.scores.estimate import cells_of

REVIEWED_COUNTS, REVIEWED_LESIONS = "reviewed_counts.tsv", "reviewed_lesions.tsv"
READER_AGREEMENT, ANOTHER_READER = "reader_agreement.tsv", "another_reader.tsv"

# Of the numbers of a distribution, those that the table has.
_COUNT = ("count_mode", "count_median", "count_mean", "count_sd", "interval90_low", "interval90_high")


def export_reviews(results: Results, *, label_maps: bool = True) -> tuple[list[str], list[str]]:
    """Write what all readers have decided, and how far they agree, into the folder of results.

    Parameters
    ----------
    results : Results
    label_maps : bool, default True
        Also write a map of what each reader has accepted, for which the maps are read again.

    Returns
    -------
    files : list of str
        Names of the files that were written.
    notes : list of str
        What could not be written, and why.
    """
    readers = readers_of(results.out)
    if not readers:
        raise ReviewError(
            f"There are no reviews in {results.out / REVIEWS}. Review first: lesioncount review {results.out}"
        )
    reviews = [Reviews(results, reader) for reader in readers]
    begun = [scan for one in reviews for scan in one.begun()]
    folder = OutputFolder(results.out)
    files = [write_reviewed_counts(results, reviews), REVIEWED_LESIONS]
    _write_table(folder, REVIEWED_LESIONS, [row for scan in begun for row in _lesions(scan)])
    if len(reviews) > 1:
        _write_table(folder, READER_AGREEMENT, [cells_of(one) for one in agreements(reviews)])
        files.append(READER_AGREEMENT)
    if rows := [row for scan in results.counted for row in _another_reader(scan, results, reviews)]:
        _write_table(folder, ANOTHER_READER, rows)
        files.append(ANOTHER_READER)
    written, notes = _write_accepted_maps(results, begun) if label_maps else ([], [])
    return files + written, notes


def write_reviewed_counts(results: Results, reviews: Sequence[Reviews]) -> str:
    """Write a row for each reader and scan, also where nobody has looked: the means of a reader add up to the total."""
    rows = [_row(scan, one) for one in reviews for scan in results.counted]
    _write_table(OutputFolder(results.out), REVIEWED_COUNTS, rows)
    return REVIEWED_COUNTS


def _write_table(folder: OutputFolder, name: str, rows: Sequence[dict[str, Any]]) -> None:
    columns = dict.fromkeys(column for row in rows for column in row)
    folder.write_text(name, to_tsv(filled_columns(columns, rows, optional=WHOSE_COLUMNS), rows))


def _row(scan: Entry, reviews: Reviews) -> dict[str, Any]:
    review, found, count = reviews.of(scan), reviews.scan(scan), reviews.count(scan)
    verdicts = [] if found is None else [verdict for verdict, _ in found.verdicts.values()]
    numbers = cells(CountNumbers.of(count.distribution))
    return {
        "scan": scan.shown,
        **scan.whose,
        "reader": reviews.reader,
        "done": "yes" if review.is_done else "no",
        "complete": "yes" if found is not None and found.is_complete else "no",
        **{name: numbers[name] for name in _COUNT},
        "n_candidates": len(count.decided),
        "n_decided": len(verdicts),
        "n_accepted": sum(verdict in ("lesion", "several") for verdict in verdicts),
        "n_rejected": verdicts.count("none"),
        "n_unsure": verdicts.count("unsure"),
        "n_added": len(review.added),
        "seconds": round(review.seconds, 1),
    }


def _another_reader(scan: Entry, results: Results, reviews: Sequence[Reviews]) -> Iterator[dict[str, Any]]:
    """What another reader would count in a scan that was reviewed completely, if the calibration knows of readers."""
    calibration, pool = results.calibration, results.run.settings.pool
    found = {one.reader: one.scan(scan) for one in reviews}
    reads = {reader: one.n_lesions for reader, one in found.items() if one is not None and one.is_complete}
    if reads and pool is not None and calibration is not None:
        count = scan.distribution(scan.corrected_by(calibration))
        pooled = ReaderPool.from_dict(pool).distribution(count, tuple(reads.values()))
        whose = {"scan": scan.shown, **scan.whose, "readers": ", ".join(reads)}
        yield whose | cells(AnotherReader.of(tuple(reads.values()), pooled))


def _lesions(scan: ReviewedScan) -> Iterator[dict[str, Any]]:
    """A row for each candidate that was decided, and for each lesion that was added."""
    whose = {"scan": scan.record.shown, "reader": scan.reader}
    by_peak = scan.review.by_peak
    for lesion in reviewed_lesions(scan.record):
        if lesion.label not in scan.verdicts:
            continue
        verdict, n = scan.verdicts[lesion.label]
        event = by_peak.get(lesion.peak)
        yield whose | {
            "label": lesion.label,
            "verdict": verdict,
            "n_lesions": None if verdict == "unsure" else n,
            **_place(lesion.peak),
            "existence": lesion.best_existence,
            "time": None if event is None else event.time,
            "seconds": None if event is None else event.seconds,
        }
    for event in scan.review.added:
        yield whose | {
            "verdict": "added",
            "n_lesions": 1,
            **_place(event.at),
            "time": event.time,
            "seconds": event.seconds,
        }


def _place(index: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(("i", "j", "k"), index, strict=False)) if len(index) > 1 else {}  # of a detection without an image


def _accepted_name(reader: str, scan: str) -> str:
    """The file of the label map of what a reader has accepted in a scan."""
    return f"{REVIEWS}/{file_stem(reader)}/{scan}_accepted.nii.gz"


def _write_accepted_maps(results: Results, scans: Iterable[ReviewedScan]) -> tuple[list[str], list[str]]:
    """Write a label map for each scan; the names of the files, and what could not be written, and why."""
    folder = OutputFolder(results.out)
    written: list[str] = []
    notes: list[str] = []
    for scan in (one for one in scans if one.record.grid.shape):  # detections without images are a list
        name = _accepted_name(scan.reader, scan.record.name)
        try:
            labels = _accepted_labels(scan, results.run.settings)
        except (LesionCountError, OSError, MemoryError) as error:
            notes.append(f"There is no label map of {scan.record.name} by {scan.reader}. {error}")
            continue
        with folder.replacing(name) as temporary:
            temporary.write_bytes(nifti_bytes(labels, scan.record.grid, intent="label"))
        written.append(name)
    return written, notes


def _accepted_labels(scan: ReviewedScan, counted_with: Recorded) -> NDArray[Any]:
    """The candidates that a reader has accepted, with their labels; lesions that were added have the numbers after.

    Nobody has drawn a lesion that was added: its one voxel says where it is, not how large.
    """
    n = len(scan.decided)
    is_accepted = np.array([False, *(n_lesions > 0 for n_lesions in scan.decided)])
    if counted_with.protocol.has_detections:
        found = painted_boxes(scan.record.lesions, scan.record.grid)
    else:
        found = counted_again(scan.record.summary, counted_with, keep_runs=True).result.candidates.label_map()
    labels = np.where(is_accepted[found], found, 0).astype(
        np.uint16 if n + len(scan.review.added) < 1 << 16 else np.int32
    )
    for number, event in enumerate(scan.review.added, start=n + 1):
        labels[event.at] = number
    return labels


@dataclass(frozen=True)
class AppliedReviews:
    """What reviews made of a run.

    Attributes
    ----------
    reader : str
    n_begun, n_complete : int
        Scans with any decision, and those whose count is known.
    mean, sd : float
        Of the total of all scans, after review.
    """

    reader: str
    n_begun: int
    n_complete: int
    mean: float
    sd: float

    def __str__(self) -> str:
        """One line in plain words."""
        return (
            f"Reviewed by {self.reader}: {self.n_begun} scan{'' if self.n_begun == 1 else 's'}, {self.n_complete} "
            f"completely. Total after review: {self.mean:.1f} ± {self.sd:.1f} (mean and sd), see {REVIEWED_COUNTS}."
        )


def apply_reviews(results: Results, folder: Path, reader: str | None = None) -> AppliedReviews:
    """Write ``reviewed_counts.tsv`` of a run with the decisions of a reader about the same maps in another folder."""
    reviews = Reviews(results, the_reader(folder, reader), folder)
    begun = list(reviews.begun())
    if not begun:
        raise ReviewError(
            f"{reviews.reader} has reviewed none of these scans in {folder}: decisions are about maps of the same name "
            "and content."
        )
    write_reviewed_counts(results, [reviews])
    counts = [reviews.count(scan) for scan in results.counted]
    return AppliedReviews(
        reviews.reader,
        len(begun),
        sum(scan.is_complete for scan in begun),
        math.fsum(count.mean() for count in counts),
        math.sqrt(math.fsum(count.var() for count in counts)),
    )

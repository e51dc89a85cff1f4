"""Counts, and what readers have counted in the same scans → what another reader would count."""

from __future__ import annotations

from pathlib import Path

from lesioncount.assess.truth import read_truth_table
from lesioncount.errors import CalibrationError, TruthError
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.plain import cells
from lesioncount.folder.tables import to_tsv
from lesioncount.results.counts_of import table_names
from lesioncount.results.results import Results
from lesioncount.results.scan_numbers import CountNumbers
from lesioncount.trust.fitting.evidence import CalibrationLike, as_fit
from lesioncount.trust.fitting.reader_pool import ReaderPool

ANOTHER_READER = "another_reader.tsv"


def pool_of(calibration: CalibrationLike | None) -> ReaderPool:
    """The pool of a calibration; an error if it has none."""
    fit = as_fit(calibration)
    if fit is None or fit.pool is None:
        raise CalibrationError(
            "What another reader would count (--reads) needs a calibration that was fitted to several readers of each "
            "scan: lesioncount calibrate with a table of columns scan, reader1, reader2, then count --calibration FILE."
        )
    return fit.pool


def write_another_reader(results: Results, calibration: CalibrationLike | None, reads: Path, /) -> str:
    """Write ``another_reader.tsv`` beside the counts: a row for each scan that was read, see `ReaderPool`.

    Parameters
    ----------
    results : Results
        Counts that the calibration has corrected.
    calibration : CalibrationFit or path
        Fitted to several readers.
    reads : Path
        Table of what one or several readers have counted, as for ``--truth-counts``.

    Returns
    -------
    str
        What was written, in words.
    """
    pool, counted = pool_of(calibration), results.of()
    applied = counted.calibration
    table = read_truth_table(reads, [table_names(scan) for scan in counted.counted])
    rows = []
    for scan in counted.counted:
        if applied is None or not table.knows(*table_names(scan)):
            continue
        read = table.counts_of(*table_names(scan))
        pooled = pool.distribution(scan.distribution(scan.corrected_by(applied)), read)
        rows.append({"scan": scan.shown, "reads": " ".join(map(str, read)), **cells(CountNumbers.of(pooled))})
    if not rows:
        raise TruthError(f"{reads} has a count for none of the {len(counted.counted)} scans.")
    OutputFolder(results.out).write_text(ANOTHER_READER, to_tsv(tuple(rows[0]), rows))
    return f"What another reader would count, for {len(rows)} scans: {results.out / ANOTHER_READER}"

"""What to try where thresholding counts better: regions or peaks, calibrated on the counts at hand."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from lesioncount.assess.beside_truth import Compared, TruthOptions
from lesioncount.cohort.inputs import common_folder
from lesioncount.errors import CalibrationError, LesionCountError
from lesioncount.protocol import CountingProtocol
from lesioncount.results.record import Entry
from lesioncount.results.recorded import Recorded
from lesioncount.runs.file_counts import count_file
from lesioncount.runs.workers import results_of
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.fitting.choice import choose
from lesioncount.trust.fitting.known_truth import KnownTruth
from lesioncount.trust.scores.predictions import Predictions

_USUAL = ("cc", "cc_tuned")


def what_to_try(
    compared: Compared, methods: Mapping[str, Predictions], truth: TruthOptions, *, jobs: int, seed: int
) -> Iterator[str]:
    """A note with the next command, if uncalibrated counts are further off than those of a threshold.

    Maps are read once more. Nothing is said where they cannot be, or where known counts are too few.
    """
    off = {name: float(of.means["mae"].mean()) for name, of in methods.items()}
    usual = min(off[name] for name in _USUAL if name in off)
    results = compared.results
    is_settled = "calibrated" in methods or results.of != "lesions" or results.has_members or truth.reviews is not None
    if is_settled or results.protocol.has_detections or off["raw"] <= usual:
        return
    peaks = replace(results.protocol, candidates="peaks")
    try:
        look = partial(_table, settings=results.settings, protocol=peaks)
        tables = {place: future.result() for place, future in results_of(look, compared.scans, jobs=jobs)}
        known = KnownTruth.of(
            [tables[place] for place in range(len(tables))],
            [one.count for one in compared.truths],
            groups=compared.groups,
        ).read_by([one.readings for one in compared.truths])
        choice = choose(known, protocol=peaks, seed=seed, intervals=False)
    except (CalibrationError, LesionCountError, OSError):
        return
    after = choice.held_out.after["mae"].value
    if after >= off["raw"]:
        return
    known_by = " ".join(f"--known {shlex.quote(str(one))}" for one in ([truth.table] if truth.table else truth.masks))
    folder = common_folder([scan.grid.path.parent for scan in compared.scans])
    yield (
        f"Thresholding is off by {usual:.3g}, these counts by {off['raw']:.3g}. {choice.in_words}, calibrated on these "
        f"counts, would be off by {after:.3g} (held out). Try: lesioncount count {shlex.quote(str(folder))} {known_by} "
        "-o OUT"
    )


def _table(scan: Entry, *, settings: Recorded, protocol: CountingProtocol) -> CandidateTable:
    counted = count_file(Path(scan.grid.path), protocol=protocol, mask=scan.within, **settings.reading)
    return CandidateTable.of_candidates(counted.result.candidates)

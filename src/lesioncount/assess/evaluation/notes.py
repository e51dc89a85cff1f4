"""What a reader of an evaluation must know, in plain sentences."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from lesioncount.assess.beside_truth import Compared, TruthOptions
from lesioncount.assess.evaluation.compared_methods import N_FOLDS, cc_table
from lesioncount.assess.evaluation.evaluation import FEWEST_TO_JUDGE
from lesioncount.cohort.inputs import common_folder
from lesioncount.errors import CalibrationError, LesionCountError
from lesioncount.protocol import CountingProtocol
from lesioncount.results.counts_of import CountsOf
from lesioncount.results.record import Entry
from lesioncount.results.recorded import Recorded
from lesioncount.runs.file_counts import count_file
from lesioncount.runs.workers import results_of
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.fitting.choice import choose
from lesioncount.trust.fitting.known_truth import KnownTruth
from lesioncount.trust.scores.on_support import NLL_FLOOR
from lesioncount.trust.scores.predictions import Predictions

# If more candidates than this are so near 0 or 1, the map is sure of nearly everything.
_POLARISED_SHARE, _NEAR_CERTAIN = 0.8, 0.02


def notes_on(compared: Compared, raw: Predictions) -> tuple[str, ...]:
    """All notes that apply; ``raw`` is what the maps predict without calibration."""
    return (
        *_changes(compared),
        *_left_out(compared),
        *compared.notes,
        *_polarised(compared),
        *_impossible(raw),
        *_guaranteed(compared),
        *doubts_about(compared.results),
        *_not_read(compared),
        *_few(compared),
    )


def _changes(compared: Compared) -> Iterator[str]:
    of = compared.results.of
    if of != "lesions":
        yield f"Counted are {of} lesions between two sessions of a patient: each such pair is one scan here."


def _left_out(compared: Compared) -> Iterator[str]:
    if len(compared.results.failed):
        yield f"{_scans(len(compared.results.failed))} left out: counting failed."
    if compared.n_without_truth:
        yield f"{_scans(compared.n_without_truth)} left out: there is no truth."


def _scans(n: int) -> str:
    return "1 scan was" if n == 1 else f"{n} scans were"


def _polarised(compared: Compared) -> Iterator[str]:
    counted, coupling = compared.results.of, compared.results.as_it_is.coupling
    candidates = np.concatenate([one.existence(counted, coupling) for scan in compared.scans for one in scan.tables])
    sure = float(np.mean((candidates < _NEAR_CERTAIN) | (candidates > 1 - _NEAR_CERTAIN))) if len(candidates) else 0.0
    if sure > _POLARISED_SHARE:
        can_judge = len(set(compared.groups)) >= FEWEST_TO_JUDGE
        narrow = "are too narrow for the errors they make" if can_judge else "may be too narrow"
        yield (
            f"The maps are polarised: {sure:.0%} of the candidates have a probability within {_NEAR_CERTAIN:g} of 0 or "
            f"1. The distributions {narrow}; lesioncount calibrate can widen them."
        )


def _impossible(raw: Predictions) -> Iterator[str]:
    share = float(raw.impossible.mean())
    if share > 0:
        yield (
            f"As counted, the true count has probability 0 in {share:.1%} of the scans: there are more lesions than "
            f"candidates, or fewer than candidates with probability 1. The negative log-likelihood uses "
            f"{NLL_FLOOR:g} instead of 0. A calibration allows for lesions without a candidate, and makes nothing "
            "certain."
        )


def _guaranteed(compared: Compared) -> Iterator[str]:
    rows = compared.by_reader
    intervals = [(scan.counted.guaranteed, truth) for scan, truth in zip(rows.scans, rows.truths, strict=True)]
    held = [interval[0] <= truth.count <= interval[1] for interval, truth in intervals if interval is not None]
    what = "scans" if len(rows.scans) == len(compared.scans) else "readings"
    if held:
        width = np.mean([interval[1] - interval[0] for interval, _ in intervals if interval is not None])
        yield (
            f"The conformal 90 % intervals hold the truth in {sum(held)} of {len(held)} {what} ({np.mean(held):.0%}); "
            f"their mean width is {width:.3g}."
        )


def doubts_about(counts: CountsOf) -> Iterator[str]:
    """What is not known of the calibration that counts were corrected with."""
    if counts.calibration is not None and counts.calibration.is_stated:
        yield counts.calibration.caveat
    if counts.results.run.unlike:
        yield counts.results.run.unlike


def _not_read(compared: Compared) -> Iterator[str]:
    if cc_table(compared) is None:
        why = "For ensembles only counts are compared" if compared.results.has_members else "The maps were not read"
        yield f"{why}: there is no comparison of lesions, and no tuned threshold for CC."


def _few(compared: Compared) -> Iterator[str]:
    n_groups = len(set(compared.groups))
    what = "scan" if compared.groups == tuple(scan.name for scan in compared.scans) else "group"
    if n_groups == 1:
        why = "there is only 1 scan" if what == "scan" else "all scans are of one group"
        yield f"There are no intervals: {why}. A verdict takes {FEWEST_TO_JUDGE} {what}s."
    elif n_groups < FEWEST_TO_JUDGE:
        yield f"The intervals are rough: they come from only {n_groups} {what}s. A verdict takes {FEWEST_TO_JUDGE}."
    if n_groups < N_FOLDS and cc_table(compared) is not None:
        yield f"The threshold of CC is not tuned: that takes at least {N_FOLDS} scans or groups."


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

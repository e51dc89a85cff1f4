"""What is compared: our counts, raw and calibrated, and the usual ways to count, also by their threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.beside_truth import Compared
from lesioncount.results.scan_count import THRESHOLDS
from lesioncount.trust.fitting import KnownTruth
from lesioncount.trust.scores.estimate import Curve
from lesioncount.trust.scores.predictions import Predictions

N_FOLDS = 5


def methods_of(compared: Compared, seed: int, bins: int | None = None) -> dict[str, Predictions]:
    """What each method predicts, by its key; with ``bins``, counts from there on are one class."""
    scans, truth = compared.scans, true_counts(compared)
    once = {scan.name: scan for scan in scans}  # of several readers, a scan is there as often as it was read
    as_it_is = {name: scan.distribution(compared.results.as_it_is) for name, scan in once.items()}
    raw = [as_it_is[scan.name] for scan in scans]
    methods = {"raw": Predictions.of_distributions(raw, truth, bins=bins)}
    applied = compared.results.calibration
    if applied is not None:
        corrected = {name: scan.distribution(scan.corrected_by(applied)) for name, scan in once.items()}
        calibrated = [corrected[scan.name] for scan in scans]
        methods["calibrated"] = Predictions.of_distributions(calibrated, truth, bins=bins)
    numbers = {"cc": np.array([scan.counted.candidates.cc_count for scan in scans], dtype=np.int64)}
    table = cc_table(compared)
    if table is not None and len(set(compared.groups)) >= N_FOLDS:
        numbers["cc_tuned"] = tuned(table, truth, compared.groups, seed=seed, bins=bins)
    numbers["all_zero"] = np.zeros(len(truth), dtype=np.int64)
    return methods | {key: Predictions.of_counts(of, truth, bins=bins) for key, of in numbers.items()}


def tuned(
    table: NDArray[np.int64],
    truth: NDArray[np.int64],
    groups: Sequence[str],
    /,
    *,
    seed: int,
    bins: int | None = None,
) -> NDArray[np.int64]:
    """The connected-component count of each scan, at the threshold that is best on the other folds.

    Best is the least mean absolute error, which is the RPS of a number; with bins, the most accurate classes. Of
    equally good thresholds it is the middle one.
    """
    if bins is None:
        cost = np.abs(table - truth[:, None]).astype(np.float64)
    else:
        cost = (np.minimum(table, bins) != np.minimum(truth, bins)[:, None]).astype(np.float64)
    picked = np.zeros(len(truth), dtype=np.int64)
    for part in KnownTruth.of([np.empty(0)] * len(truth), truth, groups=groups).parts(N_FOLDS, seed=seed):
        mean = np.delete(cost, part, axis=0).mean(axis=0)
        best = np.flatnonzero(mean == mean.min())
        picked[part] = table[part, best[len(best) // 2]]
    return picked


def true_counts(compared: Compared) -> NDArray[np.int64]:
    """The true count of each scan."""
    return np.array([truth.count for truth in compared.truths], dtype=np.int64)


def cc_table(compared: Compared) -> NDArray[np.int64] | None:
    """Connected components of each scan (rows) at each threshold (columns); None if maps were not read."""
    rows = [truth.cc_counts for truth in compared.truths]
    return None if None in rows else np.array(rows, dtype=np.int64)


class ThresholdCurve(Curve, frozen=True):
    """Mean error and accuracy of the connected-component count, by its threshold."""

    threshold: tuple[float, ...]
    cc_mae: tuple[float, ...]
    cc_accuracy: tuple[float, ...]

    @classmethod
    def of(cls, compared: Compared, bins: int | None = None) -> Self | None:
        """From scans with their truth; None if their maps were not read. Bins are those of the accuracy."""
        table = cc_table(compared)
        if table is None:
            return None
        truth, once = true_counts(compared), np.ones((1, len(table)))
        at = [Predictions.of_counts(column, truth, bins=bins).scores(once) for column in table.T]
        return cls(THRESHOLDS, *(tuple(float(of[name][0]) for of in at) for name in ("mae", "accuracy")))

"""What is compared: our counts, raw and calibrated, and the usual ways to count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lesioncount.runs.comparison import Compared
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting import KnownTruth
from lesioncount.trust.scores.summary import MAX_COUNT, Predictions

N_FOLDS = 5


def methods_of(compared: Compared, seed: int) -> dict[str, Predictions]:
    """What each method predicts, by its key."""
    scans, truth = compared.scans, true_counts(compared)
    raw = Predictions.of_distributions([scan.distribution(Calibration()) for scan in scans], truth)
    methods = {"raw": raw}
    applied = compared.results.calibration
    if applied is not None:
        methods["calibrated"] = Predictions.of_distributions([scan.distribution(applied) for scan in scans], truth)
    methods["cc"] = Predictions.of_counts([scan.counted.candidates.cc_count for scan in scans], truth)
    table = cc_table(compared)
    if table is not None and len(set(compared.groups)) >= N_FOLDS:
        methods["cc_tuned"] = Predictions.of_counts(_tuned(table, truth, compared.groups, seed), truth)
    methods["all_zero"] = Predictions.of_counts(np.zeros(len(truth), dtype=np.int64), truth)
    return methods


def _tuned(table: NDArray[np.int64], truth: NDArray[np.int64], groups: Sequence[str], seed: int) -> NDArray[np.int64]:
    """The connected-component count of each scan, at the threshold that is most accurate on the other folds."""
    rows = KnownTruth.of([np.empty(0)] * len(truth), truth, groups=groups).parts(N_FOLDS, seed=seed)
    right = np.minimum(table, MAX_COUNT) == np.minimum(truth, MAX_COUNT)[:, None]
    picked = np.zeros(len(truth), dtype=np.int64)
    for part in rows:
        others = np.delete(right, part, axis=0)
        picked[part] = table[part, int(others.mean(axis=0).argmax())]
    return picked


def true_counts(compared: Compared) -> NDArray[np.int64]:
    """The true count of each scan."""
    return np.array([truth.count for truth in compared.truths], dtype=np.int64)


def cc_table(compared: Compared) -> NDArray[np.int64] | None:
    """Connected components of each scan (rows) at each threshold (columns); None if maps were not read."""
    rows = [truth.cc_counts for truth in compared.truths]
    return None if None in rows else np.array(rows, dtype=np.int64)

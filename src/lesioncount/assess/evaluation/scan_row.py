"""One scan of an evaluation: a row of ``scans.tsv``."""

from __future__ import annotations

import math

import numpy as np

from lesioncount.assess.beside_truth import Compared
from lesioncount.trust.scores.estimate import Number, Numbers
from lesioncount.trust.scores.predictions import Predictions


class ScanRow(Numbers, frozen=True, kw_only=True):
    """What was predicted for one scan, and what is true; the columns of ``scans.tsv``.

    Attributes
    ----------
    scan, group : str
    truth, predicted, median : int
        True and most probable count, and the median: the best single number where the error is counted in lesions.
    expected : float
        Expected count.
    interval90_low, interval90_high : int
    p_truth : float
        Probability of the true count.
    rps : float
        In lesions, on the whole support.
    entropy : float
    cc : int
        Connected components above 0.5.
    """

    scan: str = ""
    group: str = ""
    truth: int = 0
    predicted: int = 0
    median: int = 0
    expected: Number = math.nan
    interval90_low: int = 0
    interval90_high: int = 0
    p_truth: Number = math.nan
    rps: Number = math.nan
    entropy: Number = math.nan
    cc: int = 0


def scan_rows(compared: Compared, predictions: Predictions) -> tuple[ScanRow, ...]:
    """A row per scan."""
    entropy = predictions.entropy if predictions.entropy is not None else np.zeros(len(predictions.truth))
    return tuple(
        ScanRow(
            scan=scan.name,
            group=compared.groups[i],
            truth=int(predictions.truth[i]),
            predicted=int(predictions.predicted[i]),
            median=int(predictions.median[i]),
            expected=float(predictions.expected[i]),
            interval90_low=int(predictions.low[i]),
            interval90_high=int(predictions.high[i]),
            p_truth=float(predictions.p_truth[i]),
            rps=float(predictions.rps[i]),
            entropy=float(entropy[i]),
            cc=scan.counted.candidates.cc_count,
        )
        for i, scan in enumerate(compared.scans)
    )

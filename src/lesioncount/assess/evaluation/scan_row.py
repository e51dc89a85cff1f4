"""One scan of an evaluation: a row of ``scans.tsv``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from lesioncount.assess.beside_truth import Compared
from lesioncount.folder.plain import typed
from lesioncount.trust.scores.predictions import Predictions


@dataclass(frozen=True)
class ScanRow:
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

    scan: str
    group: str
    truth: int
    predicted: int
    median: int
    expected: float
    interval90_low: int
    interval90_high: int
    p_truth: float
    rps: float
    entropy: float
    cc: int

    def to_dict(self) -> dict[str, Any]:
        """As plain values, as files have them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """From what `to_dict` gave, read back from a file."""
        return typed({name: math.nan if value is None else value for name, value in content.items()}, cls)


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

"""Scores as a curve: by the share of certain scans, and by the threshold of connected components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from lesioncount.assess.beside_truth import Compared
from lesioncount.assess.evaluation.compared_methods import cc_table, true_counts
from lesioncount.folder.plain import number_of, typed
from lesioncount.results.scan_count import THRESHOLDS
from lesioncount.trust.scores.predictions import Predictions
from lesioncount.trust.scores.selective import certainty_curve


@dataclass(frozen=True)
class CertaintyCurve:
    """Accuracy among the most certain scans, by the share of scans that are kept."""

    share: tuple[float, ...]
    accuracy: tuple[float, ...]

    @classmethod
    def of(cls, predictions: Predictions) -> Self | None:
        """From predictions; None if they are numbers without uncertainty, or hits are too rare to tell anything."""
        if predictions.entropy is None or not predictions.is_sharp:
            return None
        shares, accuracy = certainty_curve(predictions.entropy, predictions.hits)
        return cls(tuple(shares.tolist()), tuple(accuracy.tolist()))

    def to_dict(self) -> dict[str, Any]:
        """As plain values, as ``evaluation.json`` has them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """From what `to_dict` gave, read back from a file."""
        return cls(*_columns(content, "share", "accuracy"))


@dataclass(frozen=True)
class ThresholdCurve:
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

    def to_dict(self) -> dict[str, Any]:
        """As plain values, as ``evaluation.json`` has them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """From what `to_dict` gave, read back from a file."""
        return cls(*_columns(content, "threshold", "cc_mae", "cc_accuracy"))


def _columns(content: Mapping[str, Any], *names: str) -> list[tuple[float, ...]]:
    columns = [tuple(map(number_of, typed(content[name], list[Any]))) for name in names]
    if not columns[0] or any(len(column) != len(columns[0]) for column in columns):
        raise TypeError(f"expected {', '.join(names)} to be lists of the same length")
    return columns

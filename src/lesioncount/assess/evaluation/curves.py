"""Scores as a curve: by the share of certain scans, and by the threshold of connected components."""

from __future__ import annotations

from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.beside_truth import Compared
from lesioncount.assess.evaluation.compared_methods import cc_table, true_counts
from lesioncount.results.scan_count import THRESHOLDS
from lesioncount.trust.scores.estimate import Curve
from lesioncount.trust.scores.predictions import Predictions
from lesioncount.trust.scores.selective import certainty_curve


def array_of(kind: Any, value: Any) -> NDArray[Any]:
    """The array of this type that a file has as lists; the null of what is unknown becomes NaN."""
    (dtype,) = get_args(get_args(kind)[1])
    return np.array(value, dtype=dtype)


class CertaintyCurve(Curve, frozen=True):
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

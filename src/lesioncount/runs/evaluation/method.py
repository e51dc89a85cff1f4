"""One way to count, and how well it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from lesioncount.runs.evaluation.curves import CertaintyCurve
from lesioncount.runs.plain import estimates_of, typed
from lesioncount.trust.scores.classification import Confusion
from lesioncount.trust.scores.estimate import Estimate
from lesioncount.trust.scores.reliability import Reliability
from lesioncount.trust.scores.summary import Predictions

_ABOUT = {
    "raw": ("lesioncount", "the distribution of the count, straight from the maps"),
    "calibrated": ("calibrated lesioncount", "the same, after the calibration that the scans were counted with"),
    "cc": ("CC above 0.5", "connected components above 0.5, the usual count"),
    "cc_tuned": ("CC, tuned", "connected components above the threshold that works best on the other folds"),
    "all_zero": ("all zero", "no lesion in any scan"),
}


@dataclass(frozen=True, eq=False)
class EvaluatedMethod:
    """One way to count, and how well it did.

    Attributes
    ----------
    key : str
        "raw", "calibrated", "cc", "cc_tuned" or "all_zero".
    name, about : str
        For people.
    scores : mapping of str to Estimate
    confusion : Confusion or None
    reliability : Reliability or None
        Confidence and hits of the predicted count.
    certainty : CertaintyCurve or None
        None for a method that gives one number and no distribution.
    """

    key: str
    name: str
    about: str
    scores: Mapping[str, Estimate]
    confusion: Confusion | None
    reliability: Reliability | None
    certainty: CertaintyCurve | None

    @property
    def is_ours(self) -> bool:
        """Whether it gives a distribution, raw or calibrated, and not only a number."""
        return self.key in ("raw", "calibrated")

    def score(self, name: str) -> Estimate:
        """One of its scores; without a value if it has none."""
        return self.scores.get(name, Estimate())

    @classmethod
    def of(cls, key: str, predictions: Predictions, scores: Mapping[str, Estimate]) -> Self:
        """From what it predicted, and the scores of that."""
        certainty = CertaintyCurve.of(predictions)
        return cls(key, *_ABOUT[key], scores, predictions.confusion, predictions.reliability, certainty)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, as ``evaluation.json`` has them."""
        return {
            "name": self.name,
            "about": self.about,
            "scores": {name: score.to_dict() for name, score in self.scores.items()},
            "confusion": None if self.confusion is None else self.confusion.matrix.tolist(),
            "reliability": None if self.reliability is None else self.reliability.to_dict(),
            "certainty": None if self.certainty is None else self.certainty.to_dict(),
        }

    @classmethod
    def from_dict(cls, key: str, content: Mapping[str, Any]) -> Self:
        """From what `to_dict` gave, read back from a file."""
        matrix, reliability, certainty = (content.get(name) for name in ("confusion", "reliability", "certainty"))
        return cls(
            key,
            typed(content["name"], str),
            typed(content["about"], str),
            estimates_of(content["scores"]),
            None if matrix is None else _confusion(matrix),
            None if reliability is None else Reliability.from_dict(typed(reliability, dict[str, Any])),
            None if certainty is None else CertaintyCurve.from_dict(typed(certainty, dict[str, Any])),
        )


def _confusion(value: Any) -> Confusion:
    matrix = np.array(typed(value, list[Any]), dtype=np.int64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0 or matrix.min() < 0:
        raise TypeError("expected a square confusion matrix of numbers of scans")
    return Confusion(matrix)

"""One way to count, and how well it did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np

from lesioncount.assess.evaluation.curves import CertaintyCurve
from lesioncount.folder.plain import estimates_of, typed
from lesioncount.trust.candidate_table import Counted
from lesioncount.trust.scores.classification import Confusion
from lesioncount.trust.scores.estimate import Estimate
from lesioncount.trust.scores.pit import CoverageCurve, PitHistogram, randomised_pit
from lesioncount.trust.scores.predictions import Predictions
from lesioncount.trust.scores.reliability import Reliability

T = TypeVar("T")

# Of changes, the usual ways are others.
_OF_CHANGES = {
    "cc": ("subtraction at 0.5", "components above 0.5 at one time and not at the other, the usual count of changes"),
    "cc_tuned": ("tuned subtraction", "the same above the threshold that works best on the other folds"),
    "all_zero": ("no change", "no change in any pair"),
}

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
    pit : PitHistogram or None
        Where the truth lies in the distributions; None for a method that gives one number and no distribution.
    coverage : CoverageCurve or None
        How often intervals hold the truth; None likewise.
    confusion : Confusion or None
        Of classes, where there are bins.
    reliability : Reliability or None
        Confidence and hits of the predicted count, where exact hits tell anything.
    certainty : CertaintyCurve or None
        None likewise, and for a method that gives one number.
    """

    key: str
    name: str
    about: str
    scores: Mapping[str, Estimate]
    pit: PitHistogram | None
    coverage: CoverageCurve | None
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
    def of(
        cls,
        key: str,
        predictions: Predictions,
        scores: Mapping[str, Estimate],
        *,
        seed: int = 0,
        counted: Counted = "lesions",
    ) -> Self:
        """From what it predicted, and the scores of that; the seed is that of the randomised transform."""
        about = _ABOUT if counted == "lesions" else _ABOUT | _OF_CHANGES
        # What bins hide, P(C < truth) among "4 or more", is known here: the transform is that of the whole support.
        pit = None if predictions.entropy is None else randomised_pit(predictions.below, predictions.p_truth, seed=seed)
        return cls(
            key,
            *about[key],
            scores,
            None if pit is None else PitHistogram.of(pit),
            None if pit is None else CoverageCurve.of(pit),
            None if predictions.bins is None else predictions.confusion,
            predictions.reliability if predictions.is_sharp else None,
            CertaintyCurve.of(predictions),
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain values, as ``evaluation.json`` has them."""
        parts = {name: getattr(self, name) for name in ("pit", "coverage", "reliability", "certainty")}
        return {
            "name": self.name,
            "about": self.about,
            "scores": {name: score.to_dict() for name, score in self.scores.items()},
            "confusion": None if self.confusion is None else self.confusion.matrix.tolist(),
            **{name: None if part is None else part.to_dict() for name, part in parts.items()},
        }

    @classmethod
    def from_dict(cls, key: str, content: Mapping[str, Any]) -> Self:
        """From what `to_dict` gave, read back from a file."""
        matrix = content.get("confusion")
        return cls(
            key,
            typed(content["name"], str),
            typed(content["about"], str),
            estimates_of(content["scores"]),
            _part(content, "pit", PitHistogram.from_dict),
            _part(content, "coverage", CoverageCurve.from_dict),
            None if matrix is None else _confusion(matrix),
            _part(content, "reliability", Reliability.from_dict),
            _part(content, "certainty", CertaintyCurve.from_dict),
        )


def _part(content: Mapping[str, Any], name: str, read: Callable[[dict[str, Any]], T]) -> T | None:
    value = content.get(name)
    return None if value is None else read(typed(value, dict[str, Any]))


def _confusion(value: Any) -> Confusion:
    matrix = np.array(typed(value, list[Any]), dtype=np.int64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0 or matrix.min() < 0:
        raise TypeError("expected a square confusion matrix of numbers of scans")
    return Confusion(matrix)

"""One way to count, and how well it did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from lesioncount.errors import ScoreError
from lesioncount.trust.candidate_table import Counted
from lesioncount.trust.scores.estimate import Curve, Estimate
from lesioncount.trust.scores.pit import CoverageCurve, PitHistogram, randomised_pit
from lesioncount.trust.scores.predictions import Predictions
from lesioncount.trust.scores.reliability import ReliabilityBins
from lesioncount.trust.scores.selective import certainty_curve

# Of changes, the usual ways are others.
_OF_CHANGES = {
    "cc": ("subtraction at 0.5", "components above 0.5 at one time and not at the other, the usual count of changes"),
    "cc_tuned": ("tuned subtraction", "the same above the threshold that works best on the other folds"),
    "all_zero": ("no change", "no change in any pair"),
}

# Of detections, there are no components.
_OF_DETECTIONS = {
    "raw": ("lesioncount", "the distribution of the count, straight from the scores"),
    "cc": ("scores above 0.5", "detections with a score above 0.5, the usual count"),
    "cc_tuned": ("scores, tuned cut", "detections above the score that works best on the other folds"),
}

_ABOUT = {
    "raw": ("lesioncount", "the distribution of the count, straight from the maps"),
    "calibrated": ("calibrated lesioncount", "the same, after the calibration that the scans were counted with"),
    "cc": ("CC above 0.5", "connected components above 0.5, the usual count"),
    "cc_tuned": ("CC, tuned", "connected components above the threshold that works best on the other folds"),
    "all_zero": ("all zero", "no lesion in any scan"),
}


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


class EvaluatedMethod(Struct, frozen=True, eq=False, kw_only=True, dict=True):
    """One way to count, and how well it did.

    Attributes
    ----------
    key : str
        "raw", "calibrated", "cc", "cc_tuned" or "all_zero": the key under which it stands in an evaluation.
    name, about : str
        For people.
    scores : dict of str to (Estimate or None)
    confusion : array of int or None
        Scans by their true class (rows) and the predicted one (columns), where there are bins.
    pit : PitHistogram or None
        Where the truth lies in the distributions; None for a method that gives one number and no distribution.
    coverage : CoverageCurve or None
        How often intervals hold the truth; None likewise.
    reliability : ReliabilityBins or None
        Confidence and hits of the predicted count, where exact hits tell anything.
    certainty : CertaintyCurve or None
        None likewise, and for a method that gives one number.
    """

    name: str = ""
    about: str = ""
    scores: dict[str, Estimate | None] = {}
    confusion: NDArray[np.int64] | None = None
    pit: PitHistogram | None = None
    coverage: CoverageCurve | None = None
    reliability: ReliabilityBins | None = None
    certainty: CertaintyCurve | None = None

    key: ClassVar[str] = ""

    def __post_init__(self) -> None:
        of = self.confusion
        if of is not None and (of.ndim != 2 or of.shape[0] != of.shape[1] or of.size == 0 or of.min() < 0):
            raise ScoreError("Expected a square confusion matrix of numbers of scans.")

    @property
    def is_ours(self) -> bool:
        """Whether it gives a distribution, raw or calibrated, and not only a number."""
        return self.key in ("raw", "calibrated")

    def score(self, name: str) -> Estimate:
        """One of its scores; without a value if it has none."""
        return self.scores.get(name) or Estimate()

    @classmethod
    def of(
        cls,
        key: str,
        predictions: Predictions,
        scores: Mapping[str, Estimate],
        *,
        seed: int = 0,
        counted: Counted = "lesions",
        has_detections: bool = False,
    ) -> Self:
        """From what it predicted, and the scores of that; the seed is that of the randomised transform."""
        texts = _ABOUT | (_OF_DETECTIONS if has_detections else {}) | ({} if counted == "lesions" else _OF_CHANGES)
        # What bins hide, P(C < truth) among "4 or more", is known here: the transform is that of the whole support.
        pit = None if predictions.entropy is None else randomised_pit(predictions.below, predictions.p_truth, seed=seed)
        name, about = texts[key]
        return cls(
            name=name,
            about=about,
            scores={**scores},
            confusion=None if predictions.bins is None else predictions.confusion.matrix,
            pit=None if pit is None else PitHistogram.of(pit),
            coverage=None if pit is None else CoverageCurve.of(pit),
            reliability=ReliabilityBins.of(predictions.reliability) if predictions.is_sharp else None,
            certainty=CertaintyCurve.of(predictions),
        )

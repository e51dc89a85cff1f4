"""How good counts are: accuracy, proper scores, calibration, and whether uncertainty is useful."""

from lesioncount.trust.scores.agreement import Agreement, BlandAltman, Tercile, concordance
from lesioncount.trust.scores.bootstrap import resampled_weights, score_all
from lesioncount.trust.scores.classification import Confusion, confusion
from lesioncount.trust.scores.estimate import Estimate
from lesioncount.trust.scores.lesions import LesionMatch, match_lesions
from lesioncount.trust.scores.on_support import NLL_FLOOR, nll, rps
from lesioncount.trust.scores.pit import CoverageCurve, PitHistogram, randomised_pit
from lesioncount.trust.scores.predictions import Predictions
from lesioncount.trust.scores.reliability import Reliability, count_reliability, reliability
from lesioncount.trust.scores.selective import auroc, certainty_curve

__all__ = [
    "NLL_FLOOR",
    "Agreement",
    "BlandAltman",
    "Confusion",
    "CoverageCurve",
    "Estimate",
    "LesionMatch",
    "PitHistogram",
    "Predictions",
    "Reliability",
    "Tercile",
    "auroc",
    "certainty_curve",
    "concordance",
    "confusion",
    "count_reliability",
    "match_lesions",
    "nll",
    "randomised_pit",
    "reliability",
    "resampled_weights",
    "rps",
    "score_all",
]

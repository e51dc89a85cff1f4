"""How good counts are: accuracy, proper scores, calibration, and what uncertainty is worth."""

from lesioncount.scores.bootstrap import resampled_weights
from lesioncount.scores.classification import Confusion, confusion
from lesioncount.scores.lesions import LesionMatch, match_lesions
from lesioncount.scores.proper import NLL_FLOOR, nll, rps
from lesioncount.scores.reliability import Reliability, count_reliability, reliability
from lesioncount.scores.selective import auroc, certainty_curve
from lesioncount.scores.summary import Predictions, Score, score_all

__all__ = [
    "NLL_FLOOR",
    "Confusion",
    "LesionMatch",
    "Predictions",
    "Reliability",
    "Score",
    "auroc",
    "certainty_curve",
    "confusion",
    "count_reliability",
    "match_lesions",
    "nll",
    "reliability",
    "resampled_weights",
    "rps",
    "score_all",
]

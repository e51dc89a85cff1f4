"""How good counts are: accuracy, proper scores, calibration, and what uncertainty is worth."""

from lesioncount.scores.classification import Confusion, confusion
from lesioncount.scores.proper import NLL_FLOOR, nll, rps
from lesioncount.scores.reliability import Reliability, count_reliability, reliability

__all__ = ["NLL_FLOOR", "Confusion", "Reliability", "confusion", "count_reliability", "nll", "reliability", "rps"]

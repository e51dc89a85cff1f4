"""Results and truth → how good the counts are."""

from lesioncount.runs.evaluation.evaluate import evaluate, known_truth
from lesioncount.runs.evaluation.evaluation import Evaluation
from lesioncount.runs.evaluation.files import read_evaluation

__all__ = ["Evaluation", "evaluate", "known_truth", "read_evaluation"]

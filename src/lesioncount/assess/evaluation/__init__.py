"""Results and truth → how good the counts are."""

from lesioncount.assess.evaluation.evaluate import evaluate, known_truth
from lesioncount.assess.evaluation.evaluation import Evaluation, read_evaluation

__all__ = ["Evaluation", "evaluate", "known_truth", "read_evaluation"]

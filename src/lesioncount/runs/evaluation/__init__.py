"""Results and truth → how good the counts are."""

from lesioncount.runs.evaluation.evaluate import evaluate, known_truth

__all__ = ["evaluate", "known_truth"]

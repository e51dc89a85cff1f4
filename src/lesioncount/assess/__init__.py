"""What reads results: truth, evaluation, groups of patients, reviews."""

from lesioncount.assess.groups import TrialSummary, summarize

__all__ = ["TrialSummary", "summarize"]

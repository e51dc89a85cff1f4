"""Results → what is known of groups of patients, such as the arms of a trial."""

from lesioncount.assess.groups.summarize import summarize, summarize_counts
from lesioncount.assess.groups.trial_summary import TrialSummary
from lesioncount.results.counts_of import CountedSubject

__all__ = ["CountedSubject", "TrialSummary", "summarize", "summarize_counts"]

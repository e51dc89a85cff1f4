"""Results → what is known of groups of patients, such as the arms of a trial."""

from lesioncount.runs.groups.subjects import CountedCohort, CountedSubject
from lesioncount.runs.groups.summarize import summarize, summarize_cohort
from lesioncount.runs.groups.trial_summary import TrialSummary

__all__ = ["CountedCohort", "CountedSubject", "TrialSummary", "summarize", "summarize_cohort"]

"""Results → what is known of groups of patients, such as the arms of a trial."""

from lesioncount.assess.groups.subjects import CountedCohort, CountedSubject
from lesioncount.assess.groups.summarize import summarize, summarize_cohort
from lesioncount.assess.groups.trial_summary import TrialSummary

__all__ = ["CountedCohort", "CountedSubject", "TrialSummary", "summarize", "summarize_cohort"]

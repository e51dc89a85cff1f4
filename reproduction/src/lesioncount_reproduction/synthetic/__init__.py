"""Cohorts of synthetic scans with enhancing lesions, made from a seed: one to count in, one to follow over time."""

from lesioncount_reproduction.synthetic.ageing import AgeingCohort
from lesioncount_reproduction.synthetic.gad import GadCohort

__all__ = ["AgeingCohort", "GadCohort"]

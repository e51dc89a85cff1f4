"""A cohort of synthetic scans with enhancing lesions, made from a seed."""

from lesioncount.paper.synthetic.gad import GadCohort

__all__ = ["GadCohort"]

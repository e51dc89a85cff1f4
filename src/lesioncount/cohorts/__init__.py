"""Cohorts: scans to learn from, made up or read from files."""

from lesioncount.cohorts.folder import FolderCohort, read_cohort
from lesioncount.cohorts.gad import GadCohort
from lesioncount.cohorts.leaf import Leaf, LeafCohort, read_leaves
from lesioncount.cohorts.scan import SEQUENCES, SPLITS, Cohort, Scan, z_scored
from lesioncount.cohorts.writing import write_cohort

__all__ = [
    "SEQUENCES", "SPLITS", "Cohort", "FolderCohort", "GadCohort", "Leaf", "LeafCohort", "Scan", "read_cohort",
    "read_leaves", "write_cohort", "z_scored",
]  # fmt: skip

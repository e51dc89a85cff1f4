"""Counts of a group of patients: totals, means and rate ratios, with the doubt about each count in them."""

"""Scans with known truth → a calibration, and the evidence for it."""

from lesioncount.fitting.evidence import CalibrationFit, ConformalFit, HeldOut
from lesioncount.fitting.fit import fit_calibration
from lesioncount.fitting.known_truth import KnownTruth

__all__ = ["CalibrationFit", "ConformalFit", "HeldOut", "KnownTruth", "fit_calibration"]

"""Scans with known truth → a calibration, and the evidence for it."""

from lesioncount.trust.fitting.choice import Choice, choose
from lesioncount.trust.fitting.evidence import CalibrationFit, ConformalFit, HeldOut, load_calibration
from lesioncount.trust.fitting.fit import fit_calibration
from lesioncount.trust.fitting.known_truth import KnownTruth

__all__ = [
    "CalibrationFit",
    "Choice",
    "ConformalFit",
    "HeldOut",
    "KnownTruth",
    "choose",
    "fit_calibration",
    "load_calibration",
]

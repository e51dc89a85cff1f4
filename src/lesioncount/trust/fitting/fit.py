"""Scans whose truth is known → a `Calibration`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import CalibrationError
from lesioncount.protocol import CountingProtocol
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting.known_truth import KnownTruth
from lesioncount.trust.fitting.likelihood import CountLikelihood, LesionLikelihood, Likelihood
from lesioncount.trust.fitting.newton import minimum

# Three numbers are fitted; with fewer scans or lesions than this they would be those of the sample, not of the network.
MIN_SCANS = 20
MIN_LESIONS = 10

# What is taken as likely before any data: about this far from "as it is", in standard deviations of the logarithm of
# the slope and of the offset. Weak: a cohort of 20 scans outweighs it.
_SD_LOG_SLOPE = 1.5
_SD_OFFSET = 3.0

# Half a missed lesion in addition to those seen: where none was seen, the rate is small, but never 0.
_MISSED_IN_ADVANCE = 0.5

_LOWEST = np.array([math.log(0.02), -8.0, math.log(1e-6)])
_HIGHEST = np.array([math.log(20.0), 8.0, math.log(1e3)])


def fit_calibration(truth: KnownTruth, /, *, protocol: CountingProtocol | None = None) -> Calibration:
    """The calibration under which the truth is most probable.

    Parameters
    ----------
    truth : KnownTruth
        Where it knows which candidates have a true lesion, these are fitted; else the counts alone, for which no mask
        is needed.
    protocol : CountingProtocol, optional
        What counted as one lesion.

    Notes
    -----
    See `Calibration` for the model. From counts: maximises Σ log P(c; slope, offset, μ). From lesions: the likelihood
    of the candidates that own one, and of the numbers of lesions that none owns. A weak prior holds the parameters near
    "as it is", and a few scans whose truth is out of reach of any calibration are given little weight: P is mixed with
    5 % of a spread over all counts.
    """
    n_scans, n_lesions = len(truth), int(truth.counts.sum())
    if n_scans < MIN_SCANS or n_lesions < MIN_LESIONS:
        raise CalibrationError(
            f"A calibration needs at least {MIN_SCANS} scans with known truth and {MIN_LESIONS} true lesions among "
            f"them, but there are {n_scans} and {n_lesions}. The positive weight of a loss can be undone without "
            "fitting: Calibration.for_positive_weight (--positive-weight)."
        )
    if truth.owns is None:
        return _fitted(CountLikelihood(truth.existence, truth.counts), f"the counts of {n_scans} scans", protocol)
    n_owned = np.array([owns.sum() for owns in truth.owns])
    likelihood = LesionLikelihood(
        np.concatenate(truth.existence), np.concatenate(truth.owns), np.maximum(truth.counts - n_owned, 0)
    )
    return _fitted(likelihood, f"the lesions of {n_scans} scans", protocol)


def _fitted(likelihood: Likelihood, origin: str, protocol: CountingProtocol | None) -> Calibration:
    def objective(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        slope, offset, rate = math.exp(parameters[0]), parameters[1], math.exp(parameters[2])
        value, gradient = likelihood(slope, offset, rate)
        prior = parameters[0] ** 2 / (2 * _SD_LOG_SLOPE**2) + offset**2 / (2 * _SD_OFFSET**2)
        pull = np.array([parameters[0] / _SD_LOG_SLOPE**2, offset / _SD_OFFSET**2, -_MISSED_IN_ADVANCE])
        return value + prior - _MISSED_IN_ADVANCE * parameters[2], gradient * np.array([slope, 1.0, rate]) + pull

    best = minimum(objective, np.array([0.0, 0.0, math.log(0.05)]), _LOWEST, _HIGHEST)
    slope, offset, rate = math.exp(best[0]), float(best[1]), math.exp(best[2])
    return Calibration(slope, offset, rate, protocol, origin)

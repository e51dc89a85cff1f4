"""What is taken as likely before any data, and the scale on which numbers are fitted."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting.candidates_of_scans import Numbers

# All but offset and crowding are fitted as logarithms: they are above 0, and doubling is as far as halving.
_IS_LOG = np.array([True, False, True, True, True, True, False])

# Around "as it is": slope 1, offset 0, hardly any spread, hardly any lesion without a candidate. How far from there is
# nothing unusual (in the same units; of a weight of 3, the offset is 1.1).
_CENTRE = np.array([0.0, 0.0, math.log(0.03), math.log(0.03), math.log(0.01), 0.0, 0.0])
_WIDTH = np.array([0.5, 0.9, 1.0, 1.5, 1.2, 1.0, 0.3])

# Log posterior log(1 + u²) instead of u²/2: chance is pulled back to the centre, while a network that is far off
# (forty times too many lesions, or twenty times too sure) is corrected nearly as if there were no prior.
_HAS_HEAVY_TAILS = np.array([True, True, True, False, True, False, True])

# Where all candidates of a scan share a shift of this size or more, hardly anything is left that they tell: a normal
# prior on the spread itself keeps few scans from running there.
_LARGE_SPREAD = 2.0
_SPREAD = Numbers._fields.index("spread")

LOWEST = np.array([math.log(0.02), -25.0, math.log(1e-4), math.log(1e-6), math.log(1e-5), math.log(0.1), -8.0])
HIGHEST = np.array([math.log(20.0), 25.0, math.log(10.0), math.log(1e3), math.log(10.0), math.log(1e4), 8.0])

# Where no calibration should end. (A spread or a share that is as small as can be is none, and says nothing bad.)
_MUST_STAY_ABOVE = np.array([True, True, False, False, False, True, True])
_MUST_STAY_BELOW = np.array([True, True, True, True, True, False, True])


def point_of(numbers: Numbers) -> NDArray[np.float64]:
    """Numbers on the scale on which they are fitted, within bounds."""
    values = np.array(numbers)
    with np.errstate(divide="ignore"):
        return np.clip(np.where(_IS_LOG, np.log(np.where(_IS_LOG, values, 1.0)), values), LOWEST, HIGHEST)


def numbers_of(point: NDArray[np.float64]) -> Numbers:
    """The way back."""
    return Numbers(*np.where(_IS_LOG, np.exp(np.where(_IS_LOG, point, 0.0)), point).tolist())


def stretch_at(point: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much each number changes with the point."""
    return np.where(_IS_LOG, np.array(numbers_of(point)), 1.0)


def penalty(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """Negative logarithm of the prior, and its gradient."""
    u = (point - _CENTRE) / _WIDTH
    values = np.where(_HAS_HEAVY_TAILS, np.log1p(u**2), u**2 / 2)
    gradient = np.where(_HAS_HEAVY_TAILS, 2 * u / (1 + u**2), u) / _WIDTH
    large = math.exp(2 * point[_SPREAD]) / _LARGE_SPREAD**2
    gradient[_SPREAD] += large
    return float(values.sum()) + large / 2, gradient


def curvature() -> NDArray[np.float64]:
    """Second derivatives of the prior, about."""
    return np.diag(1 / _WIDTH**2)


def at_bound(point: NDArray[np.float64]) -> list[str]:
    """The names of the numbers that ran to a bound where no calibration should end."""
    out = (_MUST_STAY_ABOVE & (point <= LOWEST)) | (_MUST_STAY_BELOW & (point >= HIGHEST))
    return [name for name, is_out in zip(Numbers._fields, out, strict=True) if is_out]


def values_of(calibration: Calibration, typical_count: float) -> Numbers:
    """The numbers of a calibration, with the offset of scans that seem to have so many lesions."""
    crowd = math.log1p(typical_count) - math.log1p(calibration.typical_count)
    return Numbers(
        slope=calibration.slope,
        offset=calibration.offset + calibration.crowding * crowd,
        spread=calibration.spread,
        extra_rate=calibration.extra_rate,
        extra_share=calibration.extra_share,
        extra_shape=min(calibration.extra_shape, math.exp(HIGHEST[Numbers._fields.index("extra_shape")])),
        crowding=calibration.crowding,
    )

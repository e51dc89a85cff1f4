"""What is taken as likely before any data, and the scale on which numbers are fitted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting.candidates_of_scans import Numbers
from lesioncount.trust.fitting.known_truth import KnownTruth

# In the order of `Numbers`; the last entry is of each weight of a feature.

# All but offset, crowding and weights are fitted as logarithms: they are above 0, and doubling is as far as halving.
_IS_LOG = np.array([True, False, True, True, True, True, False, False])

# Around "as it is": slope 1, offset 0, hardly any spread, hardly any lesion without a candidate. How far from there is
# nothing unusual (in the same units; of a weight of 3 in a loss, the offset is 1.1).
_CENTRE = np.array([0.0, 0.0, math.log(0.03), math.log(0.03), math.log(0.01), 0.0, 0.0, 0.0])
_WIDTH = np.array([0.5, 0.9, 1.0, 1.5, 1.2, 1.0, 0.3, 1.0])

# Log posterior log(1 + u²) instead of u²/2: chance is pulled back to the centre, while a network that is far off
# (forty times too many lesions, or twenty times too sure) is corrected nearly as if there were no prior.
_HAS_HEAVY_TAILS = np.array([True, True, True, False, True, False, True, False])

# Where all candidates of a scan share a shift of this size or more, hardly anything is left that they tell: a normal
# prior on the spread itself keeps few scans from running there.
_LARGE_SPREAD = 2.0
_SPREAD = Numbers._fields.index("spread")

_LOWEST = np.array([math.log(0.02), -25.0, math.log(1e-4), math.log(1e-6), math.log(1e-5), math.log(0.1), -8.0, -8.0])
_HIGHEST = np.array([math.log(20.0), 25.0, math.log(10.0), math.log(1e3), math.log(10.0), math.log(1e4), 8.0, 8.0])

# Where no calibration should end. (A spread or a share that is as small as can be is none, and says nothing bad.)
_MUST_STAY_ABOVE = np.array([True, True, False, False, False, True, True, True])
_MUST_STAY_BELOW = np.array([True, True, True, True, True, False, True, True])


def _of_each(values: NDArray[Any], size: int) -> NDArray[Any]:
    """For a point with so many entries, of which those after the seventh are weights."""
    return np.append(values[:-1], np.full(size + 1 - len(values), values[-1]))


def point_of(numbers: Numbers) -> NDArray[np.float64]:
    """Numbers on the scale on which they are fitted, within bounds."""
    values = numbers.vector
    is_log = _of_each(_IS_LOG, len(values))
    with np.errstate(divide="ignore"):
        return np.clip(np.where(is_log, np.log(np.where(is_log, values, 1.0)), values), *bounds(len(values)))


def numbers_of(point: NDArray[np.float64]) -> Numbers:
    """The way back."""
    is_log = _of_each(_IS_LOG, len(point))
    return Numbers.of_vector(np.where(is_log, np.exp(np.where(is_log, point, 0.0)), point))


def stretch_at(point: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much each number changes with the point."""
    return np.where(_of_each(_IS_LOG, len(point)), numbers_of(point).vector, 1.0)


def bounds(size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lowest and the highest point with so many entries."""
    return _of_each(_LOWEST, size), _of_each(_HIGHEST, size)


def penalty(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """Negative logarithm of the prior, and its gradient."""
    centre, width, heavy = (_of_each(of, len(point)) for of in (_CENTRE, _WIDTH, _HAS_HEAVY_TAILS))
    u = (point - centre) / width
    values = np.where(heavy, np.log1p(u**2), u**2 / 2)
    gradient = np.where(heavy, 2 * u / (1 + u**2), u) / width
    large = math.exp(2 * point[_SPREAD]) / _LARGE_SPREAD**2
    gradient[_SPREAD] += large
    return float(values.sum()) + large / 2, gradient


def curvature(size: int) -> NDArray[np.float64]:
    """Second derivatives of the prior, about."""
    return np.diag(1 / _of_each(_WIDTH, size) ** 2)


def at_bound(point: NDArray[np.float64], features: Sequence[str]) -> dict[str, float]:
    """The numbers that ran to a bound where no calibration should end, by name."""
    lowest, highest = bounds(len(point))
    above, below = (_of_each(of, len(point)) for of in (_MUST_STAY_ABOVE, _MUST_STAY_BELOW))
    out = (above & (point <= lowest)) | (below & (point >= highest))
    names = (*Numbers._fields[:-1], *(f"the weight of {name}" for name in features))
    found = zip(names, numbers_of(point).vector.tolist(), out, strict=True)
    return {name: value for name, value, is_out in found if is_out}


def values_of(calibration: Calibration, typical_count: float, truth: KnownTruth) -> Numbers:
    """The numbers of a calibration, with the offset of what is typical here."""
    crowd = math.log1p(typical_count) - math.log1p(calibration.typical_count)
    (means, widths), weights = truth.usual_features, [calibration.weights.get(name, 0.0) for name in truth.features]
    apart = means - [calibration.typical_features.get(name, 0.0) for name in truth.features]
    return Numbers(
        slope=calibration.slope,
        offset=calibration.offset + calibration.crowding * crowd + float(apart @ np.array(weights)),
        spread=calibration.spread,
        extra_rate=calibration.extra_rate,
        extra_share=calibration.extra_share,
        extra_shape=min(calibration.extra_shape, math.exp(_HIGHEST[Numbers._fields.index("extra_shape")])),
        crowding=calibration.crowding,
        weights=tuple(w * width if math.isfinite(width) else 0.0 for w, width in zip(weights, widths, strict=True)),
    )

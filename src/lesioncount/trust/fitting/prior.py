"""What is taken as likely before any data, and the scale on which numbers are fitted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.trust.calibration import Calibration, logit
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.fitting.candidates_of_scans import Numbers
from lesioncount.trust.fitting.known_truth import KnownTruth

# In the order of `Numbers`; the last entry is of each weight of a feature.

# All but offset, crowding and weights are fitted as logarithms: they are above 0, and doubling is as far as halving.
_IS_LOG = np.array([True, False, True, True, True, True, False, False])


@dataclass(frozen=True, eq=False)
class Prior:
    """What numbers are likely, on the scale on which they are fitted.

    Parameters
    ----------
    centre, width : array, shape (8,)
        In the order of `Numbers`; the last entry is of each weight of a feature.
    tails : tuple of float
        a and b of the cost a · log(1 + u² / b), where u is the distance in widths: chance is pulled back to the centre,
        while a network that is far off (forty times too many lesions, or twenty times too sure) is corrected nearly as
        if there were no prior. Extra lesions per scan, their shape, and weights have normal tails instead; the offset
        has those of Cauchy's distribution.
    large_spread : float
        Where all candidates of a scan share a shift of this size or more, hardly anything is left that they tell: a
        normal prior on the spread itself keeps few scans from running there.
    anchor : float, default 0
        The logit at which the prior of the offset is one of the corrected logit.
    """

    centre: NDArray[np.float64]
    width: NDArray[np.float64]
    tails: tuple[float, float]
    large_spread: float
    anchor: float = 0.0

    def penalty(self, point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Negative logarithm of the prior, without a constant, and its gradient."""
        size = len(point)
        centre, width, heavy, offset = (
            _of_each(of, size) for of in (self.centre, self.width, _HAS_HEAVY_TAILS, _IS_OFFSET)
        )
        at_anchor = math.exp(point[_SLOPE]) * self.anchor
        u = (point - centre + at_anchor * offset) / width
        a, b = (np.where(offset, 1.0, one) for one in self.tails)
        values = np.where(heavy, a * np.log1p(u**2 / b), u**2 / 2)
        gradient = np.where(heavy, 2 * a * u / (b + u**2), u) / width
        gradient[_SLOPE] += gradient[_OFFSET] * at_anchor
        large = math.exp(2 * point[_SPREAD]) / self.large_spread**2
        gradient[_SPREAD] += large
        return float(values.sum()) + large / 2, gradient

    def to_dict(self, *left_out: str, **others: float) -> dict[str, dict[str, float]]:
        """Its numbers by name, but for some, as a calibration keeps them; ``others`` are kept beside them."""
        names = {f"log_{name}" if _IS_LOG[place] else name: place for place, name in enumerate(Numbers._fields)}
        kept = {name: place for name, place in names.items() if name not in left_out}
        centre, width = ({name: float(of[place]) for name, place in kept.items()} for of in (self.centre, self.width))
        return {"centre": centre, "width": width, "others": {"large_spread": self.large_spread, **others}}

    def curvature(self, size: int) -> NDArray[np.float64]:
        """Second derivatives, about."""
        return np.diag(1 / _of_each(self.width, size) ** 2)

    @property
    def is_heavy(self) -> NDArray[np.bool_]:
        """Which numbers have heavy tails."""
        return _HAS_HEAVY_TAILS

    @property
    def log_scale(self) -> float:
        """Logarithm of the density where nothing is penalised, of the numbers that are drawn: what evidence needs."""
        peaks = np.where(_HAS_HEAVY_TAILS, 3 / 8 / 0.8, 1 / math.sqrt(2 * math.pi))
        peaks[_OFFSET] = 1 / math.pi
        return float(np.log(peaks / self.width)[list(DRAWN)].sum())


_HAS_HEAVY_TAILS = np.array([True, True, True, False, True, False, True, False])
_SLOPE, _OFFSET, _SPREAD = (Numbers._fields.index(name) for name in ("slope", "offset", "spread"))
_IS_OFFSET = np.arange(len(_IS_LOG)) == _OFFSET

# Of what is drawn from a posterior: all but the shape of extra lesions and the weights of features.
DRAWN = tuple(place for place, name in enumerate(Numbers._fields) if name not in ("extra_shape", "weights"))

# Around "as it is": slope 1, offset 0, hardly any spread, hardly any lesion without a candidate. How far from there is
# nothing unusual (in the same units; of a weight of 3 in a loss, the offset is 1.1).
AROUND_AS_IT_IS = Prior(
    centre=np.array([0.0, 0.0, math.log(0.03), math.log(0.03), math.log(0.01), 0.0, 0.0, 0.0]),
    width=np.array([0.5, 0.9, 1.0, 1.5, 1.2, 1.0, 0.3, 1.0]),
    tails=(1.0, 1.0),
    large_spread=2.0,
)

# What fits of five kinds of data have come to (LUNA16's detector on LIDC, detectors of cells, leaves, nuclei,
# platelets): log slope 0.06, 0.70, 0.46, 0.58, 0.48; log spread 0.31, 0.25, 0.74, none, 0.78. The prior of the slope
# is wider than these and nearer to 1: networks that are too sure are common elsewhere. (LIDC: RPS .615 and .605
# from 10 and 20 scans, with a width of 0.3 around 0.48 .620 and .602. Leaves and nuclei were not tried again.)
# Student's t with four degrees of freedom, times 0.8. The offset is such that a candidate at the anchor is a lesion
# about one time in four.
LEARNT = Prior(
    centre=np.array([0.3, -1.2, 0.0, math.log(0.03), math.log(0.01), 0.0, 0.0, 0.0]),
    width=np.array([0.6, 1.5, 0.9, 1.5, 1.2, 1.0, 0.4, 1.0]),
    tails=(2.5, 4 * 0.8**2),
    large_spread=2.5,
)

# Part of the origin of each calibration that this prior has a share in.
LEARNT_FROM = "a prior learnt from detections (LIDC, cells), leaves, nuclei and platelets"


def learnt_for(truth: KnownTruth) -> Prior:
    """What other data have taught, with the offset that makes the mean count of these scans likely."""
    return replace(LEARNT, anchor=anchor_of(truth.candidates, float(truth.counts.mean())))


def anchor_of(tables: Sequence[CandidateTable], mean: float) -> float:
    """The highest logit above which the scans have so many lesions on average; where they never do, the lowest."""
    table = CandidateTable.joined(tables)
    if not len(table):
        return 0.0
    with_saddle = table.saddle > 0
    levels = np.concatenate([logit(table.peak), logit(table.saddle[with_saddle])])
    steps = np.concatenate([np.ones(len(table)), -np.ones(int(with_saddle.sum()))])
    order = np.argsort(-levels, kind="stable")
    enough = np.flatnonzero(np.cumsum(steps[order]) >= mean * len(tables))
    return float(levels[order[enough[0]]] if len(enough) else levels.min())


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

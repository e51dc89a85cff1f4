"""Scans whose truth is known → a `Calibration`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import CalibrationError
from lesioncount.protocol import CountingProtocol
from lesioncount.trust.calibration import Calibration, n_nodes
from lesioncount.trust.fitting.candidates_of_scans import Numbers
from lesioncount.trust.fitting.descent import minimum
from lesioncount.trust.fitting.known_truth import KnownTruth
from lesioncount.trust.fitting.likelihood import CountLikelihood, LesionLikelihood, Likelihood, ReadersLikelihood
from lesioncount.trust.fitting.posterior import WeightedPoints, weighted_draws
from lesioncount.trust.fitting.prior import (
    AROUND_AS_IT_IS,
    DRAWN,
    LEARNT_FROM,
    Prior,
    at_bound,
    bounds,
    learnt_for,
    numbers_of,
    point_of,
    stretch_at,
    values_of,
)

# Of changes: how the doubt about a place belongs together at both times. The best of these is taken.
_COUPLINGS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)

# With fewer scans or lesions than this, what is fitted would be the sample, not the network: from five scans, leaves
# were counted worse than without. For changes, nothing is known from other data.
MIN_SCANS = 10
MIN_SCANS_OF_CHANGES = 20
MIN_LESIONS = 10

# Up to so many scans, it matters that several calibrations fit about as well: they are averaged.
MOST_TO_AVERAGE = 200
N_DRAWS = 40

# That counts are right as they are, before any data: one chance in four. None of the eight data sets that the prior is
# learnt from was, but where maps are honest, RPS from 25 scans with three candidates each rose by 2.3 ± 0.6 % with odds
# of 1:9, by 1.1 ± 0.5 % with these and by 0.5 ± 0.3 % with even ones. Where simulated networks are three times too
# sure, 90 % intervals from 10 and 20 scans held 91 and 93 %, 90 and 92 %, 89 and 91 % (40 cohorts of each). Leaves
# tell none of the three apart.
_ODDS_OF_AS_IT_IS = 1 / 3

# Of true lesions, so many must be able to have a candidate of their own. Below, most of a count would be guessed: of
# nuclei that touch, 80 % have one as regions.
_LEAST_FOUND = 0.25

# Seven numbers are known well from so many scans; more would only take longer.
_MOST_SCANS = 1000

# Starts are compared on so many scans, with few nodes.
_SCANS_TO_START = 250
_NODES_TO_START = 7

# Spreads are large and extra lesions many at first: where no count is far beyond what is expected, gradients do not
# vanish. The fourth start is close to "as it is"; in the last two, a candidate among many is more.
_STARTS = (
    Numbers(1.0, 0.0, 1.0, 0.4, 0.4, 1.0),
    Numbers(1.0, -1.0, 1.0, 0.4, 0.4, 1.0),
    Numbers(0.5, 0.0, 1.0, 0.4, 0.4, 1.0),
    Numbers(1.0, 0.0, 0.2, 0.05, 0.05, 2.0),
    Numbers(1.0, -2.0, 1.0, 0.4, 0.4, 1.0, 1.0),
    Numbers(1.0, -3.0, 0.1, 0.4, 0.4, 1.0, 1.0),
)

# The truth must be this much more probable (a difference of logarithms, after the prior) before anything is corrected,
# and this much more before all of it is. A network that is honest gains about 1 by chance, and more than 2 rarely.
_GAIN_TO_BEGIN, _GAIN_FOR_ALL = 0.7, 2.2

# Of a peak above its saddle: less is rounding of 8-bit maps and noise within a lesion. Such ripples are many, and where
# a calibration is steep they would come to whole lesions.
RIPPLE = 0.02

_AS_IT_IS = Numbers(1.0, 0.0, 0.0, 1e-12, 0.0, 1.0)

# Where the search for an offset begins, at the anchor of the prior.
_OFFSET_AT_ANCHOR = -1.0

# Of differences of gradients.
_STEP = 1e-3


def fit_calibration(
    truth: KnownTruth, /, *, protocol: CountingProtocol | None = None, near: Calibration | None = None
) -> Calibration:
    """The calibration under which the truth is most probable, or none if "as it is" is nearly as good.

    Parameters
    ----------
    truth : KnownTruth
        Where it knows which candidates have a true lesion, these are fitted; else the counts alone, for which no mask
        is needed. Of more than 1000 scans, 1000 are drawn by lot.
    protocol : CountingProtocol, optional
        What counted as one lesion.
    near : Calibration, optional
        A fit of nearly the same scans, where the search begins: faster.

    Notes
    -----
    See `Calibration` for the model, `CountLikelihood` and `LesionLikelihood` for what is maximised, and `prior` for
    what is taken as likely before any data: of the weight of a feature, N(0, 1) for each of its standard deviations. A
    few scans whose truth is out of reach of any calibration are given little weight: P is mixed with 5 % of a spread
    over all counts.

    With few scans, so many numbers follow the sample. So the fit is also compared with "as it is": with g the gain in
    log posterior, log slope, offset, spread, crowding, weights and the extra lesions are multiplied by (g - 0.7) / 1.5,
    cut off at 0 and 1.
    """
    n_scans, n_lesions = len(truth), int(truth.counts.sum())
    if not is_enough(truth):
        raise CalibrationError(
            f"A calibration needs at least {fewest_scans(truth)} scans with known truth and {MIN_LESIONS} true lesions "
            f"among them, but there are {n_scans} and {n_lesions}. With five, counts of others became worse than they "
            "are without a calibration. Count more scans"
            + (
                ", or say what is known of all: calibrate --mean or --prevalence."
                if truth.counted == "lesions"
                else "."
            )
        )
    _check_belongs(truth)
    return best_calibration(truth, protocol=protocol, near=near)


def best_calibration(
    truth: KnownTruth,
    /,
    *,
    protocol: CountingProtocol | None = None,
    near: Calibration | None = None,
    averaged: bool = True,
) -> Calibration:
    """The same of scans that may be too few, and need not belong to their truth: for those who leave scans out.

    Where it is not ``averaged``, few scans give the one calibration that fits best: thirty times as fast.
    """
    what = "counts" if truth.owns is None else "lesions"
    used = some_of(truth, _MOST_SCANS).without_ripples(RIPPLE)
    is_few = truth.counted == "lesions" and len(truth) <= MOST_TO_AVERAGE
    fitted = replace(
        _of_few(used, near, averaged=averaged) if is_few else _of_many(used, near),
        counted=truth.counted,
        protocol=protocol,
    )
    said = ", which fit as they are" if fitted.is_identity else f", with {LEARNT_FROM}" if is_few else ""
    ripple = RIPPLE if truth.touches and not fitted.is_identity else 0.0
    return replace(fitted, origin=f"the {what} of {len(truth)} scans{said}", ripple=ripple)


def _of_many(truth: KnownTruth, near: Calibration | None) -> Calibration:
    """The best point, or less of it where "as it is" is nearly as good."""
    coupling, point, gain = _best(truth, near)
    weight = min(max((gain - _GAIN_TO_BEGIN) / (_GAIN_FOR_ALL - _GAIN_TO_BEGIN), 0.0), 1.0)
    if weight > 0:
        _check_inside(point, truth.features)
    fitted = as_calibration(numbers_of(point), replace(truth, coupling=coupling), weight)
    return replace(fitted, coupling=truth.coupling + weight * (coupling - truth.coupling))


def _of_few(truth: KnownTruth, near: Calibration | None, *, averaged: bool) -> Calibration:
    """The average over what the scans allow, "as it is" among it, with what other data have taught."""
    prior, likelihood, nodes = learnt_for(truth), _likelihood(truth), _nodes_for(truth)
    point, _ = _lowest(likelihood, _start(truth, near, prior), nodes, prior)
    _check_inside(point, truth.features)
    if not averaged:
        return as_calibration(numbers_of(point), truth)
    found = _posterior(likelihood, point, _usual_size(truth), prior)
    apart = found.log_evidence + prior.log_scale - float(likelihood.values(_AS_IT_IS, 1).sum())
    odds = _ODDS_OF_AS_IT_IS * math.exp(-np.clip(apart, -30, 30))
    n = N_DRAWS if truth.features else round(N_DRAWS / (1 + odds))
    calibration = as_calibration(numbers_of(point), truth, n / N_DRAWS)
    drawn = [as_calibration(numbers_of(_full(point, one)), truth) for one in found.evenly(n)] if n else []
    as_it_is = [Calibration()] * (N_DRAWS - n)
    if not n:
        return calibration
    left_out, odds_of = ((), {}) if truth.features else (("weights",), {"odds_of_as_it_is": _ODDS_OF_AS_IT_IS})
    kept = prior.to_dict(*left_out, anchor=prior.anchor, **odds_of)
    return replace(calibration.averaged_over([*drawn, *as_it_is]), prior=kept)


def _posterior(likelihood: Likelihood, point: NDArray[np.float64], size: int, prior: Prior) -> WeightedPoints:
    """Draws of what is drawn, the rest as at the best point, of scans with so many candidates."""
    lowest, highest = (bound[list(DRAWN)] for bound in bounds(len(point)))

    def log_density(part: NDArray[np.float64]) -> float:
        if not np.all((part >= lowest) & (part <= highest)):
            return -math.inf
        full = _full(point, part)
        nodes = n_nodes(min(numbers_of(full).spread, 1.0), size)  # a narrow spread needs fewer
        return -_cost(likelihood, full, nodes, prior)

    def gradient(part: NDArray[np.float64]) -> NDArray[np.float64]:
        return _slopes(likelihood, _full(point, part), n_nodes(1.0, size), prior)[1][list(DRAWN)]

    best = np.clip(point[list(DRAWN)], lowest + _STEP, highest - _STEP)
    curvature = np.array(
        [(gradient(best + step) - gradient(best - step)) / (2 * _STEP) for step in _STEP * np.eye(len(best))]
    )
    return weighted_draws(log_density, best, curvature)


def _full(point: NDArray[np.float64], part: NDArray[np.float64]) -> NDArray[np.float64]:
    """A point with other values of what is drawn."""
    full = point.copy()
    full[list(DRAWN)] = part
    return full


def _check_belongs(truth: KnownTruth) -> None:
    """Raise if so few lesions can have a candidate that the truth must be of something else."""
    candidates, counts = np.array([*map(len, truth.candidates)]), truth.counts
    if np.minimum(candidates, counts).sum() < _LEAST_FOUND * counts.sum():
        raise CalibrationError(
            f"There are {counts.mean():.1f} true lesions per scan, but {candidates.mean():.1f} candidates. Either "
            "these counts do not belong to these maps, or nearly all lesions are missed. Do names and units agree "
            "(lesions, not voxels or mm³)? If many lesions touch, count peaks (--protocol peaks)."
        )


def is_enough(truth: KnownTruth) -> bool:
    """Whether there are scans and lesions enough for a fit."""
    return len(truth) >= fewest_scans(truth) and int(truth.counts.sum()) >= MIN_LESIONS


def fewest_scans(truth: KnownTruth) -> int:
    """How many scans a fit needs."""
    return MIN_SCANS if truth.counted == "lesions" else MIN_SCANS_OF_CHANGES


def _best(truth: KnownTruth, near: Calibration | None) -> tuple[float, NDArray[np.float64], float]:
    """The best coupling, the best point with it, and how much more probable than "as it is" they make the truth."""
    as_it_is = float(_likelihood(truth).values(_AS_IT_IS, 1).sum())
    nodes = _nodes_for(truth)
    coupling, begun = (
        (truth.coupling, []) if truth.counted == "lesions" else _coupled(truth, _start(truth, near), nodes)
    )
    best = replace(truth, coupling=coupling)
    ends = [*begun, _lowest(_likelihood(best), _start(best, near), nodes)]
    point, value = min(ends, key=lambda end: end[1])
    return coupling, point, -value - as_it_is


def _coupled(
    truth: KnownTruth, start: NDArray[np.float64], nodes: int
) -> tuple[float, list[tuple[NDArray[np.float64], float]]]:
    """The best coupling, and where it leads: from where one leads, it is not far to where the next one does."""
    tried = {}
    for coupling in _COUPLINGS:
        tried[coupling] = _lowest(_likelihood(replace(truth, coupling=coupling)), start, nodes)
        start = tried[coupling][0]
    best = min(tried, key=lambda one: tried[one][1])
    return best, [tried[best]]


def _nodes_for(truth: KnownTruth) -> int:
    return n_nodes(1.0, _usual_size(truth))


def _usual_size(truth: KnownTruth) -> int:
    """More candidates than this are in a tenth of the scans."""
    return int(np.quantile([*map(len, truth.candidates)], 0.9))


def _typical_count(truth: KnownTruth) -> float:
    """The count that scans seem to have, in the middle of the scale of crowding."""
    return float(np.expm1(truth.log_crowds.mean()))


def _likelihood(truth: KnownTruth) -> Likelihood:
    if truth.owns is not None:
        return LesionLikelihood(truth)
    return CountLikelihood(truth) if truth.readings is None else ReadersLikelihood(truth)


def _start(truth: KnownTruth, near: Calibration | None, prior: Prior = AROUND_AS_IT_IS) -> NDArray[np.float64]:
    """A fit that is near; or where the best of several starts leads, on a part of the scans."""
    if near is not None and not near.is_identity:
        return point_of(values_of(near, _typical_count(truth), truth))
    some = some_of(truth, _SCANS_TO_START)
    likelihood, nodes = _likelihood(some), _nodes_for(some)
    usual = _STARTS[0]._replace(offset=_OFFSET_AT_ANCHOR - prior.anchor)
    starts = [start._replace(weights=(0.0,) * len(truth.features)) for start in (usual, *_STARTS)]
    ends = [_lowest(likelihood, point_of(start), _NODES_TO_START, prior)[0] for start in starts]
    return min(ends, key=lambda end: _cost(likelihood, end, nodes, prior))  # few nodes flatter a wide spread


def some_of(truth: KnownTruth, most: int) -> KnownTruth:
    """All scans, or as many of them, drawn by lot."""
    if len(truth) <= most:
        return truth
    return truth[sorted(np.random.default_rng(0).permutation(len(truth))[:most].tolist())]


def _cost(likelihood: Likelihood, point: NDArray[np.float64], nodes: int, prior: Prior) -> float:
    """Negative logarithm of the posterior."""
    return prior.penalty(point)[0] - float(likelihood.values(numbers_of(point), nodes).sum())


def _slopes(
    likelihood: Likelihood, point: NDArray[np.float64], nodes: int, prior: Prior
) -> tuple[float, NDArray[np.float64]]:
    """The same, and its gradient."""
    values, gradients = likelihood(numbers_of(point), nodes)
    cost, pull = prior.penalty(point)
    return cost - float(values.sum()), pull - gradients.sum(axis=0) * stretch_at(point)


def _lowest(
    likelihood: Likelihood, start: NDArray[np.float64], nodes: int, prior: Prior = AROUND_AS_IT_IS
) -> tuple[NDArray[np.float64], float]:
    """The point of the highest posterior near a start, and its negative logarithm."""

    def objective(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        return _slopes(likelihood, point, nodes, prior)

    # Where a model fits, second derivatives are about the products of first ones, scan by scan.
    scores = likelihood(numbers_of(start), nodes)[1] * stretch_at(start)
    return minimum(objective, start, *bounds(len(start)), scores.T @ scores + prior.curvature(len(start)))


def _check_inside(point: NDArray[np.float64], features: Sequence[str]) -> None:
    found = at_bound(point, features)
    if found:
        which = ", ".join(f"{name} ({value:.3g})" for name, value in found.items())
        raise CalibrationError(
            f"The fit ran to the bound of {which}, and is no calibration. Do the truth "
            "and the maps belong together, and do both count the same kind of lesion? (lesioncount evaluate shows them "
            "side by side.)"
        )


def as_calibration(numbers: Numbers, truth: KnownTruth, weight: float = 1.0) -> Calibration:
    """A calibration between "as it is" (weight 0) and the numbers (weight 1)."""
    if weight == 0:
        return Calibration()
    means, widths = truth.usual_features
    weights = (weight * np.array(numbers.weights) / widths).tolist()
    return Calibration(
        slope=numbers.slope**weight,
        offset=numbers.offset * weight,
        extra_rate=numbers.extra_rate * weight,
        extra_share=numbers.extra_share * weight,
        extra_shape=numbers.extra_shape,
        spread=numbers.spread * weight,
        crowding=numbers.crowding * weight,
        typical_count=_typical_count(truth),
        weights=dict(zip(truth.features, weights, strict=True)),
        typical_features=dict(zip(truth.features, means.tolist(), strict=True)),
    )

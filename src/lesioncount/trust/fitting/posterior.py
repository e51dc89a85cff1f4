"""Draws of a few numbers from a density that is known but for a constant."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]

# Proposals are drawn by rounds, each wider or narrower than the one before as those have shown.
_PER_ROUND = 200
_FEWEST_ROUNDS, _MOST_ROUNDS = 4, 12

# As good as so many independent draws, they are enough.
_ENOUGH = 150.0

# Of a proposal: tails that are heavier than those of any posterior here.
_DEGREES = 3.0

# Of a proposal, beside what the draws so far have shown: where it is too narrow, tails are missed, and nothing tells.
_WIDER = 2.0

# No direction is narrower or wider than this at first, on scales on which 1 is a lot.
_NARROWEST, _WIDEST = 0.02, 2.0


@dataclass(frozen=True, eq=False)
class WeightedPoints:
    """Draws from proposals, weighted so that they stand for the density.

    Attributes
    ----------
    points : array, shape (N, d)
    weights : array, shape (N,)
        Their sum is 1.
    log_evidence : float
        Logarithm of the integral of the density.
    """

    points: Points
    weights: NDArray[np.float64]
    log_evidence: float

    @property
    def effective(self) -> float:
        """As good as so many independent draws."""
        return float(1 / np.sum(self.weights**2))

    def evenly(self, n: int, seed: int = 0) -> Points:
        """So many of them, each for the same share."""
        places = (np.arange(n) + np.random.default_rng(seed).random()) / n
        return self.points[np.minimum(np.searchsorted(np.cumsum(self.weights), places), len(self.points) - 1)]

    @property
    def mean(self) -> Points:
        """Of the density."""
        return np.asarray(self.weights @ self.points)

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Of the density."""
        apart = self.points - self.mean
        return np.asarray((self.weights[:, None] * apart).T @ apart)


def weighted_draws(
    log_density: Callable[[Points], float], highest: Points, curvature: NDArray[np.float64], *, seed: int = 0
) -> WeightedPoints:
    """Draws from around the highest point of a density.

    Parameters
    ----------
    log_density : callable
        Its logarithm at a point, shape (d,); minus infinity where there is nothing.
    highest : array, shape (d,)
    curvature : array, shape (d, d)
        Second derivatives of the negative logarithm there, about.
    seed : int, default 0

    Notes
    -----
    Adaptive multiple importance sampling: proposals are Student's t, first from the curvature, then from the weighted
    mean and covariance of all draws so far. Each draw is weighted by the density over the mean of all proposals, so
    that an early proposal that was too narrow does no harm.
    """
    rng = np.random.default_rng(seed)
    proposals = [_Proposal(highest, _WIDER * _bounded_inverse(curvature))]
    points, logs = np.empty((0, len(highest))), np.empty(0)
    for _ in range(_MOST_ROUNDS):
        new = proposals[-1].draw(_PER_ROUND, rng)
        points = np.concatenate([points, new])
        logs = np.concatenate([logs, [log_density(point) for point in new]])
        found = _weighted(points, logs, proposals)
        if found.effective >= _ENOUGH and len(proposals) >= _FEWEST_ROUNDS:
            break
        wide = _WIDER * found.covariance + 1e-4 * np.eye(len(highest))
        proposals.append(_Proposal(found.mean, wide))
    return found


@dataclass(frozen=True, eq=False)
class _Proposal:
    """Student's t around a point."""

    centre: Points
    scale: NDArray[np.float64]

    def draw(self, n: int, rng: np.random.Generator) -> Points:
        normal = rng.standard_normal((n, len(self.centre)))
        wide = np.sqrt(_DEGREES / rng.chisquare(_DEGREES, n))
        return np.asarray(self.centre + (normal * wide[:, None]) @ np.linalg.cholesky(self.scale).T)

    def log_density(self, points: Points) -> NDArray[np.float64]:
        d = len(self.centre)
        root = np.linalg.cholesky(self.scale)
        away = np.linalg.solve(root, (points - self.centre).T)
        constant = math.lgamma((_DEGREES + d) / 2) - math.lgamma(_DEGREES / 2) - d / 2 * math.log(_DEGREES * math.pi)
        of_scale = float(np.log(np.diag(root)).sum())
        return np.asarray(constant - of_scale - (_DEGREES + d) / 2 * np.log1p((away**2).sum(axis=0) / _DEGREES))


def _weighted(points: Points, logs: NDArray[np.float64], proposals: list[_Proposal]) -> WeightedPoints:
    proposed = np.logaddexp.reduce([one.log_density(points) for one in proposals], axis=0) - math.log(len(proposals))
    ratios = logs - proposed
    top = float(ratios.max())
    weights = np.exp(ratios - top)
    return WeightedPoints(points, weights / weights.sum(), top + math.log(float(weights.mean())))


def _bounded_inverse(curvature: NDArray[np.float64]) -> NDArray[np.float64]:
    """Its inverse, with no direction narrower or wider than is sensible."""
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
    widths = np.clip(1 / np.sqrt(np.maximum(values, 1e-9)), _NARROWEST, _WIDEST)
    return np.asarray((vectors * widths**2) @ vectors.T)

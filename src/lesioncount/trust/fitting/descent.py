"""The lowest point of a smooth function of a few parameters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Objective = Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]

# No parameter moves farther in one step, so that a start far away does not throw it out of the bounds.
_LONGEST_STEP = 1.5
_MOST_STEPS = 200

# A step must bring this share of what the slope promises.
_ENOUGH = 1e-4

# Where no direction gains more than this, of a sum over scans of logarithms, the rest is rounding.
_NOTHING = 1e-5


def minimum(
    objective: Objective,
    start: NDArray[np.float64],
    lowest: NDArray[np.float64],
    highest: NDArray[np.float64],
    curvature: NDArray[np.float64],
) -> tuple[NDArray[np.float64], float]:
    """Quasi-Newton steps (BFGS) within bounds: the point, and the value there.

    Parameters
    ----------
    objective : callable
        Value and gradient.
    start, lowest, highest : array, shape (d,)
    curvature : array, shape (d, d)
        A guess of the second derivatives at the start, positive definite.
    """
    point, inverse = start, np.asarray(np.linalg.inv(curvature), dtype=np.float64)
    value, gradient = objective(point)
    for _ in range(_MOST_STEPS):
        free = ~(((point <= lowest) & (gradient > 0)) | ((point >= highest) & (gradient < 0)))
        step = _downhill(inverse, np.where(free, gradient, 0.0))
        found = _along(objective, point, value, gradient, step, lowest, highest)
        if found is None:
            break
        trial, trial_value, trial_gradient = found
        gained, inverse = value - trial_value, _updated(inverse, trial - point, trial_gradient - gradient)
        point, value, gradient = trial, trial_value, trial_gradient
        if gained < _NOTHING:
            break
    return point, value


def _downhill(inverse: NDArray[np.float64], gradient: NDArray[np.float64]) -> NDArray[np.float64]:
    step = np.where(gradient == 0, 0.0, -inverse @ gradient)
    if step @ gradient >= 0:  # bounds can turn it around
        step = -gradient
    return np.asarray(step * min(1.0, _LONGEST_STEP / max(np.abs(step).max(), 1e-300)))


def _along(
    objective: Objective,
    point: NDArray[np.float64],
    value: float,
    gradient: NDArray[np.float64],
    step: NDArray[np.float64],
    lowest: NDArray[np.float64],
    highest: NDArray[np.float64],
) -> tuple[NDArray[np.float64], float, NDArray[np.float64]] | None:
    """The first of ever shorter steps that gains enough; None if none does."""
    length = 1.0
    while length > 1e-6:
        trial = np.clip(point + length * step, lowest, highest)
        trial_value, trial_gradient = objective(trial)
        if trial_value < value + _ENOUGH * min(float(gradient @ (trial - point)), 0.0):
            return trial, trial_value, trial_gradient
        length *= 0.4
    return None


def _updated(
    inverse: NDArray[np.float64], moved: NDArray[np.float64], changed: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The inverse of the second derivatives, as the last step has shown them."""
    product = float(moved @ changed)
    if product <= 1e-12:
        return inverse
    left = np.eye(len(moved)) - np.outer(moved, changed) / product
    return np.asarray(left @ inverse @ left.T + np.outer(moved, moved) / product)

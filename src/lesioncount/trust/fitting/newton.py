"""The lowest point of a smooth function of a few parameters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Objective = Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]

# Steps are short at first, so that a start far away does not throw them out of the bounds.
_LONGEST_STEP = 1.0


def minimum(
    objective: Objective, start: NDArray[np.float64], lowest: NDArray[np.float64], highest: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Damped Newton steps within bounds; the second derivatives are differences of the first."""
    point, damping = start, 1e-3
    value, gradient = objective(point)
    for _ in range(200):
        free = ~(((point <= lowest) & (gradient > 0)) | ((point >= highest) & (gradient < 0)))
        if np.abs(gradient[free]).max(initial=0.0) < 1e-6 * max(1.0, abs(value)):
            break
        hessian = _second_derivatives(objective, point)
        step = _damped_step(hessian, np.where(free, gradient, 0.0), damping)
        trial = np.clip(point + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP), lowest, highest)
        trial_value, trial_gradient = objective(trial)
        if trial_value < value:
            point, value, gradient, damping = trial, trial_value, trial_gradient, max(damping / 10, 1e-9)
        elif damping > 1e9:
            break
        else:
            damping *= 10
    return point


def _second_derivatives(objective: Objective, point: NDArray[np.float64]) -> NDArray[np.float64]:
    width = 1e-4
    rows = [
        (objective(point + width * e)[1] - objective(point - width * e)[1]) / (2 * width) for e in np.eye(len(point))
    ]
    hessian = np.array(rows)
    return (hessian + hessian.T) / 2


def _damped_step(hessian: NDArray[np.float64], gradient: NDArray[np.float64], damping: float) -> NDArray[np.float64]:
    """Downhill also where the surface is not bowl-shaped: curvatures count by their size."""
    curvatures, axes = np.linalg.eigh(hessian)
    scale = max(np.abs(curvatures).max(), 1e-12)
    along = axes.T @ gradient / (np.maximum(np.abs(curvatures), 1e-9 * scale) + damping * scale)
    return np.asarray(-(axes @ along))

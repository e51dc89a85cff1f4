"""Student's t distribution: how far an estimate may be off whose standard error is itself estimated."""

from __future__ import annotations

import math

import numpy as np

# Of Simpson's rule: the integrand is smooth, and ten digits are more than any interval needs.
_N_POINTS = 2001

# Halvings of a bracket that is as wide as its lower end: to the last digit.
_N_HALVINGS = 52

# Beyond, it is the normal distribution.
_MOST_DF = 1e7


def student_cdf(t: float, df: float) -> float:
    """P(T ≤ t) with ``df`` degrees of freedom, at least 1.

    Notes
    -----
    With t = √df · tan θ, the density becomes cos(θ)^(df - 1) over a finite range, divided by B(1/2, df/2).

    Examples
    --------
    >>> round(student_cdf(2.228, 10), 4)
    0.975
    """
    df = min(df, _MOST_DF)
    theta = np.linspace(0.0, math.atan(abs(t) / math.sqrt(df)), _N_POINTS)
    weights = np.where(np.arange(_N_POINTS) % 2, 4.0, 2.0)
    weights[[0, -1]] = 1.0
    area = float(weights @ np.cos(theta) ** (df - 1)) * float(theta[1]) / 3
    log_beta = math.lgamma(0.5) + math.lgamma(df / 2) - math.lgamma((df + 1) / 2)
    half = min(area / math.exp(log_beta), 0.5)
    return 0.5 + math.copysign(half, t)


def student_quantile(q: float, df: float) -> float:
    """The t with P(T ≤ t) = q, for q from 1/2 to below 1.

    Examples
    --------
    >>> round(student_quantile(0.975, 10), 3)
    2.228
    """
    high = 1.0
    while student_cdf(high, df) < q:
        high *= 2
    low = high / 2 if high > 1 else 0.0
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if student_cdf(middle, df) < q else (low, middle)
    return (low + high) / 2

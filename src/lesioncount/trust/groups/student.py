"""Student's t distribution: how far an estimate may be off whose standard error is itself estimated."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

# Of the integral over W below, whose density falls as fast as that of a normal variable: less than 1e-16 of a tail is
# beyond its first 9, and with so many nodes the integral is exact up to rounding.
_RANGE, _N_NODES = 9.0, 100

# Beyond it, probabilities are 0 in double precision.
_FARTHEST = 40.0

# Halvings of the range of W: to the last digit.
_N_HALVINGS = 60


def student_tails(t: float, df: float) -> float:
    """P(|T| > t) with ``df`` degrees of freedom, at least 1: the two-sided p-value of t.

    Notes
    -----
    W = √(df · log(1 + T² / df)) is nearly normal whatever df is: its density is proportional to::

        exp(-w² / 2) · √(s / (1 - exp(-s)))     with s = w² / df

    The tail beyond w, divided by the tail beyond 0, needs no constant, and is as exact for small probabilities as for
    large ones.

    Examples
    --------
    >>> round(student_tails(2.228, 10), 4)
    0.05
    """
    return _beyond(min(math.sqrt(df * math.log1p(t * t / df)), _FARTHEST), df) / _beyond(0.0, df)


def student_reach(p: float, df: float) -> float:
    """The t with P(|T| > t) = p, for p above 0 and up to 1.

    Examples
    --------
    >>> round(student_reach(0.05, 10), 3)
    2.228
    """
    low, high, wanted = 0.0, _FARTHEST, p * _beyond(0.0, df)
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _beyond(middle, df) > wanted else (low, middle)
    return math.sqrt(df * math.expm1(low * low / df))


def _beyond(w: float, df: float) -> float:
    """The tail of W beyond w, up to a constant."""
    nodes, weights = _gauss_legendre()
    square = (w + _RANGE * nodes) ** 2
    return float(weights @ (np.exp(-square / 2) * np.sqrt(square / df / -np.expm1(-square / df))))


@cache
def _gauss_legendre() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    nodes, weights = np.polynomial.legendre.leggauss(_N_NODES)
    return (nodes + 1) / 2, weights

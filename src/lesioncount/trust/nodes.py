"""The integral over what all candidates of a scan share, as a sum."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

# Nodes of the integral over what a whole scan shares, from -3.5 to 3.5 standard deviations. Each node is a distribution
# of its own, about √(K / 8) wide for K candidates; more nodes are needed where these would lie apart.
_REACH = 3.5
FEWEST_NODES, _MOST_NODES = 9, 41


def n_nodes(spread: float, n_candidates: int) -> int:
    """How many nodes the integral over scans needs, so that their distributions overlap: an odd number."""
    needed = math.ceil(2 * _REACH / 1.5 * spread * math.sqrt(n_candidates / 8))
    return min(max(needed, FEWEST_NODES), _MOST_NODES) // 2 * 2 + 1


def normal_nodes(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights for integrals over a standard normal variable: evenly spaced, which is enough for it."""
    if n == 1:
        return np.zeros(1), np.ones(1)
    z = np.linspace(-_REACH, _REACH, n)
    weights = np.exp(-(z**2) / 2)
    return z, weights / weights.sum()

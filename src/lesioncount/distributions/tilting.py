"""Logarithms of probabilities too small for a number, by exponential tilting."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lesioncount._kernels.recursion import fill_pmf

# A tilted distribution is trusted down to here: it serves all counts in reach, not only the one it was made for.
_SMALLEST_TRUSTED = 1e-200


def log_pmf_of(p: NDArray[np.float64], counts: NDArray[np.intp]) -> NDArray[np.float64]:
    """Log P(C = k) of a Poisson-binomial, for counts k between 0 and n.

    Parameters
    ----------
    p : ndarray, shape (n,)
        Probabilities strictly between 0 and 1.
    counts : ndarray of int
        Ascending.

    Notes
    -----
    With odds w_i = p_i / (1 - p_i), P(k) = Π (1 - p_i) e_k(w), where e_k, the elementary symmetric polynomial, is of
    degree k: e_k(w) = e^{-θk} e_k(e^θ w). So for any θ, with p_i(θ) the probability of odds e^θ w_i and P_θ their
    Poisson-binomial::

        log P(k) = log P_θ(k) - θ k + Σ log((1 - p_i) + p_i e^θ)

    θ is chosen so that k is the mean of P_θ: there, P_θ(k) is far from underflow.
    """
    log_p, log_q = np.log(p), np.log1p(-p)
    result = np.full(len(counts), -np.inf)
    todo = np.ones(len(counts), dtype=bool)
    for k, exact in ((0, log_q), (len(p), log_p)):  # no finite θ has these as its mean, and they need none
        result[counts == k] = math.fsum(exact)
        todo &= counts != k
    while todo.any():
        first = int(np.flatnonzero(todo)[0])
        theta = _tilt_to_mean(log_p - log_q, float(counts[first]))
        logit = log_p - log_q + theta
        pmf = np.zeros(len(p) + 1)
        fill_pmf(np.sort(1 / (1 + np.exp(-np.clip(logit, -700, 700)))), pmf)
        reached = todo & (pmf[counts] > _SMALLEST_TRUSTED)
        reached[first] = True
        constant = math.fsum(log_q + np.logaddexp(0, logit))
        result[reached] = np.log(pmf[counts[reached]]) - theta * counts[reached] + constant
        todo &= ~reached
    return result


def _tilt_to_mean(logit: NDArray[np.float64], mean: float) -> float:
    """The θ for which Σ sigmoid(logit_i + θ) = mean, by bisection: precise to where it makes no difference."""
    low, high = -float(logit.max()) - 800.0, -float(logit.min()) + 800.0
    for _ in range(80):
        middle = (low + high) / 2
        total = float(np.sum(1 / (1 + np.exp(-np.clip(logit + middle, -700, 700)))))
        low, high = (middle, high) if total < mean else (low, middle)
        if high - low < 1e-6:
            break
    return (low + high) / 2

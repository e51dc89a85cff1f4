"""Checks of what callers of scores pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.errors import ScoreError

# Probabilities that were written with six digits do not add up to 1 exactly.
_ROUNDING = 1e-3


def checked_bins(probabilities: ArrayLike, counts: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """P(0), P(1), … P(last or more) of each scan, and the bins that the true counts fall in."""
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 2 or p.shape[1] == 0:
        raise ScoreError(f"Expected a row of probabilities per scan, P(0), P(1), …, but their shape is {p.shape}.")
    if p.size and not (p.min() >= -_ROUNDING and np.abs(p.sum(axis=1) - 1).max() <= _ROUNDING):
        raise ScoreError("Expected each row of probabilities to add up to 1, with none below 0.")
    return p, np.minimum(checked_counts(counts, len(p)), p.shape[1] - 1)


def checked_counts(counts: ArrayLike, n: int) -> NDArray[np.int64]:
    """True counts: whole numbers of at least 0, one for each of n scans."""
    given = np.asarray(counts)
    if given.shape != (n,):
        raise ScoreError(f"Expected one count for each of {n} scans, but the shape of counts is {given.shape}.")
    try:
        whole = given.astype(np.int64)
        ok = bool(np.all(whole == given) and np.all(whole >= 0))
    except (TypeError, ValueError):
        ok = False
    if not ok:
        raise ScoreError("Expected counts to be whole numbers of at least 0.")
    return whole

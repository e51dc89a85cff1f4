"""Whether uncertainty is useful: whether uncertain scans are those that a method gets wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.errors import ScoreError
from lesioncount.trust.scores.classification import ratio


def auroc(uncertainty: ArrayLike, wrong: ArrayLike, /, *, weights: ArrayLike | None = None) -> NDArray[np.float64]:
    """Probability that a wrong scan is more uncertain than a right one; ties count half.

    Parameters
    ----------
    uncertainty : array_like of float, shape (n,)
        Such as the entropy of the count.
    wrong : array_like of bool, shape (n,)
    weights : array_like of float, shape (..., n), optional
        How often each scan counts. Default: once.

    Returns
    -------
    array of float, shape (...)
        One half is chance; NaN where all are right, or all wrong.
    """
    values, errors = np.asarray(uncertainty, dtype=np.float64), np.asarray(wrong, dtype=np.float64)
    if values.shape != errors.shape or values.ndim != 1:
        raise ScoreError(f"Expected an uncertainty for each scan, but got {values.shape} and {errors.shape}.")
    each = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    if len(values) == 0:
        return np.full(each.shape[:-1], np.nan)
    order = np.argsort(values, kind="stable")
    first_of_ties = np.flatnonzero(np.diff(values[order], prepend=-np.inf) > 0)
    bad = np.add.reduceat((each * errors)[..., order], first_of_ties, axis=-1)
    good = np.add.reduceat((each * (1 - errors))[..., order], first_of_ties, axis=-1)
    below = np.cumsum(good, axis=-1) - good / 2
    return np.asarray(ratio((bad * below).sum(axis=-1), bad.sum(axis=-1) * good.sum(axis=-1)))


def certainty_curve(
    uncertainty: ArrayLike, right: ArrayLike, /, *, shares: ArrayLike | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Accuracy on the most certain share of scans.

    Parameters
    ----------
    uncertainty : array_like of float, shape (n,)
    right : array_like of bool, shape (n,)
    shares : array_like of float, optional
        Default: 0.05, 0.1, … 1.

    Returns
    -------
    shares, accuracy : array of float
        Scans that are equally certain count alike, whatever their order.
    """
    values, hits = np.asarray(uncertainty, dtype=np.float64), np.asarray(right, dtype=np.float64)
    at = np.arange(1, 21) / 20 if shares is None else np.asarray(shares, dtype=np.float64)
    if len(values) == 0:
        return at, np.full(at.shape, np.nan)
    levels, where, n = np.unique(values, return_inverse=True, return_counts=True)
    total, all_hits = np.append(0, np.cumsum(n)), np.append(0, np.cumsum(np.bincount(where, hits, len(levels))))
    kept = np.maximum(at * len(values), 1)
    return at, np.interp(kept, total, all_hits) / kept

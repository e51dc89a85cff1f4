"""Features of scans → distributions of their counts, by a quantile regression forest: what a statistician brings."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TREES, _SMALLEST_LEAF, _SEED = 300, 3, 0


def forest_weights(
    features: NDArray[np.float64], counts: NDArray[np.int64], wanted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How much each known scan says about each wanted one.

    Parameters
    ----------
    features : array of float, shape (n, d)
        Of scans with known counts.
    counts : array of int, shape (n,)
    wanted : array of float, shape (m, d)

    Returns
    -------
    array of float, shape (m, n)
        Rows add up to 1: the share of trees in which two scans fall into the same leaf, each leaf shared equally.

    Notes
    -----
    Meinshausen, "Quantile Regression Forests", Journal of Machine Learning Research 7 (2006): the forest as usual, but
    what is kept of a leaf is all its counts and not their mean.
    """
    ensemble: Any = import_module("sklearn.ensemble")  # takes a second: only when it is needed
    forest = ensemble.RandomForestRegressor(_TREES, min_samples_leaf=_SMALLEST_LEAF, random_state=_SEED)
    forest.fit(features, counts)
    known, asked = forest.apply(features), forest.apply(wanted)
    weights = np.zeros((len(wanted), len(features)))
    for tree in range(_TREES):
        same = asked[:, tree, None] == known[None, :, tree]
        weights += same / same.sum(axis=1, keepdims=True)
    return np.asarray(weights / _TREES)

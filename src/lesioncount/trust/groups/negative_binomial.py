"""Plain counts of several groups → logarithms of rate ratios: negative binomial regression by statsmodels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.optional import optional

_MOST_STEPS = 200

# The dispersion that the search begins at, where moments give less.
_LEAST_DISPERSION = 0.01


@dataclass(frozen=True, eq=False)
class LogRatios:
    """What a regression says of each group but the first.

    Attributes
    ----------
    value, variance : array of float
        Logarithms of the ratios of rates to that of the first group, and their variances.
    is_poisson : bool
        Whether counts vary no more than Poisson, so that the negative binomial model is the Poisson model.
    """

    value: NDArray[np.float64]
    variance: NDArray[np.float64]
    is_poisson: bool


def check_can_fit() -> None:
    """Raise a `MissingExtraError` unless statsmodels is there."""
    _models()


def log_ratios(
    counts: NDArray[Any],
    group: NDArray[np.intp],
    log_exposure: NDArray[np.float64],
    clusters: NDArray[np.intp] | None = None,
) -> LogRatios | None:
    """Fit counts with mean exposure · exp(intercept + effect of the group) and variance mean + dispersion · mean².

    Parameters
    ----------
    counts : array, shape (scans,)
    group : array of int
        Numbers from 0, none of them left out. No group may be without a lesion.
    log_exposure : array of float
    clusters : array of int, optional
        Scans that belong together: variances are then those of the sandwich over clusters.

    Returns
    -------
    LogRatios or None
        None if the search did not converge.
    """
    models = _models()
    n_groups = int(group.max()) + 1
    design = (group[:, None] == np.arange(n_groups)).astype(np.float64)
    design[:, 0] = 1.0  # the intercept: all others are differences from the first
    robust = {} if clusters is None else {"cov_type": "cluster", "cov_kwds": {"groups": clusters}}
    options: dict[str, Any] = {"disp": 0, "maxiter": _MOST_STEPS, **robust}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # whether it has converged is seen below
        fitted = models.Poisson(counts, design, offset=log_exposure).fit(**options)
        mean = fitted.predict()
        more_than_poisson = float(((counts - mean) ** 2 - counts).sum())
        # The slope of the likelihood where the dispersion is 0: if it falls from there, its maximum is there.
        if more_than_poisson > 0:
            begin = max(more_than_poisson / float((mean**2).sum()), _LEAST_DISPERSION)
            model = models.NegativeBinomial(counts, design, offset=log_exposure)
            fitted = model.fit(start_params=[*fitted.params, begin], **options)
        value, variance = fitted.params[1:n_groups], np.diag(fitted.cov_params())[1:n_groups]
    is_sound = fitted.mle_retvals["converged"] and np.isfinite(value).all() and bool((variance > 0).all())
    return LogRatios(value, variance, more_than_poisson <= 0) if is_sound else None


def _models() -> Any:
    return optional("statsmodels.discrete.discrete_model", "stats", "A rate ratio")

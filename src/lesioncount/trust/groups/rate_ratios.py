"""Imputed counts → rate ratios by negative binomial regression, pooled; or why one cannot be known."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.errors import ScoreError
from lesioncount.optional import optional
from lesioncount.trust.groups.imputation import Pooled, pooled
from lesioncount.trust.groups.means import patient_codes

# Patients of a group without which nothing is known of how patients differ.
_FEWEST_PATIENTS = 2


@dataclass(frozen=True)
class RateRatio:
    """The rate of one group, divided by that of the reference.

    Attributes
    ----------
    group : int
        Place of the group among the levels.
    log_ratio : Pooled or None
        Its logarithm; None where it cannot be known.
    why_unknown : str or None
        Why it cannot.
    """

    group: int
    log_ratio: Pooled | None = None
    why_unknown: str | None = None


@dataclass(frozen=True, eq=False)
class RateRatios:
    """Rate ratios of all groups but the reference, and what a reader must know of the model.

    Attributes
    ----------
    ratios : tuple of RateRatio
    is_clustered : bool
        Whether patients have several scans, so that variances are those of the sandwich over patients.
    n_poisson : int
        Imputations whose counts vary no more than Poisson.
    """

    ratios: tuple[RateRatio, ...]
    is_clustered: bool = False
    n_poisson: int = 0


def rate_ratios(
    imputations: NDArray[np.int64],
    groups: ArrayLike,
    patients: Sequence[Hashable],
    exposure: ArrayLike | None = None,
    /,
) -> RateRatios:
    """Ratios of the rates of groups 1, 2, … to that of group 0.

    Parameters
    ----------
    imputations : array of int, shape (imputations, scans)
        What `drawn_counts` gives.
    groups : array_like of int, shape (scans,)
        0 is the reference.
    patients : sequence
        Whose scan each is.
    exposure : array_like of float, optional
        What rates are per, above 0: years of follow-up. Default: 1, rates are per scan.

    Raises
    ------
    MissingExtraError
        Without statsmodels, which is in the extra ``[stats]``.

    Notes
    -----
    Each imputation is fitted by `log_ratios`, with one dispersion for all groups, and what it gives is pooled by
    `pooled`. Complete data have as many degrees of freedom as there are patients, less one for each group.

    A group without any lesion in one of the imputations has no ratio: its logarithm may be anything below 0.

    Examples
    --------
    >>> from lesioncount import PoissonBinomial
    >>> from lesioncount.trust.groups.imputation import drawn_counts
    >>> scans = [[PoissonBinomial([0.9] * n)] for n in (4, 9, 2, 7, 2, 5, 1, 3)]
    >>> found = rate_ratios(drawn_counts(scans), [0] * 4 + [1] * 4, range(8))
    >>> round(float(np.exp(found.ratios[0].log_ratio.value)), 1)
    0.5
    """
    _models()  # or say at once that it is missing
    group, whose = np.asarray(groups, dtype=np.intp), patient_codes(patients)
    per = np.ones(len(group)) if exposure is None else np.asarray(exposure, dtype=np.float64)
    if {imputations.shape[1:], group.shape, whose.shape} != {per.shape} or not (per > 0).all():
        raise ScoreError("Expected a group, a patient and an exposure above 0 for each scan of the imputations.")
    why = [_why_unknown(imputations, group, whose, one) for one in range(int(group.max()) + 1)]
    kept = [one for one, reason in enumerate(why) if reason is None]
    is_clustered = len(np.unique(whose)) < len(whose)
    if why[0] is not None or len(kept) < 2:
        unknown = [RateRatio(one, why_unknown=why[one] or f"in the reference, {why[0]}") for one in range(1, len(why))]
        return RateRatios(tuple(unknown), is_clustered)
    rows = np.isin(group, kept)
    clusters = whose[rows] if is_clustered else None
    fits = [log_ratios(y[rows], np.searchsorted(kept, group[rows]), np.log(per[rows]), clusters) for y in imputations]
    df = len(np.unique(whose[rows])) - len(kept)
    found = {one: _pooled(one, fits, place, df) for place, one in enumerate(kept[1:])}
    ratios = (found.get(one) or RateRatio(one, why_unknown=why[one]) for one in range(1, len(why)))
    return RateRatios(tuple(ratios), is_clustered, sum(fit is not None and fit.is_poisson for fit in fits))


def _pooled(group: int, fits: Sequence[LogRatios | None], place: int, complete_df: int) -> RateRatio:
    """The ratio of a group, which has this place in the fits."""
    found = [fit for fit in fits if fit is not None]
    if len(found) < len(fits):
        why = f"the model did not converge on {len(fits) - len(found)} of {len(fits)} imputations"
        return RateRatio(group, why_unknown=why)
    values, variances = ([float(getattr(fit, name)[place]) for fit in found] for name in ("value", "variance"))
    one = pooled(values, variances, complete_df=complete_df)
    return RateRatio(group, one) if one.is_known else RateRatio(group, why_unknown="there are too few patients")


def _why_unknown(
    imputations: NDArray[np.int64], group: NDArray[np.intp], whose: NDArray[np.intp], one: int
) -> str | None:
    """Why nothing can be said of the rate of a group."""
    n_patients = len(np.unique(whose[group == one]))
    if n_patients < _FEWEST_PATIENTS:
        return "there is one patient only" if n_patients else "there is no scan"
    n_empty = int((imputations[:, group == one].sum(axis=1) == 0).sum())
    return f"there is no lesion in {n_empty} of {len(imputations)} imputations" if n_empty else None


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
        None if the search did not converge, or had no way to go on.
    """
    models = _models()
    n_groups = int(group.max()) + 1
    design = (group[:, None] == np.arange(n_groups)).astype(np.float64)
    design[:, 0] = 1.0  # the intercept: all others are differences from the first
    robust = {} if clusters is None else {"cov_type": "cluster", "cov_kwds": {"groups": clusters}}
    options: dict[str, Any] = {"disp": 0, "maxiter": _MOST_STEPS, **robust}
    try:
        fitted, more_than_poisson = _fitted(models, counts, design, log_exposure, options)
        value, variance = fitted.params[1:n_groups], np.diag(fitted.cov_params())[1:n_groups]
    except ValueError:  # exposures so far apart that a matrix has no inverse
        return None
    is_sound = fitted.mle_retvals["converged"] and np.isfinite(value).all() and bool((variance > 0).all())
    return LogRatios(value, variance, more_than_poisson <= 0) if is_sound else None


def _fitted(
    models: Any,
    counts: NDArray[Any],
    design: NDArray[np.float64],
    log_exposure: NDArray[np.float64],
    options: dict[str, Any],
) -> tuple[Any, float]:
    """What the better model of the two gives, and how much more than Poisson the counts vary."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # whether it has converged is seen by who asks
        fitted = models.Poisson(counts, design, offset=log_exposure).fit(**options)
        mean = fitted.predict()
        more_than_poisson = float(((counts - mean) ** 2 - counts).sum())
        # The slope of the likelihood where the dispersion is 0: if it falls from there, its maximum is there.
        if more_than_poisson > 0:
            begin = max(more_than_poisson / float((mean**2).sum()), _LEAST_DISPERSION)
            model = models.NegativeBinomial(counts, design, offset=log_exposure)
            fitted = model.fit(start_params=[*fitted.params, begin], **options)
    return fitted, more_than_poisson


def _models() -> Any:
    return optional("statsmodels.discrete.discrete_model", "stats", "A rate ratio")

"""What a question is asked of: candidates that are lesions or not, and what each adds to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.errors import DistributionError

# Probabilities computed in single precision may end this far outside [0, 1] by rounding.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class ExtraLesions:
    """Lesions without a candidate: how many there may be, and where.

    Parameters
    ----------
    mean : array_like of float, shape (M,) or ()
        Expected number, at each node.
    shape : float, default inf
        How alike scans are in it, as in `CountWithExtra`; infinite is a Poisson distribution.
    share : array_like of float, shape (C,)
        Into which of C cells each of them falls, independently of the others: probabilities whose sum is at most 1.
        What is missing from 1 adds to nothing.
    adds : mapping of str to array_like of bool, shape (C,)
        For each name, to which of the cells it belongs.
    """

    mean: NDArray[np.float64]
    share: NDArray[np.float64]
    adds: Mapping[str, NDArray[np.bool_]]
    shape: float = math.inf

    def __post_init__(self) -> None:
        mean = np.atleast_1d(np.asarray(self.mean, dtype=np.float64))
        if mean.ndim != 1 or not np.all((mean >= 0) & np.isfinite(mean)):
            raise DistributionError(f"Expected mean numbers of extra lesions of at least 0, but got {self.mean!r}.")
        if not self.shape > 0:
            raise DistributionError(f"Expected a shape above 0, but got {self.shape!r}.")
        share = _probabilities(self.share, ndim=1)
        if share.sum() > 1 + _ROUNDING:
            raise DistributionError(f"Expected shares whose sum is at most 1, but it is {share.sum():.6g}.")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "share", share / max(1.0, share.sum()))
        object.__setattr__(self, "adds", _adds(self.adds, len(share)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Trials:
    """Candidates as independent trials, each with one outcome or several that exclude each other.

    Parameters
    ----------
    probability : array_like of float, shape (K,) or (M, K)
        Of each outcome: for most, the existence of a candidate. With M rows, at each of M nodes of what a scan shares
        (`Calibration.at_nodes`).
    adds : mapping of str to array_like of bool, shape (K,)
        For each name that can be asked for, which outcomes add 1 to it. Regions may overlap.
    weights : array_like of float, shape (M,), optional
        Of the nodes; brought to the sum 1. Default: all alike.
    trial : array_like of int, shape (K,), optional
        Outcomes with the same number exclude each other: a candidate is new, or was there before. Default: each
        outcome is a candidate of its own.
    extra : ExtraLesions, or sequence of ExtraLesions, optional
        Lesions without a candidate, with the same names. Several are independent: new lesions that the map does not
        show, and those that are gone.

    Examples
    --------
    Two candidates in the first region, of which one is in the second, too:

    >>> trials = Trials(probability=[0.9, 0.5], adds={"count": [True, True], "periventricular": [True, False]})
    >>> trials.names
    ('count', 'periventricular')
    """

    probability: NDArray[np.float64]
    adds: Mapping[str, NDArray[np.bool_]]
    weights: NDArray[np.float64] = None  # type: ignore[assignment]  # made below: equal ones
    trial: NDArray[np.intp] | None = None
    extra: ExtraLesions | Sequence[ExtraLesions] | None = None

    def __post_init__(self) -> None:
        p = np.atleast_2d(_probabilities(self.probability))
        n_nodes, n_outcomes = p.shape
        object.__setattr__(self, "probability", p)
        object.__setattr__(self, "adds", _adds(self.adds, n_outcomes))
        object.__setattr__(self, "weights", _weights(self.weights, n_nodes))
        if self.trial is not None:
            object.__setattr__(self, "trial", _trial(self.trial, p))
        for extra in self.extras:
            self._check_extra(extra, n_nodes)

    def _check_extra(self, extra: ExtraLesions, n_nodes: int) -> None:
        if len(extra.mean) not in (1, n_nodes):
            raise DistributionError(
                f"Expected a mean number of extra lesions for each of {n_nodes} nodes, but got {len(extra.mean)}."
            )
        if set(extra.adds) != set(self.adds):
            raise DistributionError(
                f"Expected extra lesions to add to {', '.join(self.adds)}, but they add to {', '.join(extra.adds)}."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """What can be asked for."""
        return tuple(self.adds)

    @property
    def extras(self) -> tuple[ExtraLesions, ...]:
        """Lesions without a candidate, of each kind."""
        if self.extra is None:
            return ()
        return (self.extra,) if isinstance(self.extra, ExtraLesions) else tuple(self.extra)


def _probabilities(values: ArrayLike, ndim: int | None = None) -> NDArray[np.float64]:
    p = np.asarray(values, dtype=np.float64)
    if p.ndim not in ((1, 2) if ndim is None else (ndim,)):
        raise DistributionError(f"Expected a probability for each outcome, but their shape is {p.shape}.")
    if p.size and not (p.min() >= -_ROUNDING and p.max() <= 1 + _ROUNDING):
        raise DistributionError(f"Expected probabilities in [0, 1], but they span [{p.min():.6g}, {p.max():.6g}].")
    return np.clip(p, 0.0, 1.0)


def _adds(adds: Mapping[str, ArrayLike], n: int) -> dict[str, NDArray[np.bool_]]:
    checked = {name: np.asarray(which) for name, which in adds.items()}
    for name, which in checked.items():
        if which.shape != (n,) or (n and which.dtype != bool):
            raise DistributionError(
                f"Expected {n} booleans for {name!r}, one for each outcome, but got {which.dtype} of shape "
                f"{which.shape}."
            )
    return {name: which.astype(np.bool_) for name, which in checked.items()}


def _weights(weights: ArrayLike | None, n: int) -> NDArray[np.float64]:
    given = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != (n,) or not np.all(given >= 0) or not 0 < given.sum() < math.inf:
        raise DistributionError(f"Expected a weight of at least 0 for each of {n} nodes, but got {weights!r}.")
    return np.asarray(given / given.sum())


def _trial(trial: ArrayLike, p: NDArray[np.float64]) -> NDArray[np.intp]:
    """Numbers of trials, from 0 on, where no trial has outcomes of more than 1 in all."""
    given = np.asarray(trial)
    if given.shape != (p.shape[1],) or (given.size and given.dtype.kind not in "iu"):
        raise DistributionError(f"Expected the number of a trial for each of {p.shape[1]} outcomes, but got {trial!r}.")
    known, number = np.unique(given, return_inverse=True)
    total = np.zeros((len(known), len(p)))
    np.add.at(total, number, p.T)
    if total.size and total.max() > 1 + _ROUNDING:
        worst = known[total.max(axis=1).argmax()]
        raise DistributionError(
            f"Expected outcomes that exclude each other to have at most 1 in all, but those of trial {worst} have "
            f"{total.max():.6g}."
        )
    return number.astype(np.intp)

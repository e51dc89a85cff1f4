"""Candidates of new scans, beside those a calibration was fitted on: whether they look alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.errors import CalibrationError, listed
from lesioncount.trust.calibration import logit
from lesioncount.trust.candidate_table import TableLike, as_table

# With fewer new scans, nothing can be told.
FEWEST_SCANS = 10

# The most scans that a calibration remembers; of more, a random part.
_MOST_REMEMBERED = 300

# From so many counted scans on, a check sees a share of counts below some place that is off by about a fifth.
_MANY_SCANS = 100

# The standard deviation of places from 0 to 1 that are uniform, as where a calibration is right.
_UNIFORM = 1 / math.sqrt(12)

_N_SHUFFLES = 199
_ALARM = 0.05

_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_RANKS = (1, 2, 3, 5, 10)
_NONE = -4.0  # the logit of a candidate that is not there: below what counts as one

# What differs, in words: places among the twelve numbers, and what it is called if they are larger or smaller.
_IN_WORDS = (
    ((10,), "more candidates per scan", "fewer candidates per scan"),
    ((0, 1, 2, 3, 4), "higher probabilities", "lower probabilities"),
    ((5, 6, 7), "higher best candidates", "lower best candidates"),
    ((11,), "larger counts", "smaller counts"),
)
_N_NUMBERS = len(_QUANTILES) + len(_RANKS) + 2


def numbers_of_scan(candidates: TableLike) -> NDArray[np.float64]:
    """What a calibration remembers of a scan: twelve numbers.

    Quantiles of the logits of its candidates, the highest of them, and how many there are and seem to be lesions.
    """
    table = as_table(candidates)
    logits = np.sort(logit(table.peak))[::-1]
    quantiles = np.quantile(logits, _QUANTILES) if len(logits) else np.full(len(_QUANTILES), _NONE)
    ranked = [logits[rank - 1] if rank <= len(logits) else _NONE for rank in _RANKS]
    # To the digits that a file keeps: where best candidates are as sure as can be, new scans tie with old ones.
    return np.round([*quantiles, *ranked, np.log1p(len(logits)), np.log1p(float(table.existence().sum()))], 4)


def places_of(distributions: Sequence[CountDistribution], counts: Sequence[int], *, seed: int) -> list[float]:
    """Where each count lies in its distribution: the probability of less, and a random part of that of as many.

    Uniform from 0 to 1 where distributions are right. (The middle of each step would not be: of counts that are nearly
    certain, all would lie at nearly one place, and its last digit would tell two groups of scans apart.)
    """
    shares = np.random.default_rng(seed).random(len(counts))
    each = zip(distributions, counts, shares, strict=True)
    return [float(np.clip(one.cdf(count) - share * one.pmf(count), 0.0, 1.0)) for one, count, share in each]


@dataclass(frozen=True)
class Unlike:
    """What a comparison of new scans with those of a calibration has found.

    Attributes
    ----------
    p : float
        How often scans like those of the calibration would look this different.
    n_scans : int
        New scans that were looked at: of many, a random part.
    outliers : tuple of str
        The names of those that look unlike every single one of the calibration.
    differences : tuple of str
        What is different, the largest first.
    which : str
        What the new scans are called.
    """

    p: float
    n_scans: int
    outliers: tuple[str, ...]
    differences: tuple[str, ...]
    which: str = "These scans"

    @property
    def is_alarm(self) -> bool:
        """Whether the new scans are unlike those of the calibration, beyond chance."""
        return self.p <= _ALARM

    def __str__(self) -> str:
        if self.is_alarm:
            p = "p < 0.01" if self.p < 0.01 else f"p = {self.p:.2g}"
            words = f"{self.which} are unlike those of the calibration ({p}): {', '.join(self.differences)}."
        else:
            words = (
                f"{self.which} look like those of the calibration; looking at the maps cannot tell whether "
                "probabilities mean the same."
            )
        if self.outliers:
            n = len(self.outliers)
            words += f" {n} of {self.n_scans} look unlike every one of those: {listed(self.outliers)}."
        return words


@dataclass(frozen=True)
class CountCheck:
    """Whether true counts of new scans lie in what a calibration says as those of its own scans do.

    Attributes
    ----------
    p : float
        How often scans like those of the calibration would fit it as badly.
    n_scans : int
        New scans.
    middle : float
        The mean place of their counts: above 0.5, there are more lesions than it says.
    scatter : float
        The standard deviation of these places: of a calibration that is right, 0.29.
    """

    p: float
    n_scans: int
    middle: float
    scatter: float

    @property
    def is_alarm(self) -> bool:
        """Whether they do not, beyond chance."""
        return self.p <= _ALARM

    def __str__(self) -> str:
        counts = f"The counts of {self.n_scans} scans"
        if not self.is_alarm:
            few = f" With {self.n_scans} scans, only large differences are seen." if self.n_scans < _MANY_SCANS else ""
            return f"{counts} fit the calibration as its own do (p = {self.p:.2g}).{few}"
        return (
            f"{counts} do not fit this calibration (p = {self.p:.2g}): {self._way} than it says. Calibrate again on "
            "scans like these."
        )

    @property
    def _way(self) -> str:
        """What is different. A direction is named if the mean place is clearly off: by two standard errors."""
        if abs(self.middle - 0.5) > 2 * _UNIFORM / math.sqrt(self.n_scans):
            return f"there are {'more' if self.middle > 0.5 else 'fewer'} lesions"
        return f"counts scatter {'more' if self.scatter > _UNIFORM else 'less'}"


@dataclass(frozen=True, eq=False)
class CalibrationScans:
    """What a calibration remembers of the scans it was fitted on.

    Parameters
    ----------
    numbers : array_like of float, shape (n, 12)
        Of each scan, see `numbers_of_scan`.
    pits : sequence of float, optional
        Where its true count lies in the distribution that a calibration without it gives: from 0 to 1.

    Notes
    -----
    Each number becomes the normal score of its rank among all scans, old and new. The energy distance between old and
    new is then compared with that of scans which are dealt out anew: an exact test, if all are exchangeable.
    It sees how candidates look. That a score *means* something else it cannot see: for that, `check` takes counts.
    """

    numbers: NDArray[np.float64]
    pits: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        numbers = np.asarray(self.numbers, dtype=np.float64)
        if numbers.ndim != 2 or numbers.shape[1] != _N_NUMBERS or not np.isfinite(numbers).all():
            raise CalibrationError(f"Expected {_N_NUMBERS} numbers for each scan of a calibration.")
        pits = tuple(map(float, self.pits))
        if not all(0 <= one <= 1 for one in pits):
            raise CalibrationError("Expected places of counts in their distributions, from 0 to 1.")
        object.__setattr__(self, "numbers", numbers)
        object.__setattr__(self, "pits", pits)

    @classmethod
    def of(cls, candidates: Sequence[TableLike], pits: Sequence[float] = ()) -> Self:
        """From the candidates of each scan."""
        order = np.random.default_rng(0).permutation(len(candidates))[:_MOST_REMEMBERED]
        rows = [numbers_of_scan(candidates[row]) for row in sorted(order.tolist())]
        numbers = np.reshape(np.array(rows, dtype=np.float64), (-1, _N_NUMBERS))
        return cls(numbers, tuple(round(one, 4) for one in pits))

    def compare(self, candidates: Sequence[TableLike], *, names: Sequence[str] = (), seed: int = 0) -> Unlike | None:
        """Whether new scans look like these; None if they are too few to tell, or these are.

        Scans that look unlike all of these are called by their names, or else by their numbers from 1.
        """
        if min(len(candidates), len(self.numbers)) < FEWEST_SCANS:
            return None
        rows = sorted(np.random.default_rng(seed).permutation(len(candidates))[: 2 * _MOST_REMEMBERED].tolist())
        new = np.array([numbers_of_scan(candidates[row]) for row in rows])
        scores = _normal_scores(np.concatenate([self.numbers, new]))
        is_new = np.arange(len(scores)) >= len(self.numbers)
        apart = np.sqrt(((scores[:, None] - scores[None]) ** 2).sum(axis=-1))
        p = _p_of(lambda which: _energy(apart, which), is_new, seed)
        outliers = compress(rows, _are_outliers(apart, is_new))
        called = tuple(names[row] if names else str(row + 1) for row in outliers)
        return Unlike(p, len(rows), called, _differences(scores, is_new))

    def check(self, pits: ArrayLike, *, seed: int = 0) -> CountCheck:
        """Whether true counts of new scans lie elsewhere in their distributions than those of these.

        From where the counts of new scans lie in the distributions of the calibration: the largest difference between
        the two cumulative shares, among deals of all scans. Places are partly random (`places_of`): given several rows
        of them, p is the mean over rows, which depends much less on the luck of one.
        """
        if not self.pits:
            raise CalibrationError(
                "The calibration does not remember counted scans of its own, which these could be compared with. "
                "Calibrate from counted scans: lesioncount calibrate, or count --known."
            )
        drawn = np.atleast_2d(np.asarray(pits, dtype=np.float64))
        n_new = drawn.shape[1]
        if n_new < FEWEST_SCANS:
            raise CalibrationError(f"A check needs {FEWEST_SCANS} counted scans, but there are {n_new}.")
        p = float(np.mean([self._p_of_places(new, seed + row) for row, new in enumerate(drawn)]))
        return CountCheck(p, n_new, float(drawn.mean()), float(drawn.std()))

    def _p_of_places(self, new: NDArray[np.float64], seed: int) -> float:
        values = np.concatenate([self.pits, new])
        grid = np.unique(values)

        def distance(which: NDArray[np.bool_]) -> float:
            ours, theirs = (
                np.searchsorted(np.sort(part), grid, "right") / len(part) for part in (values[~which], values[which])
            )
            return float(np.abs(ours - theirs).max())

        return _p_of(distance, np.arange(len(values)) >= len(self.pits), seed)

    @cached_property
    def n_scans(self) -> int:
        """That are remembered."""
        return len(self.numbers)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {"numbers": self.numbers.tolist(), "pits": list(self.pits)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From what `to_dict` gave."""
        return cls(np.reshape(np.array(values["numbers"], dtype=np.float64), (-1, _N_NUMBERS)), values["pits"])


def _normal_scores(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each column: the quantile of a normal distribution at the rank of each value; equal ones share theirs."""
    n, normal = len(values), NormalDist()
    quantiles = np.array([normal.inv_cdf((i + 0.5) / (2 * n)) for i in range(2 * n)])
    columns = []
    for column in values.T:
        ordered = np.sort(column)
        twice = np.searchsorted(ordered, column, "left") + np.searchsorted(ordered, column, "right")
        columns.append(quantiles[np.minimum(twice, 2 * n - 1)])
    return np.array(columns).T


def _are_outliers(apart: NDArray[np.float64], is_new: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which new scans have no old one as near as every old one has another."""
    old = apart[np.ix_(~is_new, ~is_new)] + np.diag(np.full(int((~is_new).sum()), np.inf))
    return np.asarray(apart[np.ix_(is_new, ~is_new)].min(axis=1) > old.min(axis=1).max())


def _energy(apart: NDArray[np.float64], which: NDArray[np.bool_]) -> float:
    """Energy distance between two groups of scans, from all distances between scans."""
    a, b = ~which, which
    between, within_a, within_b = apart[np.ix_(a, b)].mean(), apart[np.ix_(a, a)].mean(), apart[np.ix_(b, b)].mean()
    return float(2 * between - within_a - within_b)


def _p_of(statistic: Any, which: NDArray[np.bool_], seed: int) -> float:
    """The share of deals in which a statistic is at least as large as here, this one among them."""
    rng, found = np.random.default_rng(seed), statistic(which)
    larger = sum(statistic(rng.permutation(which)) >= found - 1e-12 for _ in range(_N_SHUFFLES))
    return float((1 + larger) / (1 + _N_SHUFFLES))


def _differences(scores: NDArray[np.float64], is_new: NDArray[np.bool_]) -> tuple[str, ...]:
    """What differs by a third of a standard deviation or more, or else most: the largest two."""
    shifts = scores[is_new].mean(axis=0) - scores[~is_new].mean(axis=0)
    named = [(float(shifts[list(places)].mean()), more, less) for places, more, less in _IN_WORDS]
    named.sort(key=lambda one: -abs(one[0]))
    kept = [one for one in named if abs(one[0]) > 1 / 3][:2] or named[:1]
    return tuple(more if shift > 0 else less for shift, more, less in kept)

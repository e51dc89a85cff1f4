"""Scans with known counts → intervals and sets that hold the count as often as promised, however wrong the maps are."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.checks import too_many
from lesioncount.distributions.count_distribution import CountDistribution, is_between
from lesioncount.errors import CalibrationError

# Below this a probability loses its digits and its order, and tables of endless distributions end: it counts as none.
_NO_MASS = 1e-290

# The score of a count without mass, to which its distance is added: above -log(1e-290) = 667.7, below which all others
# are. (1 minus a probability, the usual score, is 1.0 for all improbable counts alike, and would tie with these.)
_BEYOND = 1000.0

# Scores this close are equal. Rounding differs in the last digits with the order of sums; ties must be kept as ties.
ROUNDING = 1e-9

# No scan has a count this far from all that are possible. Scores beyond it, from a file, would make endless intervals.
_FARTHEST = 1_000_000

# From so many patients on, half of them fit a calibration for intervals, and half the intervals, with a proof for what
# is asked for. With fewer, each scan is judged by a calibration of all others: see `JackknifeCounts`.
PATIENTS_FOR_HALVES = 80


@dataclass(frozen=True, repr=False)
class ConformalCounts:
    """Split-conformal intervals and sets of counts, on top of any count distribution.

    Of new scans, a share of at least ``confidence`` has its true count inside, if they and the calibration scans are
    exchangeable (the same kind of patients, scanners and network). Nothing is asked of the distributions: when they are
    wrong, intervals become wide. Made by `fit`; any confidence may be asked later, for the scores are kept.

    Parameters
    ----------
    kind : {"interval", "set"}
        What was fitted: equal-tailed intervals, or sets of the most probable counts.
    scores : sequence of sequences of float
        For each group, the nonconformity scores of its calibration scans, ascending.
    group_edges : sequence of int, default ()
        The smallest predicted count of each group but the first.

    Notes
    -----
    The score of a count c says how badly it fits the distribution of its scan::

        interval:  s(c) = -log min(1, 2 P(C ≤ c), 2 P(C ≥ c))
        set:       s(c) = -log P(C = c)

    The first is the level 1 - 2 min(P(C ≤ c), P(C ≥ c)) of the smallest equal-tailed interval that holds c, on a scale
    that keeps improbable counts apart. A count that has no mass (below 1e-290) comes after all that have some, by its
    distance to the nearest of them. With s_(1) ≤ … ≤ s_(n) the scores of the true counts of n scans, the answer is::

        { c ≥ 0 : s(c) ≤ s_(k) },  k = ⌈(n + 1) confidence⌉

    The score of one more scan is equally likely to have any rank among all n + 1, so it is at most s_(k) with
    probability k / (n + 1) or more. This needs k ≤ n, that is n ≥ 1 / (1 - confidence) - 1. The probability is over
    calibration scans and new scan together; it holds on average, not for each kind of scan. With groups (Mondrian) it
    also holds among the scans of each group. Several scans of one patient are not exchangeable with a new patient's.

    Counts are whole numbers, so scores tie and answers cover more often than asked. A random choice among ties would
    remove this, but give two answers for one scan, and is not made. A set that would be empty holds the mode.

    References
    ----------
    Vovk, Gammerman, Shafer, *Algorithmic Learning in a Random World*, 2005. Sadinle, Lei, Wasserman, *Least Ambiguous
    Set-Valued Classifiers with Bounded Error Levels*, JASA 2019.

    Examples
    --------
    A network that is too sure of itself, and nineteen scans in which lesions were counted:

    >>> from lesioncount import PoissonBinomial
    >>> sure = PoissonBinomial([0.99, 0.99, 0.01])
    >>> counted = [2, 2, 1, 2, 3, 2, 2, 4, 2, 1, 2, 2, 3, 2, 2, 2, 3, 2, 2]
    >>> conformal = ConformalCounts.fit([sure] * 19, counted)
    >>> conformal
    ConformalCounts(kind='interval', 19 scans)
    >>> sure.interval(0.9), conformal.interval(sure, 0.9), conformal.interval(sure, 0.95)
    ((2, 2), (1, 3), (0, 4))
    """

    kind: Literal["interval", "set"]
    scores: tuple[tuple[float, ...], ...]
    group_edges: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check once, and store plain Python numbers whatever came."""
        if self.kind not in ("interval", "set"):
            raise CalibrationError(f'Expected kind to be "interval" or "set", but got {self.kind!r}.')
        object.__setattr__(self, "group_edges", _checked_edges(self.group_edges))
        object.__setattr__(self, "scores", checked_scores(self.scores, len(self.group_edges) + 1))

    @classmethod
    def fit(
        cls,
        distributions: Sequence[CountDistribution],
        counts: ArrayLike,
        *,
        kind: Literal["interval", "set"] = "interval",
        group_edges: Sequence[int] | None = None,
    ) -> Self:
        """From the distributions of scans and their true counts.

        Parameters
        ----------
        distributions : sequence of CountDistribution
            One per scan, of scans that neither network nor calibration was fitted on.
        counts : array_like of int
            The true counts of these scans.
        kind : {"interval", "set"}, default "interval"
            Intervals cut equal tails off; sets take the most probable counts and may have gaps.
        group_edges : sequence of int, optional
            Group scans by their most probable count: (1, 3) makes the groups 0, 1 to 2, and 3 or more. Each has the
            promised coverage by itself, and needs scans enough of its own. Default: one group.
        """
        truths = _checked_counts(counts, len(distributions))
        edges = _checked_edges(() if group_edges is None else group_edges)
        groups: list[list[float]] = [[] for _ in range(len(edges) + 1)]
        for distribution, count in zip(distributions, truths, strict=True):
            groups[_group_of(distribution, edges)].append(_score(kind, distribution, count))
        return cls(kind, tuple(tuple(sorted(group)) for group in groups), edges)

    def interval(self, distribution: CountDistribution, confidence: float) -> tuple[int, int]:
        """Lowest and highest count of the interval that holds the true one with this confidence; of a set, its hull."""
        counts = self.prediction_set(distribution, confidence)
        return counts[0], counts[-1]

    def prediction_set(self, distribution: CountDistribution, confidence: float) -> tuple[int, ...]:
        """The counts, ascending, that the true one is among with this confidence; of an interval, all it holds."""
        highest_score = self._quantile(_group_of(distribution, self.group_edges), confidence)
        if highest_score >= _BEYOND:
            distance = int(highest_score - _BEYOND)
            first, last = _reach(distribution, _NO_MASS)
            return tuple(range(max(0, first - distance), last + distance + 1))
        mass = max(_NO_MASS, math.exp(-highest_score - ROUNDING))
        first, last = _reach(distribution, mass)
        counts = np.arange(first, last + 1)
        return tuple(counts[_masses(self.kind, distribution, counts) >= mass].tolist()) or (distribution.mode(),)

    def check(self, confidence: float) -> None:
        """Refuse now, rather than at the first such scan, if a group has too few scans for this confidence."""
        for group in range(len(self.scores)):
            self._quantile(group, confidence)

    def proven(self, confidence: float) -> float:
        """The coverage that is proven where this one is asked for: more than that, as ranks are whole numbers."""
        self.check(confidence)
        return min(rank_of(len(group), confidence) / (len(group) + 1) for group in self.scores)

    def to_dict(self) -> dict[str, Any]:
        """The fields, as values that JSON has; numbers survive exactly."""
        return {"kind": self.kind, "scores": [list(s) for s in self.scores], "group_edges": list(self.group_edges)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From what `to_dict` gave."""
        expected = {field.name for field in fields(cls)}
        if not isinstance(values, Mapping) or set(values) != expected:
            raise CalibrationError(f"Expected the fields {', '.join(sorted(expected))}, but got {str(values)[:60]!r}.")
        return cls(**values)

    def __repr__(self) -> str:
        n = " + ".join(str(len(group)) for group in self.scores)
        return f"ConformalCounts(kind={self.kind!r}, {n} scans)"

    def _quantile(self, group: int, confidence: float) -> float:
        """The score that a new one does not exceed with at least this probability."""
        n = len(self.scores[group])
        rank = rank_of(n, confidence)
        if rank > n:
            name = _group_name(self.group_edges, group)
            raise CalibrationError(too_few(needed_scans(confidence), n, confidence, name))
        return self.scores[group][rank - 1]


def rank_of(n: int, confidence: float) -> int:
    """Which of n scores, from the smallest on, a new one does not exceed with at least this probability."""
    if not is_between(confidence, 0, 1) or confidence in (0, 1):
        raise CalibrationError(f"Expected a confidence between 0 and 1, but got {confidence!r}. For 90 % pass 0.9.")
    # Without rounding, 100 × 0.55 would be 55.00000000000001 and its ceiling 56.
    return max(1, math.ceil((n + 1) * confidence - ROUNDING))


def needed_scans(confidence: float) -> int:
    """The smallest number of scans whose ranks reach a confidence."""
    return math.ceil((1 - ROUNDING) / (1 - confidence)) - 1


def _group_of(distribution: CountDistribution, edges: Sequence[int]) -> int:
    return bisect_right(edges, distribution.mode()) if edges else 0


def _score(kind: str, distribution: CountDistribution, count: int) -> float:
    """How badly a count fits: -log of its mass, or beyond all those by its distance to the nearest count with mass."""
    mass = float(_masses(kind, distribution, np.array([count]))[0])
    if mass >= _NO_MASS:
        return -math.log(mass) + 0.0  # no -0.0
    first, last = _reach(distribution, _NO_MASS)
    return _BEYOND + max(0, first - count, count - last)


def _masses(kind: str, distribution: CountDistribution, counts: NDArray[np.int_]) -> NDArray[np.float64]:
    tails: NDArray[np.float64] = np.minimum(distribution.cdf(counts), distribution.sf(counts - 1))
    # A count is no more probable than its tails, except by rounding and where the table of an endless tail has ended.
    masses = np.minimum(1.0, 2 * tails) if kind == "interval" else np.minimum(tails, distribution.pmf(counts))
    return np.asarray(masses)


def _reach(distribution: CountDistribution, mass: float) -> tuple[int, int]:
    """First and last count whose tails hold half of this mass or more: of either kind, all counts with this mass."""
    low, high = distribution.support()
    middle = distribution.median()
    below = _farthest(lambda steps: distribution.cdf(middle - steps) >= mass / 2, middle - low)
    above = _farthest(lambda steps: distribution.sf(middle + steps - 1) >= mass / 2, high - middle)
    return middle - below, middle + above


def _farthest(holds: Callable[[NDArray[np.int_]], NDArray[np.bool_]], limit: float) -> int:
    """The largest step up to a limit, perhaps infinite, for which something holds that holds for all smaller ones."""
    width = 64
    while (within := int(np.count_nonzero(holds(np.arange(1, int(min(width, limit)) + 1))))) == width:
        width *= 16
    return within


def _group_name(edges: tuple[int, ...], group: int) -> str:
    if not edges:
        return ""
    if group == len(edges):
        return f" with a predicted count of {edges[-1]} or more"
    first, last = (0, *edges)[group], edges[group] - 1
    return f" with a predicted count of {first if first == last else f'{first} to {last}'}"


def too_few(needed: int, n: int, confidence: float, group: str = "") -> str:
    """What to say of scans, perhaps of one group, that are too few for a confidence."""
    return (
        f"A confidence of {confidence:g} needs at least {needed} calibration scans{group}, but there are {n}. "
        + (f"Ask for {n}/{n + 1} or less, or add" if n else "Add")
        + (" scans, or make fewer groups." if group else " scans.")
    )


def _checked_edges(edges: ArrayLike) -> tuple[int, ...]:
    given = np.asarray(edges)
    if given.ndim != 1 or (given.size and not (_are_whole(given) and given[0] >= 1 and (np.diff(given) > 0).all())):
        raise CalibrationError(f"Expected group_edges to be ascending counts of at least 1, but got {edges!r}.")
    return tuple(int(edge) for edge in given)


def checked_scores(
    scores: Sequence[ArrayLike], n_groups: int, *, in_order: bool = True
) -> tuple[tuple[float, ...], ...]:
    """The scores of each group as plain numbers; raise unless they are some, and in their order."""
    try:
        groups = [np.array(group, dtype=np.float64) for group in scores]
    except (TypeError, ValueError, OverflowError):
        raise CalibrationError("Expected scores to be a list of numbers for each group.") from None
    if len(groups) != n_groups:
        raise CalibrationError(f"Expected scores of {n_groups} groups, one more than edges, but got {len(groups)}.")
    for group in groups:
        is_sorted = not in_order or (np.diff(group) >= 0).all()
        if group.ndim != 1 or not (np.isfinite(group).all() and (group >= 0).all() and is_sorted):
            raise CalibrationError("Expected the scores of each group to be numbers of at least 0, ascending.")
        if group.size and group[-1] > _BEYOND + _FARTHEST:
            raise CalibrationError(
                f"Expected true counts within {_FARTHEST:,} of what is possible, but a score says {group[-1]:g}."
            )
    return tuple(tuple(group.tolist()) for group in groups)


def _checked_counts(counts: ArrayLike, n: int) -> list[int]:
    given = np.asarray(counts)
    if given.shape != (n,):
        raise CalibrationError(f"Expected a count for each of {n} distributions, but their shape is {given.shape}.")
    if n == 0:
        raise CalibrationError("Expected scans to calibrate on, but there are none.")
    if not _are_whole(given) or given.min() < 0:
        raise CalibrationError("Expected counts to be whole numbers of at least 0.")
    if why := too_many(given):
        raise CalibrationError(why)
    return [int(count) for count in given]


def _are_whole(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iuf" and bool(np.all(np.isfinite(values) & (values == np.floor(values))))


def promise_of(proven: float, confidence: float, *, what: str = "scans", those: str = "these") -> str:
    """What is proven of intervals of a confidence, in words, and how many scans or pairs would prove it."""
    percent = int(1000 * proven + 1e-9) / 10  # not more than it is
    words = f"Proven for new {what} like {those}: {percent:g} % or more of the true counts lie inside, on average"
    if proven >= confidence:
        return f"{words}."
    return f"{words}. {PATIENTS_FOR_HALVES} {what} would prove {100 * confidence:g} %."

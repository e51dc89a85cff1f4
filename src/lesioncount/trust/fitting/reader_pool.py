"""A count from candidates, and what readers have counted → what another reader would count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, Self

import numpy as np
from msgspec import Struct, convert, to_builtins
from numpy.typing import NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.tabulated import TabulatedCount
from lesioncount.errors import CalibrationError
from lesioncount.trust.fitting.descent import minimum

# So many reads of a scan are pooled; with more, the numbers of this many are used.
MOST_READS = 3

# Fewer scans with enough readers than this would give numbers of the sample.
FEWEST_SCANS = 20

# Counts beyond what candidates and readers say, which get a little probability, too.
_BEYOND = 8
_TINY = 1e-12

# Of log alpha, log s0 and log s1: where the search begins, its bounds, and steps of differences.
_START = np.log([0.6, 2.0, 0.5])
_LOWEST, _HIGHEST = np.log([0.05, 0.1, 0.01]), np.log([3.0, 20.0, 5.0])
_STEP = 1e-4


class PoolNumbers(Struct, frozen=True):
    """Three numbers of the pool for m reads.

    Attributes
    ----------
    alpha : float
        How much the candidates are trusted.
    s0, s1 : float
        How far readers lie from each other: s0 + s1 √r where one has counted r.
    """

    alpha: float
    s0: float
    s1: float


class ReaderPool(Struct, frozen=True):
    """What another reader would count, given candidates and the counts of m = 1, 2 or 3 readers of the same scan.

    Attributes
    ----------
    by_reads : tuple of PoolNumbers
        For one read, two reads, … as far as there were readers to fit them.
    n_scans : int
        Scans that they were fitted on.

    Notes
    -----
    A log-linear pool: with P_cand the distribution of the count from candidates, and r_b what reader b has counted,

        log P(c) = alpha log P_cand(c) - Σ_b |c - r_b| / (s0 + s1 √r_b) + const.

    Alpha, s0 and s1 have the smallest mean ranked probability score of a reader who was left out, over all choices of
    this reader and of m others, where P_cand is from a calibration that was fitted on other scans.
    """

    by_reads: tuple[PoolNumbers, ...]
    n_scans: int = 0

    @classmethod
    def fit(
        cls, counts: Sequence[CountDistribution], readings: Sequence[Sequence[int] | NDArray[np.int64]], /
    ) -> Self | None:
        """From counts that were calibrated without their scans; None if too few scans have two readers."""
        found: list[PoolNumbers] = []
        n_scans = sum(len(of) > 1 for of in readings)
        for m in range(1, MOST_READS + 1):
            chosen = [place for place, of in enumerate(readings) if len(of) > m]
            if len(chosen) < FEWEST_SCANS:
                break
            score = _score([counts[place] for place in chosen], [readings[place] for place in chosen], m)
            point, _ = minimum(_with_slopes(score), _START, _LOWEST, _HIGHEST, np.eye(len(_START)))
            found.append(PoolNumbers(*np.exp(point).tolist()))
        return cls(tuple(found), n_scans) if found else None

    def distribution(self, count: CountDistribution, reads: Sequence[int], /) -> CountDistribution:
        """What another reader would count.

        Parameters
        ----------
        count : CountDistribution
            From candidates, calibrated.
        reads : sequence of int
            What readers have counted in this scan; without any, the count stays as it is.

        Examples
        --------
        >>> pool = ReaderPool((PoolNumbers(0.7, 1.6, 0.5),))
        >>> pool.distribution(TabulatedCount(np.array([0.5, 0.3, 0.2])), [2]).median()
        1
        """
        if not len(reads):
            return count
        m = min(len(reads), len(self.by_reads))
        numbers = self.by_reads[m - 1]
        logs = _padded([count], [reads])
        apart = _apart(np.array([reads], dtype=np.float64), logs.shape[1])
        # More reads than were ever fitted weigh together as much as those.
        pooled = _pooled(logs, apart, np.array([reads], dtype=np.float64), numbers, weight=m / len(reads))
        return TabulatedCount(pooled[0])

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        plain: dict[str, Any] = to_builtins(self)
        return plain

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """From plain values; numbers out of range are refused."""
        pool = convert(content, cls)
        if not pool.by_reads or any(not (n.alpha >= 0 and n.s0 > 0 and n.s1 >= 0) for n in pool.by_reads):
            raise CalibrationError("Expected numbers above 0 for the pool of readers (alpha, s0, s1).")
        return pool


def _padded(counts: Sequence[CountDistribution], reads: Sequence[Any]) -> NDArray[np.float64]:
    """Logarithms of P_cand for 0, 1, … beyond all that is likely or was read, (n, K)."""
    tables = [count.pmf() for count in counts]
    likely = max(int(np.flatnonzero(table > _TINY)[-1]) for table in tables)
    size = max(likely, *(int(np.max(of)) for of in reads)) + _BEYOND
    padded = np.zeros((len(tables), size))
    for row, table in zip(padded, tables, strict=True):
        row[: min(len(table), size)] = table[:size]
    return np.log(np.maximum(padded, _TINY))


def _apart(reads: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """|c - r| for each row, count and read, (n, K, m)."""
    return np.abs(np.arange(size)[None, :, None] - reads[:, None, :])


def _pooled(
    logs: NDArray[np.float64],
    apart: NDArray[np.float64],
    reads: NDArray[np.float64],
    numbers: PoolNumbers,
    *,
    weight: float = 1.0,
) -> NDArray[np.float64]:
    """P(c) of each row, (n, K)."""
    scale = numbers.s0 + numbers.s1 * np.sqrt(reads)
    total = numbers.alpha * logs - weight * np.einsum("nkm,nm->nk", apart, 1 / scale)
    p = np.exp(total - total.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _score(
    counts: Sequence[CountDistribution], readings: Sequence[Any], m: int
) -> Callable[[NDArray[np.float64]], float]:
    """The RPS of left-out readers for given numbers: mean over the choices of a scan, summed over scans."""
    rows = [
        (place, [of[b] for b in others], of[left])
        for place, of in enumerate(readings)
        for left in range(len(of))
        for others in combinations([b for b in range(len(of)) if b != left], m)
    ]
    places = np.array([place for place, *_ in rows])
    reads = np.array([read for _, read, _ in rows], dtype=np.float64)
    logs = _padded(counts, readings)[places]
    apart = _apart(reads, logs.shape[1])
    above = np.arange(logs.shape[1])[None] >= np.array([truth for *_, truth in rows])[:, None]
    share = 1 / np.bincount(places)[places]

    def score(point: NDArray[np.float64]) -> float:
        pooled = _pooled(logs, apart, reads, PoolNumbers(*np.exp(point).tolist()))
        return float(share @ ((np.cumsum(pooled, axis=1) - above) ** 2).sum(axis=1))

    return score


def _with_slopes(
    score: Callable[[NDArray[np.float64]], float],
) -> Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]:
    """The same with its gradient, by differences."""

    def both(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        steps = _STEP * np.eye(len(point))
        slopes = [(score(point + step) - score(point - step)) / (2 * _STEP) for step in steps]
        return score(point), np.array(slopes)

    return both

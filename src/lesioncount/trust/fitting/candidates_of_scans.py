"""The candidates of scans with known truth, as a calibration corrects them, with derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.coupling import DEFAULT_COUPLING, margin_of
from lesioncount.trust.calibration import logit
from lesioncount.trust.fitting.corrected import Height, only_now
from lesioncount.trust.heights import Counted, Heights, uncorrected
from lesioncount.trust.nodes import normal_nodes

# A peak that is no higher than its saddle, by rounding, has at least this probability of its own.
_NO_PEAK = 1e-15


class Numbers(NamedTuple):
    """What is fitted: the numbers of a `Calibration`, in the order of all vectors here."""

    slope: float
    offset: float
    spread: float
    extra_rate: float
    extra_share: float
    extra_shape: float
    crowding: float = 0.0


@dataclass(frozen=True, eq=False)
class Evidence:
    """What maps say of the candidates of scans, and what is counted.

    Attributes
    ----------
    heights : sequence of Heights
        Of each scan.
    counted : str
        "lesions", or of two times "new", "gone" or "persisting".
    coupling : float
        Of changes.
    """

    heights: Sequence[Heights]
    counted: Counted = "lesions"
    coupling: float = DEFAULT_COUPLING

    @classmethod
    def of(cls, peaks: Sequence[ArrayLike], saddles: Sequence[ArrayLike] | None = None) -> Evidence:
        """Of lesions."""
        below = [None] * len(peaks) if saddles is None else saddles
        return cls([Heights.of(p, d) for p, d in zip(peaks, below, strict=True)])

    @property
    def log_crowds(self) -> NDArray[np.float64]:
        """Logarithm of one more than the count that each scan seems to have."""
        seeming = [np.sum(uncorrected(one, self.counted, self.coupling)) for one in self.heights]
        return np.log1p(np.array(seeming, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class CorrectedCandidates:
    """Candidates of all scans at each node: probabilities, and their derivatives; what is expected of each scan."""

    z: NDArray[np.float64]  # (nodes, 1)
    weights: NDArray[np.float64]  # (nodes,)
    p: NDArray[np.float64]  # (nodes, candidates), as all below but the last two
    by_slope: NDArray[np.float64]
    by_offset: NDArray[np.float64]
    expected: NDArray[np.float64]  # (nodes, scans)
    extra: NDArray[np.float64]  # (nodes, scans)


class CandidatesOfScans:
    """The candidates of all scans, one after the other."""

    def __init__(self, evidence: Evidence) -> None:
        heights, self._evidence = evidence.heights, evidence
        sizes = [len(one.peaks) for one in heights]
        self._peaks = logit(np.concatenate([np.empty(0), *(one.peaks for one in heights)]))
        below = [np.broadcast_to(one.saddles, one.peaks.shape) for one in heights]
        saddles = np.concatenate([np.empty(0), *below])
        self._with_saddle = np.flatnonzero(saddles > 0)
        self._saddles = logit(saddles[self._with_saddle])
        others = [one.others for one in heights if one.others is not None]
        self._others = np.concatenate(others) if others else None
        self._risen = logit(np.concatenate([np.empty(0), *(one.risen for one in heights if one.risen is not None)]))
        self.begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        self.n_of = np.array(sizes, dtype=np.int64)
        self._scan = np.repeat(np.arange(len(sizes)), sizes)
        self.crowd = evidence.log_crowds
        self.crowd -= self.crowd.mean() if sizes else 0.0

    def corrected(self, numbers: Numbers, n_nodes: int) -> CorrectedCandidates:
        """Probabilities of all candidates at each node, under some numbers."""
        z, weights = normal_nodes(n_nodes)
        z = z[:, None]
        shift = numbers.offset + numbers.crowding * self.crowd[self._scan] + numbers.spread * z
        own = self._own(numbers.slope, shift)
        p = own.value
        if len(self._saddles) or self._others is not None:
            p = np.maximum(p, _NO_PEAK)
        expected = self.sums(p)
        extra = numbers.extra_rate + numbers.extra_share * expected
        return CorrectedCandidates(z, weights, p, own.by_slope, own.by_offset, expected, extra)

    def _own(self, slope: float, shift: NDArray[np.float64]) -> Height:
        peak = Height.of(self._peaks, slope, shift)
        if not len(self._saddles) and self._others is None:
            return peak
        saddle = self._at_saddles(slope, shift)
        if self._others is None:
            return peak - saddle
        coupling = self._evidence.coupling
        other = Height.of(logit(self._others), slope, shift + margin_of(coupling)).where(self._others > 0)
        changed = only_now(Height.of(self._risen, slope, shift), saddle, other, coupling)
        return peak - saddle - changed if self._evidence.counted == "persisting" else changed

    def _at_saddles(self, slope: float, shift: NDArray[np.float64]) -> Height:
        """Of candidates without a saddle, 0."""
        some = Height.of(self._saddles, slope, shift[:, self._with_saddle])
        parts = [np.zeros(shift.shape) for _ in range(3)]
        for part, values in zip(parts, (some.value, some.by_slope, some.by_offset), strict=True):
            part[:, self._with_saddle] = values
        return Height(*parts)

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of each scan: (nodes, candidates) → (nodes, scans)."""
        return np.array([np.bincount(self._scan, row, len(self.n_of)) for row in values])

    def of_each(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each candidate, what its scan has: (nodes, scans) → (nodes, candidates)."""
        return values[:, self._scan]

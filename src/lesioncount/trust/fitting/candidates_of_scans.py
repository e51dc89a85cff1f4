"""The candidates of scans with known truth, as a calibration corrects them, with derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lesioncount.changes.coupling import margin_of
from lesioncount.trust.calibration import logit, normal_nodes
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.fitting.known_truth import KnownTruth

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
    weights: tuple[float, ...] = ()  # of features, in units of their standard deviations

    @property
    def vector(self) -> NDArray[np.float64]:
        """All in one array, of 7 + J numbers."""
        return np.array([*self[:-1], *self.weights])

    @classmethod
    def of_vector(cls, vector: NDArray[np.float64]) -> Numbers:
        """The way back."""
        n = len(cls._fields) - 1
        return cls(*vector[:n].tolist())._replace(weights=tuple(vector[n:].tolist()))


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

    def __init__(self, truth: KnownTruth) -> None:
        table, sizes, self._truth = CandidateTable.joined(truth.candidates), [*map(len, truth.candidates)], truth
        self._peaks = logit(table.peak)
        self._with_saddle = np.flatnonzero(table.saddle > 0)
        self._saddles = logit(table.saddle[self._with_saddle])
        self._others = table["other"] if table.is_of_changes else None
        self._risen = logit(table["risen"]) if table.is_of_changes else None
        self.begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        self.n_of = np.array(sizes, dtype=np.int64)
        self._scan = np.repeat(np.arange(len(sizes)), sizes)
        self.crowd = truth.log_crowds
        self.crowd -= self.crowd.mean() if sizes else 0.0
        mean, width = truth.usual_features
        self.features = (table.features(truth.features) - mean) / width

    def corrected(self, numbers: Numbers, n_nodes: int) -> CorrectedCandidates:
        """Probabilities of all candidates at each node, under some numbers."""
        z, weights = normal_nodes(n_nodes)
        z = z[:, None]
        shift = numbers.offset + numbers.crowding * self.crowd[self._scan] + numbers.spread * z
        if numbers.weights:
            shift = shift + self.features @ np.array(numbers.weights)
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
        if self._others is None or self._risen is None:
            return peak - saddle
        coupling = self._truth.coupling
        other = Height.of(logit(self._others), slope, shift + margin_of(coupling)).where(self._others > 0)
        changed = only_now(Height.of(self._risen, slope, shift), saddle, other, coupling)
        return peak - saddle - changed if self._truth.counted == "persisting" else changed

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


Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Height:
    """f(p) at each node, (nodes, candidates), and its derivatives by slope and offset."""

    value: Values
    by_slope: Values
    by_offset: Values

    @classmethod
    def of(cls, logits: Values, slope: float, shift: Values) -> Height:
        """The logistic function of slope · logits + shift."""
        p = 1 / (1 + np.exp(-np.clip(slope * logits + shift, -500, 500)))
        by_offset = p * (1 - p)
        return cls(p, by_offset * logits, by_offset)

    def where(self, condition: NDArray[np.bool_]) -> Height:
        """The same, and 0 elsewhere."""
        return Height(*(np.where(condition, part, 0.0) for part in self._parts))

    def __sub__(self, other: Height) -> Height:
        return Height(*(a - b for a, b in zip(self._parts, other._parts, strict=True)))

    def __add__(self, other: Height) -> Height:
        return Height(*(a + b for a, b in zip(self._parts, other._parts, strict=True)))

    def times(self, factor: float) -> Height:
        """Of a share of the places."""
        return Height(*(factor * part for part in self._parts))

    def without(self, other: Height) -> Height:
        """Itself times 1 - other: this and not the other, if they are independent."""
        left = 1 - other.value
        return Height(
            self.value * left,
            self.by_slope * left - self.value * other.by_slope,
            self.by_offset * left - self.value * other.by_offset,
        )

    def maximum(self, other: Height) -> Height:
        """The higher of two."""
        is_this = self.value >= other.value
        return Height(*(np.where(is_this, a, b) for a, b in zip(self._parts, other._parts, strict=True)))

    @property
    def above_zero(self) -> Height:
        """0 where it is below."""
        return self.where(self.value > 0)

    @property
    def _parts(self) -> tuple[Values, Values, Values]:
        return self.value, self.by_slope, self.by_offset


def only_now(peak: Height, saddle: Height, other: Height, coupling: float) -> Height:
    """As `coupling.only_now`, with derivatives; from a coupling of 1 on, the other is raised already."""
    same_doubt = (peak - saddle.maximum(other)).above_zero
    if coupling >= 1:
        return same_doubt
    return (peak - saddle).without(other).times(1 - coupling) + same_doubt.times(coupling)

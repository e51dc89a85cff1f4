"""Scans whose true count is known: what a calibration is fitted on, and judged by."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.coupling import DEFAULT_COUPLING
from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.errors import CalibrationError
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.heights import Counted, Heights, stands_out


@dataclass(frozen=True, eq=False)
class KnownTruth:
    """The candidates of scans, as counted, and the truth.

    Parameters
    ----------
    peaks : sequence of array_like
        The highest probability of each candidate, one array per scan.
    counts : array_like of int
        True number of lesions of each scan.
    owns : sequence of array_like of bool, optional
        Whether each candidate has a true lesion for itself, where masks are known (`scores.match_lesions`).
    groups : sequence, optional
        What scans belong to, such as a patient: those of one group stay together. Default: each on its own.
    saddles : sequence of array_like, optional
        Where candidates touch: the probability at which each joins a higher one; 0 for those that do not.
    others : sequence of array_like of float, optional
        Of changes between two scans: the probability at the other time where each candidate rises most above it.
    risen : sequence of array_like of float, optional
        Of changes: the probability of the candidate there. Default: that of its peak.
    counted : {"lesions", "new", "gone", "persisting"}
        What the counts are of. All but the first need ``others``.
    coupling : float
        How far the doubt about a place was taken to be the same at both times.
    """

    peaks: tuple[NDArray[np.float64], ...]
    counts: NDArray[np.int64]
    owns: tuple[NDArray[np.bool_], ...] | None = None
    groups: tuple[Hashable, ...] = ()
    saddles: tuple[NDArray[np.float64], ...] | None = None
    others: tuple[NDArray[np.float64], ...] | None = None
    counted: Counted = "lesions"
    coupling: float = DEFAULT_COUPLING
    risen: tuple[NDArray[np.float64], ...] | None = None

    @classmethod
    def of(
        cls,
        peaks: Sequence[ArrayLike],
        counts: ArrayLike,
        *,
        owns: Sequence[ArrayLike] | None = None,
        groups: Sequence[Hashable] | None = None,
        saddles: Sequence[ArrayLike] | None = None,
        others: Sequence[ArrayLike] | None = None,
        counted: Counted = "lesions",
        coupling: float = DEFAULT_COUPLING,
        risen: Sequence[ArrayLike] | None = None,
    ) -> Self:
        """Check, and bring into shape."""
        try:
            arrays = tuple(np.asarray(p, dtype=np.float64) for p in peaks)
            below, near, there = (
                None if given is None else tuple(np.asarray(d, dtype=np.float64) for d in given)
                for given in (saddles, others, risen)
            )
            truth = np.asarray(counts, dtype=np.float64)
        except (TypeError, ValueError):
            raise CalibrationError("Expected an array of probabilities and a count for each scan.") from None
        if not all(p.ndim == 1 and np.all((p >= 0) & (p <= 1)) for p in arrays):
            raise CalibrationError("Expected existence probabilities in [0, 1], in one dimension for each scan.")
        if truth.shape != (len(arrays),) or not np.all(truth == np.floor(truth)) or not np.all(truth >= 0):
            raise CalibrationError(
                f"Expected a count of at least 0 for each of {len(arrays)} scans, but got {counts!r}."
            )
        held = None if owns is None else tuple(np.asarray(o, dtype=bool) for o in owns)
        if held is not None and [len(o) for o in held] != [len(p) for p in arrays]:
            raise CalibrationError("Expected owns to say of each candidate whether it has a lesion for itself.")
        if below is not None and not _lie_below(below, arrays):
            raise CalibrationError("Expected a saddle from 0 up to its peak for each candidate.")
        if counted not in get_args(Counted):
            raise CalibrationError(
                f"Expected counted to be one of {', '.join(get_args(Counted))}, but got {counted!r}."
            )
        if (counted == "lesions") != (near is None):
            raise CalibrationError("Changes, and only they, need the probabilities at the other time.")
        if not all(_are_of_each(one, arrays) for one in (near, there) if one is not None):
            raise CalibrationError("Expected the probabilities at both times for each candidate, in [0, 1].")
        names = tuple(range(len(arrays))) if groups is None else tuple(groups)
        if len(names) != len(arrays):
            raise CalibrationError(f"Expected a group for each of {len(arrays)} scans, but got {len(names)}.")
        return cls(arrays, truth.astype(np.int64), held, names, below, near, counted, coupling, there)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def has_saddles(self) -> bool:
        """Whether any candidates touch."""
        return self.saddles is not None and any(np.any(d > 0) for d in self.saddles)

    @property
    def heights(self) -> list[Heights]:
        """What the maps say of the candidates of each scan."""
        none = [None] * len(self)
        parts = self.peaks, self.saddles or none, self.others or none, self.risen or none
        return [Heights.of(*one) for one in zip(*parts, strict=True)]

    @property
    def as_it_is(self) -> Calibration:
        """What corrects nothing."""
        return Calibration(counted=self.counted, coupling=self.coupling)

    def distributions(self, calibration: Calibration) -> list[CountDistribution]:
        """The count of each scan, after a calibration."""
        return [calibration.distribution(one.peaks, one.saddles, one.others, one.risen) for one in self.heights]

    def __getitem__(self, rows: Sequence[int]) -> KnownTruth:
        """Some of the scans."""
        return KnownTruth(
            tuple(self.peaks[i] for i in rows),
            self.counts[np.asarray(rows, dtype=np.intp)],
            None if self.owns is None else tuple(self.owns[i] for i in rows),
            tuple(self.groups[i] for i in rows),
            None if self.saddles is None else tuple(self.saddles[i] for i in rows),
            None if self.others is None else tuple(self.others[i] for i in rows),
            self.counted,
            self.coupling,
            None if self.risen is None else tuple(self.risen[i] for i in rows),
        )

    def without_ripples(self, ripple: float) -> KnownTruth:
        """The same scans without the peaks that rise above their saddle by less than this."""
        if self.saddles is None:
            return self
        kept = [stands_out(p, d, ripple) for p, d in zip(self.peaks, self.saddles, strict=True)]
        return replace(
            self,
            peaks=tuple(p[k] for p, k in zip(self.peaks, kept, strict=True)),
            saddles=tuple(d[k] for d, k in zip(self.saddles, kept, strict=True)),
            owns=None if self.owns is None else tuple(o[k] for o, k in zip(self.owns, kept, strict=True)),
            others=None if self.others is None else tuple(u[k] for u, k in zip(self.others, kept, strict=True)),
            risen=None if self.risen is None else tuple(r[k] for r, k in zip(self.risen, kept, strict=True)),
        )

    def one_per_group(self, *, seed: int) -> list[int]:
        """A row of each group, drawn by lot."""
        order = np.random.default_rng(seed).permutation(len(self))
        return sorted({self.groups[row]: int(row) for row in order}.values())

    def parts(self, n: int, *, seed: int) -> list[list[int]]:
        """Rows of n parts of about the same size; a group is in one part only."""
        names = list(dict.fromkeys(self.groups))
        order = np.random.default_rng(seed).permutation(len(names))
        part_of = {names[j]: i % n for i, j in enumerate(order)}
        parts: list[list[int]] = [[] for _ in range(n)]
        for row, group in enumerate(self.groups):
            parts[part_of[group]].append(row)
        return parts


def _are_of_each(values: tuple[NDArray[np.float64], ...], peaks: tuple[NDArray[np.float64], ...]) -> bool:
    """Whether there is a probability for each candidate of each scan."""
    if [one.shape for one in values] != [p.shape for p in peaks]:
        return False
    return all(np.all((one >= 0) & (one <= 1)) for one in values)


def _lie_below(saddles: tuple[NDArray[np.float64], ...], peaks: tuple[NDArray[np.float64], ...]) -> bool:
    if [d.shape for d in saddles] != [p.shape for p in peaks]:
        return False
    return all(np.all((d >= 0) & (d <= p)) for d, p in zip(saddles, peaks, strict=True))

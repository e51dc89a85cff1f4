"""Scans whose true count is known: what a calibration is fitted on, and judged by."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.candidates import Candidates
from lesioncount.changes.coupling import DEFAULT_COUPLING
from lesioncount.checks import too_many
from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.mixture import combined
from lesioncount.errors import CalibrationError
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import CandidateTable, Counted, TableLike, as_table

# A feature that differs by less than this share is constant, and what is left of it is rounding.
_CONSTANT = 1e-9

# The columns of peaks that regions do without, or have as their first one.
_OF_PEAKS = ("peak", "saddle")


@dataclass(frozen=True, eq=False)
class KnownTruth:
    """The candidates of scans, as counted, and the truth.

    Parameters
    ----------
    candidates : sequence of CandidateTable, Candidates, or array_like
        Of each scan; where candidates do not touch, an array of the highest probability of each is enough. Of an
        ensemble, a tuple of tables, one for each member.
    counts : array_like of int
        True number of lesions of each scan.
    owns : sequence of array_like of bool, optional
        Whether each candidate has a true lesion for itself, where masks are known (`scores.match_lesions`).
    groups : sequence, optional
        What scans belong to, such as a patient: those of one group stay together. Default: each on its own.
    counted : {"lesions", "new", "gone", "persisting"}
        What the counts are of. All but the first need tables with what was there at the other time.
    coupling : float
        How far the doubt about a place was taken to be the same at both times.
    features : sequence of str, optional
        Columns of the tables that a calibration learns from, beside probabilities; from `Candidates`, some of
        `candidate_table.FEATURES`.

    Notes
    -----
    A calibration of an ensemble corrects each member. It is fitted on one member of each scan, all taking turns: five
    members of a scan know its truth no better than one. It is judged on the mixture of all members.

    Where several readers have counted a scan (`read_by`), their mean log-likelihood is fitted, and the fit is judged by
    one of them, all taking turns: a guaranteed interval is then one for the count of a reader.
    """

    candidates: tuple[CandidateTable, ...]
    counts: NDArray[np.int64]
    owns: tuple[NDArray[np.bool_], ...] | None = None
    groups: tuple[Hashable, ...] = ()
    counted: Counted = "lesions"
    coupling: float = DEFAULT_COUPLING
    features: tuple[str, ...] = ()
    members: tuple[tuple[CandidateTable, ...], ...] | None = None
    readings: tuple[NDArray[np.int64], ...] | None = None

    @classmethod
    def of(
        cls,
        candidates: Sequence[TableLike | tuple[CandidateTable, ...]],
        counts: ArrayLike,
        *,
        owns: Sequence[ArrayLike] | None = None,
        groups: Sequence[Hashable] | None = None,
        counted: Counted = "lesions",
        coupling: float = DEFAULT_COUPLING,
        features: Sequence[str] = (),
    ) -> Self:
        """Check, and bring into shape."""
        members = tuple(_of_scan(one, features) for one in candidates)
        tables = tuple(of[place % len(of)] for place, of in enumerate(members))
        try:
            is_text = any(isinstance(one, str | bytes) for one in np.ravel(np.asarray(counts, dtype=object)))
            truth = np.asarray(counts, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise CalibrationError("Expected an array of probabilities and a count for each scan.") from None
        is_count = (truth == np.floor(truth)) & (truth >= 0)
        if is_text or truth.shape != (len(tables),) or not is_count.all():  # numpy would read "1_000"
            raise CalibrationError(
                f"Expected a count of at least 0 for each of {len(tables)} scans, but got {counts!r}."
            )
        if why := too_many(truth):
            raise CalibrationError(why)
        held = None if owns is None else tuple(np.asarray(o, dtype=bool) for o in owns)
        if held is not None and [*map(len, held)] != [*map(len, tables)]:
            raise CalibrationError("Expected owns to say of each candidate whether it has a lesion for itself.")
        if counted not in get_args(Counted):
            raise CalibrationError(
                f"Expected counted to be one of {', '.join(get_args(Counted))}, but got {counted!r}."
            )
        if any((counted == "lesions") == table.is_of_changes for table in tables):
            raise CalibrationError("Changes, and only they, need the probabilities at the other time.")
        names = tuple(range(len(tables))) if groups is None else tuple(groups)
        if len(names) != len(tables):
            raise CalibrationError(f"Expected a group for each of {len(tables)} scans, but got {len(names)}.")
        together = members if any(len(of) > 1 for of in members) else None
        return cls(tables, truth.astype(np.int64), held, names, counted, coupling, tuple(features), together)

    def read_by(self, readings: Sequence[Sequence[int]]) -> KnownTruth:
        """The same scans with the counts of all their readers; as it is where none has more than one."""
        if len(readings) != len(self) or not all(map(len, readings)):
            raise CalibrationError(f"Expected the counts of at least one reader for each of {len(self)} scans.")
        if all(len(of) == 1 for of in readings):
            return self
        in_turn = np.array([of[place % len(of)] for place, of in enumerate(readings)], dtype=np.int64)
        return replace(self, counts=in_turn, readings=tuple(np.array(of, dtype=np.int64) for of in readings))

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def touches(self) -> bool:
        """Whether any candidates touch."""
        return any(table.touches for table in self.candidates)

    @property
    def log_crowds(self) -> NDArray[np.float64]:
        """Logarithm of one more than the count that each scan seems to have."""
        seeming = [np.sum(table.existence(self.counted, self.coupling)) for table in self.candidates]
        return np.log1p(np.array(seeming, dtype=np.float64))

    @property
    def usual_features(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation of each feature; of one that is always the same, an infinite one."""
        x = CandidateTable.joined(self.candidates).features(self.features)
        if not len(x):
            return np.zeros(len(self.features)), np.full(len(self.features), np.inf)
        mean, width = x.mean(axis=0), x.std(axis=0)
        return mean, np.where(width > _CONSTANT * (1 + np.abs(mean)), width, np.inf)

    @property
    def as_it_is(self) -> Calibration:
        """What corrects nothing."""
        return Calibration(counted=self.counted, coupling=self.coupling)

    def distributions(self, calibration: Calibration) -> list[CountDistribution]:
        """The count of each scan, after a calibration."""
        if self.members is None:
            return [calibration.distribution(table) for table in self.candidates]
        return [combined([calibration.distribution(table) for table in of]) for of in self.members]

    @property
    def of_regions(self) -> KnownTruth:
        """The same scans with their regions as candidates: the highest peak of each."""
        members = None if self.members is None else tuple(tuple(map(_regions, of)) for of in self.members)
        return replace(self, candidates=tuple(map(_regions, self.candidates)), owns=None, members=members)

    def __getitem__(self, rows: Sequence[int]) -> KnownTruth:
        """Some of the scans."""
        return replace(
            self,
            candidates=tuple(self.candidates[i] for i in rows),
            counts=self.counts[np.asarray(rows, dtype=np.intp)],
            owns=None if self.owns is None else tuple(self.owns[i] for i in rows),
            groups=tuple(self.groups[i] for i in rows),
            members=None if self.members is None else tuple(self.members[i] for i in rows),
            readings=None if self.readings is None else tuple(self.readings[i] for i in rows),
        )

    def without_ripples(self, ripple: float) -> KnownTruth:
        """The same scans without the peaks that rise above their saddle by less than this."""
        kept = [table.stands_out(ripple) for table in self.candidates]
        return replace(
            self,
            candidates=tuple(table.rows(k) for table, k in zip(self.candidates, kept, strict=True)),
            owns=None if self.owns is None else tuple(o[k] for o, k in zip(self.owns, kept, strict=True)),
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


def _of_scan(given: TableLike | tuple[CandidateTable, ...], features: Sequence[str]) -> tuple[CandidateTable, ...]:
    """The tables of a scan: one, or one for each member of an ensemble."""
    if isinstance(given, tuple) and given and all(isinstance(one, CandidateTable) for one in given):
        return tuple(_checked(one, features) for one in given)
    return (_checked(given, features),)  # type: ignore[arg-type]  # not a tuple of tables


def _regions(table: CandidateTable) -> CandidateTable:
    """The regions among peaks, which touch no more."""
    kept = table.rows(table.regions)
    return CandidateTable.of(kept.peak, **{name: of for name, of in kept.columns.items() if name not in _OF_PEAKS})


def _checked(candidates: TableLike, features: Sequence[str]) -> CandidateTable:
    """A table of candidates with these features, from arrays that are probabilities."""
    if not isinstance(candidates, CandidateTable | Candidates):
        candidates = CandidateTable.of(candidates)
    table = as_table(candidates, features)
    table.features(features)  # raises if one is missing
    return table

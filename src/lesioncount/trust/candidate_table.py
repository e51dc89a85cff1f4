"""The candidates of a scan, before any correction: a table with named columns, which everything in `trust` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.candidates import Candidates
from lesioncount.changes.coupling import DEFAULT_COUPLING, only_now
from lesioncount.errors import CalibrationError

# What is counted: all lesions of a scan; or of two scans of a patient, those that are new, gone or still there.
Counted = Literal["lesions", "new", "gone", "persisting"]


@dataclass(frozen=True)
class Feature:
    """A property of candidates that a calibration can learn from.

    Attributes
    ----------
    of : callable
        From the `Candidates` of a map, its values; from a row of a record, its value, or None where it is unknown.
    scale : callable
        From values to what is added to the logit, times a weight.
    """

    of: Callable[[Any], Any]
    scale: Callable[[NDArray[np.float64]], NDArray[np.float64]] = np.asarray


# To add one, add a line; ``lesioncount calibrate --feature`` lists them.
FEATURES: Mapping[str, Feature] = {
    "volume": Feature(attrgetter("volume_mm3"), np.log),
}


@dataclass(frozen=True, eq=False, slots=True)
class CandidateTable:
    """The candidates of a scan, a row each, as calibrations take them.

    Made by `of` from arrays, by `of_candidates` from a map, and by `of_rows` from a record.

    Attributes
    ----------
    names : tuple of str
        The columns: ``peak``, always the first; ``saddle`` where candidates touch; ``other`` and ``risen`` for changes
        between two scans; and any further ones.
    values : tuple of array of float64
        Their values, read-only and all of the same length.

    Examples
    --------
    >>> touching = CandidateTable.of([0.9, 0.8], saddle=[0.0, 0.5], volume=[40.0, 12.5])
    >>> len(touching), touching.names, touching.existence()
    (2, ('peak', 'saddle', 'volume'), array([0.9, 0.3]))
    """

    names: tuple[str, ...]
    values: tuple[NDArray[np.float64], ...]

    def __post_init__(self) -> None:
        """Hold the names once: a run has a hundred thousand tables with the same."""
        object.__setattr__(self, "names", _held_once(self.names))

    @classmethod
    def of(
        cls,
        peak: ArrayLike,
        /,
        *,
        saddle: ArrayLike | None = None,
        other: ArrayLike | None = None,
        risen: ArrayLike | None = None,
        **further: ArrayLike,
    ) -> Self:
        """From arrays, which are checked.

        Parameters
        ----------
        peak : array_like of float
            The highest probability of each candidate.
        saddle : array_like of float, optional
            Where candidates touch: the probability at which each joins a higher one; 0 for those that do not.
        other : array_like of float, optional
            For changes: the probability at the other time where each candidate rises most above it.
        risen : array_like of float, optional
            For changes: the probability of the candidate there. Default: the peak.
        **further
            More columns, by name.
        """
        named = {"peak": peak, "saddle": saddle, "other": other, "risen": risen, **further}
        try:
            columns = {name: np.array(of, dtype=np.float64) for name, of in named.items() if of is not None}
        except (TypeError, ValueError):
            raise CalibrationError("Expected an array of probabilities, and numbers in all other columns.") from None
        _check(columns)
        return cls._of_columns(**columns)

    @classmethod
    def of_candidates(
        cls,
        candidates: Candidates,
        /,
        *features: str,
        other: NDArray[np.float64] | None = None,
        risen: NDArray[np.float64] | None = None,
    ) -> Self:
        """From the candidates of a map, with some of `FEATURES`; for changes, with what the other map says."""
        further = {name: np.asarray(FEATURES[name].of(candidates), dtype=np.float64) for name in _known(features)}
        return cls._of_columns(candidates.peak_probability, candidates.saddle_probability, other, risen, **further)

    @classmethod
    def of_rows(
        cls, rows: Sequence[Any], /, *features: str, other: ArrayLike | None = None, risen: ArrayLike | None = None
    ) -> Self:
        """From rows of a record, which have a ``height`` and a ``saddle_probability`` or None; else as from a map."""
        saddle = [row.saddle_probability for row in rows]
        columns: dict[str, Any] = {"saddle": [one or 0.0 for one in saddle] if any(saddle) else None}
        columns |= {"other": other, "risen": risen}
        columns |= {name: [FEATURES[name].of(row) for row in rows] for name in _known(features)}
        arrays = {name: np.array(of, dtype=np.float64) for name, of in columns.items() if of is not None}
        return cls._of_columns(np.array([row.height for row in rows], dtype=np.float64), **arrays)

    @classmethod
    def joined(cls, tables: Iterable[CandidateTable], /) -> Self:
        """The candidates of several tables, one after the other, with the columns that all of them have."""
        tables = tuple(tables)
        if not tables:
            return cls(_PEAK, (np.empty(0),))
        shared = set(tables[0].names).intersection(*(table.names for table in tables[1:]))
        if any(table.touches for table in tables):
            shared.add("saddle")
        columns = {name: np.concatenate([table[name] for table in tables]) for name in sorted(shared)}
        return cls._of_columns(**columns)

    @classmethod
    def _of_columns(
        cls,
        peak: NDArray[np.float64],
        saddle: NDArray[np.float64] | None = None,
        other: NDArray[np.float64] | None = None,
        risen: NDArray[np.float64] | None = None,
        **further: NDArray[np.float64],
    ) -> Self:
        """A candidate that rises less than its saddle has nothing of its own there."""
        columns = {"peak": peak}
        if saddle is not None and saddle.any():
            columns["saddle"] = saddle
        if other is not None:
            columns["other"] = other
            columns["risen"] = peak if risen is None else np.maximum(risen, columns.get("saddle", 0.0))
        columns |= further
        for column in columns.values():
            column.flags.writeable = False  # what is computed from a table may be one of its columns
        return cls(tuple(columns), tuple(columns.values()))

    def __len__(self) -> int:
        return len(self.peak)

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """A column."""
        if name in self.names:
            return self.values[self.names.index(name)]
        if name == "saddle":
            return _no_saddles(self.peak.shape)
        raise CalibrationError(
            f"The table of candidates has no column {name!r}. It has {', '.join(map(repr, self.names))}."
        )

    def rows(self, which: NDArray[Any], /) -> CandidateTable:
        """Some of the candidates."""
        return CandidateTable(self.names, tuple(column[which] for column in self.values))

    @property
    def columns(self) -> Mapping[str, NDArray[np.float64]]:
        """The columns by name."""
        return dict(zip(self.names, self.values, strict=True))

    @property
    def peak(self) -> NDArray[np.float64]:
        """The highest probability of each candidate."""
        return self.values[0]

    @property
    def saddle(self) -> NDArray[np.float64]:
        """The probability at which each joins a higher one; 0 where it does not."""
        return self["saddle"]

    @property
    def touches(self) -> bool:
        """Whether any candidate joins a higher one."""
        return "saddle" in self.names

    @property
    def regions(self) -> NDArray[np.bool_]:
        """Which candidates join no higher one: the highest peak of each region above the threshold."""
        return np.asarray(self.saddle == 0)

    @property
    def is_of_changes(self) -> bool:
        """Whether it knows what was there at the other time, in the columns ``other`` and ``risen``."""
        return "other" in self.names

    def features(self, names: Iterable[str], /) -> NDArray[np.float64]:
        """Some columns on the scale of their `FEATURES`, shape (K, J); all of their values must be known."""
        found = [self._feature(name) for name in names]
        return np.array(found, dtype=np.float64).reshape(len(found), len(self)).T

    def _feature(self, name: str) -> NDArray[np.float64]:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = FEATURES[name].scale(self[name]) if name in FEATURES else self[name]
        n_unknown = len(self) - int(np.isfinite(found).sum())
        if n_unknown:
            raise CalibrationError(
                f"The calibration needs the {name} of each candidate, which is unknown for {n_unknown} of {len(self)}. "
                "Sizes are unknown where a map has no voxel size."
            )
        return found

    def existence(self, counted: Counted = "lesions", coupling: float = DEFAULT_COUPLING) -> NDArray[np.float64]:
        """The uncorrected probability of each candidate: that it is a lesion, or a change of this kind."""
        own = self.peak - self.saddle if self.touches else self.peak
        if not self.is_of_changes:
            return own
        changed = only_now(self["risen"], self.saddle, self["other"], coupling)
        return np.asarray(own - changed if counted == "persisting" else changed)

    def stands_out(self, ripple: float) -> NDArray[np.bool_]:
        """Whether each peak rises above its saddle by this much, or has none."""
        return np.asarray((self.saddle == 0) | (self.peak - self.saddle >= ripple))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The call that makes it again: several times as fast as Python's own way for a frozen class with slots."""
        return CandidateTable, (self.names, self.values)


# What calibrations take. An array holds the peaks of candidates that do not touch.
TableLike = CandidateTable | Candidates | ArrayLike


def as_table(candidates: TableLike, features: Iterable[str] = (), /) -> CandidateTable:
    """A table of candidates; if it is made from those of a map, with some features."""
    if isinstance(candidates, CandidateTable):
        return candidates
    if isinstance(candidates, Candidates):
        return CandidateTable.of_candidates(candidates, *features)
    return CandidateTable(_PEAK, (np.asarray(candidates, dtype=np.float64),))


_PEAK = ("peak",)


@lru_cache(maxsize=256)
def _held_once(names: tuple[str, ...]) -> tuple[str, ...]:
    return names


@lru_cache(maxsize=1024)
def _no_saddles(shape: tuple[int, ...]) -> NDArray[np.float64]:
    zeros = np.zeros(shape)
    zeros.flags.writeable = False  # many tables have it
    return zeros


def _known(features: Iterable[str]) -> list[str]:
    return [name for name in features if name in FEATURES]


def _check(columns: Mapping[str, NDArray[np.float64]]) -> None:
    peak, saddle = columns["peak"], columns.get("saddle")
    if peak.ndim != 1 or not _are_probabilities(peak):
        raise CalibrationError("Expected existence probabilities in [0, 1], in one dimension for each scan.")
    for name, column in columns.items():
        if column.shape != peak.shape:
            raise CalibrationError(f"Expected {len(peak)} values of {name}, one for each peak, but got {column.shape}.")
    if saddle is not None and not np.all((saddle >= 0) & (saddle <= peak)):
        raise CalibrationError("Expected a saddle from 0 up to its peak for each candidate.")
    if "risen" in columns and "other" not in columns:
        raise CalibrationError("Expected the probabilities at the other time (other) with those that have risen.")
    if not all(_are_probabilities(columns[name]) for name in ("other", "risen") if name in columns):
        raise CalibrationError("Expected the probabilities at both times for each candidate, in [0, 1].")


def _are_probabilities(values: NDArray[np.float64]) -> bool:
    return bool(np.all((values >= 0) & (values <= 1)))

"""What tables say of a scan: numbers of a distribution, of the candidates, of an ensemble, each knowing its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import median_low
from typing import Any, Self

import numpy as np

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.mixture import MixtureOfCounts
from lesioncount.folder.plain import cells, field_names, typed
from lesioncount.folder.sent import Sent
from lesioncount.results.scan_count import ScanCount

# Of the intervals in all tables.
CONFIDENCE = 0.9

# Members of an ensemble disagree when their means lie this far apart: a standard deviation of half a lesion between
# them, so that the count depends on which of them is asked. Besides, it must be more than what each of them is unsure
# of by itself. (That most likely counts differ is no sign: of two members that say 0.49 and 0.51, one counts none and
# one a lesion.)
MIN_BETWEEN_VARIANCE = 0.25

_CALIBRATED, _GUARANTEED = "_calibrated", ("interval90_low_conformal", "interval90_high_conformal")


@dataclass(frozen=True, slots=True)
class CountNumbers(Sent):
    """A distribution in numbers, by the names of their columns in ``counts.tsv``.

    Of the three ways to give it as one number, the median has the smallest error where errors are counted in lesions.
    """

    count_mode: int
    count_median: int
    count_mean: float
    count_sd: float
    interval90_low: int
    interval90_high: int
    entropy: float
    p_0: float
    p_1: float
    p_2: float
    p_3: float
    p_4plus: float

    @classmethod
    def of(cls, distribution: CountDistribution) -> Self:
        """The numbers of a distribution."""
        interval, bins = distribution.interval(CONFIDENCE), map(float, distribution.binned(4))
        middle = distribution.mode(), distribution.median(), distribution.mean()
        return cls(*middle, distribution.std(), *interval, distribution.entropy(), *bins)

    def row(self, suffix: str = "") -> dict[str, Any]:
        """The cells of a table, whose columns may have a suffix."""
        return {f"{name}{suffix}": value for name, value in cells(self).items()}


@dataclass(frozen=True, slots=True)
class CandidateNumbers(Sent):
    """How many candidates there are, how many components above 0.5, and their volume; None when that is unknown."""

    n_candidates: int
    cc_count: int
    total_volume_mm3: float | None

    @classmethod
    def of(cls, counts: Sequence[ScanCount]) -> Self:
        """Of one map; of several members of an ensemble, the median of each number (the lower one of two)."""
        volumes = [float(count.result.candidates.volume_mm3.sum()) for count in counts]
        return cls(
            median_low(len(count.result.candidates) for count in counts),
            median_low(count.component_count for count in counts),
            None if np.isnan(volumes).any() else float(np.median(volumes)),
        )


@dataclass(frozen=True)
class EnsembleNumbers:
    """How far the members of an ensemble agree."""

    n_members: int
    variance_within: float
    variance_between: float

    @property
    def disagrees(self) -> bool:
        """Whether members differ by more than they are unsure of themselves."""
        return self.variance_between >= MIN_BETWEEN_VARIANCE and self.variance_between > self.variance_within

    @classmethod
    def of(cls, mixture: MixtureOfCounts, n_members: int) -> Self:
        """Of the mixture of its members' counts."""
        return cls(n_members, mixture.within_variance, mixture.between_variance)


@dataclass(frozen=True)
class MemberNumbers:
    """What one member of an ensemble counted: a row of ``members.tsv``."""

    member: int
    path: str
    candidates: CandidateNumbers
    raw: CountNumbers

    def row(self) -> dict[str, Any]:
        """The cells of its row."""
        return {"member": self.member, "path": self.path, **cells(self.candidates), **self.raw.row()}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """From the cells of its row."""
        parts = _part(CandidateNumbers, row), _part(CountNumbers, row)
        return cls(typed(row["member"], int), typed(row["path"], str), *parts)


@dataclass(frozen=True, slots=True)
class ScanNumbers(Sent):
    """The row of a scan in ``counts.tsv``.

    Attributes
    ----------
    candidates : CandidateNumbers
    raw, calibrated : CountNumbers
        As the map has it, and corrected by a calibration where there was one.
    calibration : str or None
        Fingerprint of the calibration.
    guaranteed : tuple of int or None
        Ends of the conformal interval, where it was asked for.
    ensemble : EnsembleNumbers or None
    """

    candidates: CandidateNumbers
    raw: CountNumbers
    calibrated: CountNumbers | None = None
    calibration: str | None = None
    guaranteed: tuple[int, int] | None = None
    ensemble: EnsembleNumbers | None = None

    @property
    def best(self) -> CountNumbers:
        """The calibrated numbers, or the raw ones where there was no calibration."""
        return self.raw if self.calibrated is None else self.calibrated

    def row(self) -> dict[str, Any]:
        """The cells of its row; only those that there is something to say in."""
        row = cells(self.candidates) | self.raw.row()
        if self.calibrated is not None:
            row |= self.calibrated.row(_CALIBRATED) | {"calibration": self.calibration}
        if self.guaranteed is not None:
            row |= dict(zip(_GUARANTEED, self.guaranteed, strict=True))
        return row | ({} if self.ensemble is None else cells(self.ensemble))

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """From the cells of its row."""
        has_calibration, is_guaranteed = "count_mode_calibrated" in row, _GUARANTEED[0] in row
        return cls(
            _part(CandidateNumbers, row),
            _part(CountNumbers, row),
            _part(CountNumbers, row, _CALIBRATED) if has_calibration else None,
            typed(row.get("calibration"), str | None),
            typed(tuple(row[name] for name in _GUARANTEED), tuple[int, int]) if is_guaranteed else None,
            _part(EnsembleNumbers, row) if "n_members" in row else None,
        )


def _part(kind: Any, row: Mapping[str, Any], suffix: str = "") -> Any:
    """The cells of a row that are the fields of a type; one that an older version did not write has its default."""
    names = (name for name in field_names(kind) if f"{name}{suffix}" in row)
    return typed({name: row[f"{name}{suffix}"] for name in names}, kind)


_COUNT = tuple(one.name for one in fields(CountNumbers))
# Whose scan it is, where that is known.
WHOSE_COLUMNS = ("participant_id", "session_id")
_OPTIONAL_NUMBERS = (
    *(f"{name}{_CALIBRATED}" for name in _COUNT), "calibration", *_GUARANTEED,
    *(one.name for one in fields(EnsembleNumbers)),
)  # fmt: skip
OPTIONAL_COUNT_COLUMNS = (*WHOSE_COLUMNS, *_OPTIONAL_NUMBERS)
COUNT_COLUMNS = (
    "scan", *WHOSE_COLUMNS, "path", "status", "n_candidates", *_COUNT, "cc_count", "total_volume_mm3",
    *_OPTIONAL_NUMBERS, "error",
)  # fmt: skip
MEMBER_COLUMNS = ("scan", *WHOSE_COLUMNS, "member", "path", "n_candidates", "cc_count", "total_volume_mm3", *_COUNT)

"""One group, and one ratio between two: rows of ``groups.tsv`` and ``ratios.tsv``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from msgspec import Struct

from lesioncount.assess.groups.grouping import Grouped
from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.trust.groups.means import GroupMean, group_mean, once_per_patient, share_with_any, total_count
from lesioncount.trust.groups.rate_ratios import RateRatio
from lesioncount.trust.scores.bootstrap import CONFIDENCE
from lesioncount.trust.scores.estimate import Estimate, cells_of


@dataclass(frozen=True, eq=False)
class GroupRow:
    """What is known of one group.

    Attributes
    ----------
    level : tuple of str
        The values that make it, such as ``("placebo",)``.
    n_patients, n_scans : int
    total : CountDistribution
        Lesions in all its scans together: doubt about the counts of these very scans.
    per_scan, per_patient : GroupMean
        Means with both sources of variance.
    with_any : Estimate
        The share of patients with at least one lesion.
    rate : GroupMean or None
        The same per unit of exposure, where there is one.
    exposure : float or None
        The sum over its scans.
    expected : tuple of float
        Of each patient, the expected count per scan.
    """

    level: tuple[str, ...]
    n_patients: int
    n_scans: int
    total: CountDistribution
    per_scan: GroupMean
    per_patient: GroupMean
    with_any: Estimate
    rate: GroupMean | None = None
    exposure: float | None = None
    expected: tuple[float, ...] = ()

    @classmethod
    def of(cls, grouped: Grouped, place: int) -> Self:
        """The group at this place among the levels."""
        rows = np.flatnonzero(grouped.group == place)
        counts = [grouped.subjects[row].members for row in rows]
        patients = [grouped.patients[row] for row in rows]
        exposure = None if grouped.exposure is None else grouped.exposure[rows]
        return cls(
            grouped.levels[place],
            len(set(patients)),
            len(rows),
            total_count(counts),
            group_mean(counts, patients),
            group_mean(counts, patients, once_per_patient(patients)),
            share_with_any(counts, patients),
            None if exposure is None else group_mean(counts, patients, exposure),
            None if exposure is None else float(exposure.sum()),
            _expected(grouped, rows.tolist()),
        )

    @property
    def name(self) -> str:
        """What makes it, in a line."""
        return ", ".join(self.level)

    @property
    def main(self) -> GroupMean:
        """The mean that ratios are of: the rate where there is an exposure, else the mean per scan."""
        return self.per_scan if self.rate is None else self.rate

    @property
    def total_interval(self) -> tuple[int, int]:
        """That of the total, 95 %."""
        return self.total.interval(CONFIDENCE)

    def to_dict(self, by: Sequence[str]) -> dict[str, Any]:
        """Its row, by the columns of ``groups.tsv``."""
        low, high = self.total_interval
        total = {"total": self.total.mean(), "total_low": low, "total_high": high}
        rate = {} if self.rate is None else {"exposure": self.exposure, **self.rate.estimate.cells("rate")}
        return {
            **dict(zip(by, self.level, strict=True)),
            "n_patients": self.n_patients,
            "n_scans": self.n_scans,
            **total,
            **self.per_scan.estimate.cells("mean_per_scan"),
            **self.per_patient.estimate.cells("mean_per_patient"),
            **self.with_any.cells("share_with_any"),
            **rate,
            "doubt_share": self.main.doubt_share,
        }


class RatioRow(Struct, frozen=True):
    """The rate of one group, divided by that of the reference.

    Attributes
    ----------
    level, reference : tuple of str
    ratio : Estimate
        Without a value where it cannot be known.
    p_value : float
        Two-sided, of a ratio of 1.
    log_ratio, standard_error, df : float
        What it was made of, for other intervals.
    doubt_share : float
        How much of the variance of the logarithm is doubt about counts.
    why_unknown : str or None
    """

    level: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()
    ratio: Estimate = Estimate()
    p_value: float = math.nan
    log_ratio: float = math.nan
    standard_error: float = math.nan
    df: float = math.nan
    doubt_share: float = math.nan
    why_unknown: str | None = None

    @classmethod
    def of(cls, found: RateRatio, levels: Sequence[tuple[str, ...]]) -> Self:
        """From what was pooled."""
        level, one = levels[found.group], found.log_ratio
        if one is None:
            return cls(level, levels[0], why_unknown=found.why_unknown)
        ratio = Estimate(*np.exp([one.value, *one.interval(CONFIDENCE)]).tolist())
        return cls(level, levels[0], ratio, one.p_value, one.value, one.standard_error, one.df, one.doubt_share)

    @property
    def name(self) -> str:
        """The group, in a line."""
        return ", ".join(self.level)

    @property
    def is_known(self) -> bool:
        """Whether there is a ratio."""
        return self.ratio.is_defined

    def to_dict(self, by: Sequence[str]) -> dict[str, Any]:
        """Its row, by the columns of ``ratios.tsv``."""
        cells = cells_of(self)
        del cells["level"]
        return dict(zip(by, self.level, strict=True)) | cells


def _expected(grouped: Grouped, rows: Sequence[int]) -> tuple[float, ...]:
    """Of each patient of a group, the mean over scans of expected counts."""
    of_patient: dict[str, list[float]] = {}
    for row in rows:
        mean = float(np.mean([member.mean() for member in grouped.subjects[row].members]))
        of_patient.setdefault(grouped.patients[row], []).append(mean)
    return tuple(sum(means) / len(means) for means in of_patient.values())

"""A folder of results → what is known of all its scans together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.protocol import CountingProtocol
from lesioncount.runs.count_content import combined
from lesioncount.runs.records import read_record
from lesioncount.runs.results import existence_by_member, read_run
from lesioncount.trust.calibration import Calibration

# Members disagree when their means lie this far apart: a standard deviation of half a lesion between them, so that the
# count depends on which of them is asked. Besides, it must be more than what each of them is unsure of by itself.
# (That most likely counts differ is no sign: of two members that say 0.49 and 0.51, one counts none and one a lesion.)
MIN_BETWEEN_VARIANCE = 0.25


@dataclass(frozen=True, eq=False)
class ScanSummary:
    """The count of one scan without its candidates, which are read again when they are shown.

    Attributes
    ----------
    name : str
    anchor : str
        Where its section is on the page.
    count : dict or None
        The columns of ``counts.tsv``; None when counting failed.
    existence : tuple of ndarray
        One probability per candidate as counted: one array, or one per member of an ensemble.
    members : tuple of dict
        The rows of ``members.tsv``; none unless it is an ensemble.
    warnings : tuple of str
    error : str or None
        Why counting failed.
    """

    name: str
    anchor: str
    count: dict[str, Any] | None
    existence: tuple[NDArray[np.float64], ...] = ()
    members: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    error: str | None = None

    @property
    def disagrees(self) -> bool:
        """Whether members differ by more than they are unsure of themselves."""
        if not self.members or self.count is None:
            return False
        between: float = self.count["variance_between"]
        return between >= MIN_BETWEEN_VARIANCE and between > self.count["variance_within"]

    @property
    def spread(self) -> float:
        """Standard deviation of the count, calibrated where it is."""
        count = self.count or {}
        return float(count.get("count_sd_calibrated", count.get("count_sd", 0.0)))


@dataclass(frozen=True, eq=False)
class Cohort:
    """All scans of a run, in its order."""

    out: Path
    run: dict[str, Any]
    scans: tuple[ScanSummary, ...]

    @cached_property
    def counted(self) -> tuple[ScanSummary, ...]:
        """The scans that have a count, the most uncertain first; those that are equally so in the order of the run."""
        counted = [scan for scan in self.scans if scan.count is not None]
        return tuple(sorted(counted, key=lambda scan: -scan.spread))

    @property
    def failed(self) -> tuple[ScanSummary, ...]:
        """The scans that could not be counted."""
        return tuple(scan for scan in self.scans if scan.count is None)

    @property
    def disagreeing(self) -> tuple[ScanSummary, ...]:
        """The scans whose members disagree, those that do so most first."""
        found = [scan for scan in self.counted if scan.disagrees]
        return tuple(sorted(found, key=lambda scan: -(scan.count or {})["variance_between"]))

    @property
    def n_members(self) -> int:
        """The number of maps of each scan, the same for all of them; 1 unless they are an ensemble."""
        return max((len(scan.existence) for scan in self.counted), default=1)

    @cached_property
    def total(self) -> CountDistribution:
        """The number of lesions in all scans, as counted."""
        return self._total(Calibration())

    @cached_property
    def total_calibrated(self) -> CountDistribution | None:
        """The same after calibration, if there is one."""
        return None if self.calibration is None else self._total(self.calibration)

    def _total(self, calibration: Calibration) -> CountDistribution:
        # By one map, counts of different scans are independent: their candidates add up, and so do rates of missed
        # lesions. By an ensemble they are not: a network that sees too much does so in all scans. So each member has a
        # total of its own, and the total is the mixture of those. (Where the numbering of members means nothing, as
        # with samples of dropout, the variance between totals is on average the sum of those of the scans: right too.)
        everywhere = replace(calibration, missed_rate=calibration.missed_rate * len(self.counted))
        by_member = list(zip(*(scan.existence for scan in self.counted), strict=True)) or [()]
        return combined([everywhere.distribution(np.concatenate([np.empty(0), *of_one])) for of_one in by_member])

    @cached_property
    def calibration(self) -> Calibration | None:
        """What counts were corrected with."""
        applied = dict(self.run["settings"].get("calibration") or {})
        applied.pop("fingerprint", None)
        return Calibration.from_dict(applied) if applied else None

    @property
    def is_guaranteed(self) -> bool:
        """Whether scans have conformal intervals."""
        return any("interval90_low_conformal" in (scan.count or {}) for scan in self.counted)

    @property
    def protocol(self) -> CountingProtocol:
        """What was counted as one lesion."""
        return CountingProtocol.from_dict(self.run["settings"]["protocol"])

    @property
    def warnings(self) -> dict[str, list[str]]:
        """The names of the scans that each warning is about."""
        about: dict[str, list[str]] = {}
        for scan in self.scans:
            for warning in scan.warnings:
                about.setdefault(warning, []).append(scan.name)
        return about


def read_cohort(out: Path) -> Cohort:
    """Read what a run has left in its folder."""
    run = read_run(out)
    inputs = [(str(item["scan"]), item.get("error")) for item in run["inputs"]]
    return Cohort(out, run, tuple(_summaries(out, inputs)))


def _summaries(out: Path, inputs: Iterable[tuple[str, str | None]]) -> Iterable[ScanSummary]:
    for number, (name, error) in enumerate(inputs, start=1):
        anchor = f"scan-{number}"
        record = read_record(out, name) or {"error": "its record is not there; counts.tsv says what happened"}
        if error or record.get("status") != "ok":  # the run knows of scans that died before they had a record
            yield ScanSummary(name, anchor, None, error=str(error or record.get("error")))
            continue
        members = tuple(record.get("members", ()))
        yield ScanSummary(
            name, anchor, record["count"], existence_by_member(record), members, tuple(record["warnings"])
        )

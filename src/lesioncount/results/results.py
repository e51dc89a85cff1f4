"""A folder of results → what is known of all its scans together, also as ``pandas.DataFrame``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lesioncount.changes.coupling import DEFAULT_COUPLING
from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.mixture import combined
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.distributions.sum_of_counts import SumOfCounts
from lesioncount.errors import MapFileError
from lesioncount.folder.tables import filled_columns
from lesioncount.optional import optional
from lesioncount.protocol import CountingProtocol
from lesioncount.results.count_warnings import in_general
from lesioncount.results.earlier import WAITING
from lesioncount.results.lesion_rows import LESION_COLUMNS, OPTIONAL_LESION_COLUMNS
from lesioncount.results.record import ScanRecord, ScanSummary, read_record
from lesioncount.results.record_files import check_records, no_record
from lesioncount.results.region_numbers import OPTIONAL_REGION_COLUMNS, REGION_COLUMNS
from lesioncount.results.run_file import Run, RunScan, read_run
from lesioncount.results.scan_numbers import COUNT_COLUMNS, OPTIONAL_COUNT_COLUMNS, WHOSE_COLUMNS
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import Counted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class RunResults:
    """What a run found: one summary per scan, in the order of its inputs.

    Attributes
    ----------
    out : Path
        The folder.
    run : Run
    scans : tuple of ScanSummary
    of : str
        What is counted: "lesions"; or of two scans of a patient the "new", "gone" or "persisting" ones.
    coupling : float
        Of changes.
    component_counts : mapping of str to tuple of int
        What the usual way counts at each threshold in each scan, where that is known without its map: of changes.
    """

    out: Path
    run: Run
    scans: tuple[ScanSummary, ...]
    of: Counted = "lesions"
    coupling: float = DEFAULT_COUPLING
    component_counts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def as_it_is(self) -> Calibration:
        """What corrects nothing."""
        return Calibration(counted=self.of, coupling=self.coupling)

    @cached_property
    def counted(self) -> tuple[ScanSummary, ...]:
        """The scans that have a count."""
        return tuple(scan for scan in self.scans if scan.is_counted)

    @cached_property
    def failed(self) -> tuple[ScanSummary, ...]:
        """The scans that could not be counted."""
        return tuple(scan for scan in self.scans if not scan.is_counted)

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before it had come to all scans."""
        return self.run.status == "interrupted"

    @property
    def protocol(self) -> CountingProtocol:
        """What was counted as one lesion."""
        return self.run.counted_with.protocol

    @property
    def calibration(self) -> Calibration | None:
        """What counts were corrected with."""
        return self.run.counted_with.calibration

    @property
    def n_members(self) -> int:
        """The number of maps of each scan; 1 unless they are an ensemble."""
        return max((len(scan.tables) for scan in self.counted), default=1)

    @property
    def has_members(self) -> bool:
        """Whether scans were counted by the members of an ensemble."""
        return self.n_members > 1

    @property
    def is_guaranteed(self) -> bool:
        """Whether scans have conformal intervals."""
        return any(scan.counted.guaranteed is not None for scan in self.counted)

    @property
    def warnings(self) -> dict[str, list[ScanSummary]]:
        """The scans that each warning is about."""
        about: dict[str, list[ScanSummary]] = {}
        for scan in self.scans:
            for warning in scan.warnings:
                about.setdefault(in_general(warning), []).append(scan)
        return about

    def total(self, calibration: Calibration | None = None) -> CountDistribution:
        """The number of what was counted in all scans together, as it is or after a calibration."""
        if calibration is not None:
            calibration.check(self.protocol, self.of)
        # By one map, counts of different scans are independent, and their total is a sum. By an ensemble they are not:
        # a network that sees too much does so in all scans. So each member has a total of its own, and the total is the
        # mixture of those. (Where the numbering of members means nothing, as with samples of dropout, the variance
        # between totals is on average the sum of those of the scans: right too.)
        if calibration is not None and self.counted and (calibration.has_extra or calibration.spread):
            counts = [[calibration.distribution(table) for table in scan.tables] for scan in self.counted]
            return combined([SumOfCounts(one) for one in zip(*counts, strict=True)])
        # Where nothing but candidates counts, those of all scans add up.
        of = self.as_it_is if calibration is None else calibration
        members = list(zip(*(scan.tables for scan in self.counted), strict=True)) or [()]
        existence = ([np.empty(0), *map(of.existence, tables)] for tables in members)
        return combined([PoissonBinomial(np.concatenate(one)) for one in existence])

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each scan, with the columns of ``counts.tsv``."""
        return counts_frame(self.scans)

    def lesions_to_dataframe(self) -> pd.DataFrame:
        """A row for each candidate of each scan, with the columns of ``lesions.tsv``."""
        return lesions_frame(self.records())

    def regions_to_dataframe(self) -> pd.DataFrame:
        """A row for each region of each scan, with the columns of ``regions.tsv``."""
        return regions_frame(self.scans)

    def records(self) -> Iterator[ScanRecord]:
        """The records of the scans that were counted, read one after the other."""
        for scan in self.counted:
            yield self.record(scan.name)

    def record(self, name: str) -> ScanRecord:
        """The record of a scan."""
        record = read_record(self.out, name)
        if record is None:
            raise no_record(self.out, name)
        return record


def read_results(out: str | Path, *, features: Sequence[str] = ()) -> RunResults:
    """Read what a run has left in its folder.

    Parameters
    ----------
    out : path
    features : sequence of str, optional
        Further columns of the tables of candidates, such as ``volume``, beside those that its calibration needs.
    """
    out = Path(out)
    run = read_run(out)
    summaries = (_summary(out, scan, features) for scan in run.scans)
    return RunResults(out, run, tuple(one for one in summaries if one is not None))


def read_counted(out: Path, *, features: Sequence[str] = ()) -> RunResults:
    """The same, where scans that were counted must have their records."""
    results = read_results(out, features=features)
    written = (scan.name for scan in results.run.scans if scan.status == "ok")
    check_records(out, written, (scan.name for scan in results.counted))
    if not results.counted:
        raise MapFileError(f"There is no scan in {out} that was counted.")
    return results


def _summary(out: Path, scan: RunScan, features: Sequence[str]) -> ScanSummary | None:
    """What is known of a scan; None of one that a run which was stopped has not come to."""
    record = None if scan.error else read_record(out, scan.name, features=features)
    if record is not None and record.summary.is_counted:
        return record.summary
    if record is None and scan.status == WAITING:
        return None
    # The run knows of scans that died before they had a record.
    why = scan.error or (record.summary.error if record else None)
    return ScanSummary(scan.name, error=why or str(no_record(out, scan.name)))


def counts_frame(scans: Iterable[ScanSummary]) -> pd.DataFrame:
    """A row for each scan; those that failed say why."""
    rows = [scan.row() for scan in scans]
    return _frame(rows, filled_columns(COUNT_COLUMNS, rows, optional=OPTIONAL_COUNT_COLUMNS))


def lesions_frame(records: Iterable[ScanRecord]) -> pd.DataFrame:
    """A row for each candidate of each scan."""
    rows = [{"scan": one.name, **one.summary.whose, **lesion.row()} for one in records for lesion in one.lesions]
    columns = ("scan", *WHOSE_COLUMNS, *LESION_COLUMNS[1:])
    return _frame(rows, filled_columns(columns, rows, optional=(*WHOSE_COLUMNS, *OPTIONAL_LESION_COLUMNS)))


def regions_frame(scans: Iterable[ScanSummary]) -> pd.DataFrame:
    """A row for each region of each scan."""
    rows = [row for scan in scans for row in scan.region_rows()]
    return _frame(rows, filled_columns(REGION_COLUMNS, rows, optional=OPTIONAL_REGION_COLUMNS))


def _frame(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """As pandas reads the tables that are written: NaN for what is unknown."""
    rows = [{name: math.nan if value is None else value for name, value in row.items()} for row in rows]
    frame: pd.DataFrame = optional("pandas", "notebook", "to_dataframe()").DataFrame(rows, columns=list(columns))
    return frame

"""Many files → a table in memory, with a row for each: what ``lesioncount count`` does, without a folder of results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from lesioncount.checks import defined
from lesioncount.cohort.item import FileFacts, ScanFiles
from lesioncount.cohort.scans import Selection
from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.sum_of_counts import SumOfCounts
from lesioncount.distributions.tabulated import TabulatedCount
from lesioncount.errors import LesionCountError, WorkerDiedError
from lesioncount.files.remote_path import to_path
from lesioncount.folder.plain import to_json
from lesioncount.outputs.output import Keep
from lesioncount.protocol import CountingProtocol, ProtocolFields
from lesioncount.regions import RegionCounts, Within
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.record import Entry, Record
from lesioncount.results.region_settings import region_settings
from lesioncount.results.results import frame_of
from lesioncount.results.scan_numbers import CountNumbers
from lesioncount.results.settings import Settings
from lesioncount.results.tables import count_row
from lesioncount.runs.count import Counting
from lesioncount.runs.file_counts import error_in_words
from lesioncount.runs.workers import results_of
from lesioncount.trust.calibration import Calibration

if TYPE_CHECKING:
    import pandas as pd

    from lesioncount.trust.fitting.evidence import CalibrationLike

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

# How many rows are printed.
_PRINTED = 20


@dataclass(frozen=True, eq=False, repr=False)
class FileCount:
    """A row of the table: one file, counted or failed.

    Attributes
    ----------
    record : Record
        Everything about it, as ``lesioncount count`` writes it.
    """

    record: Record

    @property
    def name(self) -> str:
        """Of the scan: its path below the folder that was given, without its ending."""
        return self.record.name

    @property
    def path(self) -> Path:
        """The file."""
        files = self.record.files
        return Path(self.name if files is None else files.path)

    @property
    def error(self) -> str | None:
        """Why it could not be counted; None if it was."""
        return self.record.error

    @property
    def is_counted(self) -> bool:
        """Whether there is a count."""
        return self.record.is_ok

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to think of before using the count."""
        return self.record.warnings

    @property
    def count(self) -> CountNumbers:
        """The count in numbers: calibrated where there was a calibration."""
        return self.record.counted.best

    @property
    def existence(self) -> NDArray[np.float64]:
        """The probability of each candidate, as counted."""
        return np.array([lesion.existence for lesion in self.lesions], dtype=np.float64)

    @property
    def lesions(self) -> tuple[LesionRow, ...]:
        """The candidates, as ``lesions.tsv`` has them."""
        return self.record.lesions

    @cached_property
    def distribution(self) -> CountDistribution:
        """The probability of each count: calibrated where there was a calibration."""
        settings, _ = self.record.settings, self.record.counted
        calibration = None if settings is None else settings.calibration
        return self.record.summary.distribution(Calibration() if calibration is None else calibration)

    @cached_property
    def regions(self) -> RegionCounts:
        """The number of lesions in each region, by its name: calibrated where there was a calibration."""
        found = {one.region: np.array(one.pmf_calibrated or one.pmf) for one in self.record.regions}
        return RegionCounts(found, TabulatedCount)

    def __repr__(self) -> str:
        if not self.is_counted:
            return f"FileCount({self.name}: failed: {self.error})"
        n = self.count
        return f"FileCount({self.name}: mean {n.count_mean:.2f}, {n.interval90_low} to {n.interval90_high})"


@dataclass(frozen=True, eq=False, repr=False)
class CountTable:
    """The counts of several files: iterate over it, index it by place or name, or make it a ``DataFrame``.

    Attributes
    ----------
    rows : tuple of FileCount
        One for each file, in the order of the inputs; what could not be counted is a row with its error.
    unlike : str
        How the files differ from what a calibration was fitted on, in words; empty if they do not, or that cannot be
        told.
    """

    rows: tuple[FileCount, ...]
    unlike: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[FileCount]:
        return iter(self.rows)

    def __getitem__(self, key: int | str) -> FileCount:
        """The row of this place, or of this name."""
        if not isinstance(key, str):
            return self.rows[key]
        for row in self.rows:
            if row.name == key:
                return row
        raise KeyError(f"There is no scan {key!r}. There are {', '.join(row.name for row in self.rows[:10])}, …")

    @property
    def counted(self) -> tuple[FileCount, ...]:
        """The rows that have a count."""
        return tuple(row for row in self.rows if row.is_counted)

    @property
    def failed(self) -> tuple[FileCount, ...]:
        """The rows that have an error instead."""
        return tuple(row for row in self.rows if not row.is_counted)

    def total(self) -> CountDistribution:
        """The number of lesions in all files together."""
        if not self.counted:
            raise LesionCountError("There is no total: none of the files was counted.")
        return SumOfCounts([row.distribution for row in self.counted])

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each file, with the columns of ``counts.tsv``."""
        return self._frame("counts.tsv")

    def lesions_to_dataframe(self) -> pd.DataFrame:
        """A row for each candidate of each file, with the columns of ``lesions.tsv``."""
        return self._frame("lesions.tsv")

    def regions_to_dataframe(self) -> pd.DataFrame:
        """A row for each region of each file, with the columns of ``regions.tsv``."""
        return self._frame("regions.tsv")

    def to_dict(self) -> dict[str, Any]:
        """The rows as plain values."""
        return {"scans": [count_row(row.record) for row in self.rows]}

    def to_json(self) -> str:
        """The same as JSON."""
        return to_json(self.to_dict())

    def __str__(self) -> str:
        """The first rows, and how many there are."""
        heads, rows = self._cells()
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [
            "  ".join(text.ljust(n) for text, n in zip(row, widths, strict=True)).rstrip() for row in (heads, *rows)
        ]
        return "\n".join([*lines, self._summary(), *(f"warning: {doubt}" for doubt in self._doubts())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from lesioncount.views.notebook import table_of  # not at the top: for notebooks only

        said = [self._summary(), *self._doubts()]
        return f"<div>{table_of(*self._cells())}<small>{'<br>'.join(map(escape, said))}</small></div>"

    def _frame(self, table: str) -> pd.DataFrame:
        return frame_of(table, (row.record for row in self.rows))

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        heads, rows = ["scan", "candidates", "mode", "mean", "90 % interval"], []
        shown = self.rows[:_PRINTED]
        for row in shown:
            if row.is_counted:
                n, n_candidates = row.count, row.record.counted.candidates.n_candidates
                interval = f"{n.interval90_low} to {n.interval90_high}"
                rows.append([row.record.shown, str(n_candidates), str(n.count_mode), f"{n.count_mean:.2f}", interval])
            else:
                rows.append([row.record.shown, "failed", "", "", ""])
        if all(row.is_counted for row in shown):
            return heads, rows
        return [*heads, "error"], [[*cells, (row.error or "")[:80]] for cells, row in zip(rows, shown, strict=True)]

    def _doubts(self) -> Iterator[str]:
        """What is not known of the calibration."""
        known = (row.record.settings for row in self.rows)
        yield from filter(None, dict.fromkeys("" if one is None else one.caveat for one in known))
        yield from filter(None, [self.unlike])

    def _summary(self) -> str:
        more = f"… and {len(self) - _PRINTED} more; " if len(self) > _PRINTED else ""
        return f"{more}{len(self.counted)} counted, {len(self.failed)} failed"


def count_files(  # noqa: PLR0913 - as many as a count of files has options
    paths: Files,
    /,
    *,
    protocol: CountingProtocol | str | None = None,
    mask: str | os.PathLike[str] | None = None,
    channel: int | None = None,
    scale: float | None = None,
    logits: bool | None = None,
    calibration: CalibrationLike | None = None,
    interval: Literal["distribution", "conformal"] = "distribution",
    selection: Selection | None = None,
    regions: str | os.PathLike[str] | None = None,
    region_names: Mapping[int, str] | str | os.PathLike[str] | None = None,
    within: str | Within | Iterable[str | Within] = (),
    jobs: int = 1,
    progress: Callable[[FileCount, int, int], None] | None = None,
    **definition: Unpack[ProtocolFields],
) -> CountTable:
    """Count the maps in many files. What fails is a row with its error; the others are counted.

    Parameters
    ----------
    paths : path or sequence of paths
        Files, folders (searched with everything below them) or glob patterns.
    protocol : CountingProtocol or str, optional
        What counts as one lesion, or the name of a preset. Default: that of the calibration, or of the paper.
    mask : path, optional
        A mask for all maps, a folder with a mask for each, or a pattern such as ``masks/{participant}.nii.gz``.
    channel, scale, logits
        As in `count_file`. Default: as the maps were read that the calibration was fitted on.
    calibration : path, CalibrationFit or Calibration, optional
        What counts are corrected with, such as ``"calibration.json"``.
    interval : {"distribution", "conformal"}
        "conformal" adds a 90 % interval that is guaranteed for scans like those of the calibration.
    selection : Selection, optional
        Which files of a folder are scans, and how they are named. Default: all maps, or those of a BIDS dataset.
    regions : path, optional
        A label map of regions to count in: for all maps, a folder with one for each map or patient, or a pattern.
    region_names, within
        As in `count_file`.
    jobs : int, default 1
        Number of processes.
    progress : callable, optional
        Called with each row as it comes, the number of rows done, and the number of all.
    **definition
        Fields of `CountingProtocol`, such as ``threshold=0.3``, in place of those of the protocol.

    Returns
    -------
    CountTable

    Raises
    ------
    MapFileError
        When a path does not exist, or a folder has no maps in it.
    CalibrationError
        When the calibration was fitted under another protocol or channel, or for changes; or has no such intervals.

    See Also
    --------
    lesioncount.runs.count_batch : the same into a folder of results, as the command does.
    """
    from lesioncount.trust.fitting.evidence import as_fit  # not at the top: runs on files need it only if asked to

    fit = as_fit(calibration)
    of_fit = None if fit is None else fit.known_protocol
    settings = Settings(
        protocol=defined(of_fit if protocol is None else protocol, definition, count_files),
        channel=channel,
        scale=scale,
        logits=logits,  # type: ignore[arg-type]  # None: as the calibration has it
        calibration=fit,
        conformal=interval == "conformal",
        regions=region_settings(regions, region_names, within),
    )
    settings.check(members=False)
    given = [to_path(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    scans = (selection or Selection()).find(
        given, mask=None if mask is None else to_path(mask), regions=None if regions is None else to_path(regions)
    )
    told = None if progress is None else lambda record, done, n: progress(FileCount(record), done, n)
    kind = Counting(settings)
    records = records_of(scans, kind, jobs=jobs, progress=told)
    rows = tuple(FileCount(records[place]) for place in range(len(scans)))
    entries = [] if fit is None else [Entry.of(row.record) for row in rows if row.is_counted]
    return CountTable(rows, kind.likeness(entries).get("unlike", ""))


def records_of(
    scans: Sequence[ScanFiles],
    kind: Counting,
    *,
    jobs: int = 1,
    progress: Callable[[Record, int, int], None] | None = None,
) -> dict[int, Record]:
    """The records of scans by their places, in memory; what fails is a record with its error."""
    records: dict[int, Record] = {}
    for place, future in results_of(partial(_record, kind=kind), scans, jobs=jobs):
        try:
            records[place] = future.result()
        except WorkerDiedError:
            facts = [_facts(scans[place])]
            records[place] = kind.failed(scans[place], "the process that counted it died", facts)
        if progress is not None:
            progress(records[place], len(records), len(scans))
    return records


def _record(scan: ScanFiles, kind: Counting) -> Record:
    files = [_facts(scan)]
    if scan.problem is not None:
        return kind.failed(scan, scan.problem, files)
    try:
        return kind.work(scan, lambda: files, keep=Keep(), jobs=1, client=None)[0]
    except Exception as error:  # noqa: BLE001 - whatever one file does to a reader, the others are counted
        return kind.failed(scan, error_in_words(error), files)


def _facts(scan: ScanFiles) -> FileFacts:
    """The paths; without fingerprints, which nobody compares here."""
    mask, regions = (None if path is None else str(path.absolute()) for path in (scan.mask, scan.regions))
    return replace(FileFacts.unread(scan), mask=mask, regions=regions)

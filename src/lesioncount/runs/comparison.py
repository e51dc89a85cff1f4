"""Results beside the truth: true counts and, where there are masks, which candidate is which lesion."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from lesioncount.errors import MapFileError, TruthError
from lesioncount.files.formats import open_map, scan_name
from lesioncount.runs.file_counts import ScanCount, component_counts, count_file
from lesioncount.runs.inputs import counterpart, find_maps, namesakes
from lesioncount.runs.records import ScanSummary
from lesioncount.runs.results import RunResults
from lesioncount.runs.settings import CountedWith
from lesioncount.runs.truth import check_none_missing, read_truth_table, true_lesions
from lesioncount.runs.workers import results_of
from lesioncount.trust.scores.lesions import LesionMatch, match_lesions

# At which connected components are counted.
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class TruthOptions:
    """Where the truth is, and how it is read.

    Attributes
    ----------
    masks : Path, optional
        Folder with a mask of the same name for each map.
    table : Path, optional
        Table with a count per scan.
    label : int, optional
        Which value of the masks is a lesion.
    suffix : str
        What follows the name of the map in the name of its mask, such as "_label-lesion_mask".
    scan_column, count_column : str
        Of the table.
    group_by : str, optional
        A column of the table, or a regular expression that finds the patient in the name of a scan.
    skip_missing : bool
        Leave out scans without truth. Otherwise they are an error.
    """

    masks: Path | None = None
    table: Path | None = None
    label: int | None = None
    suffix: str = ""
    scan_column: str = "scan"
    count_column: str = "count"
    group_by: str | None = None
    skip_missing: bool = False

    def __post_init__(self) -> None:
        if (self.masks is None) == (self.table is None):
            raise TruthError("Expected the truth: either masks (--truth) or a table of counts (--truth-counts).")
        for path in (self.masks, self.table):
            if path is not None and not path.exists():
                raise MapFileError(f"{path} does not exist.")


@dataclass(frozen=True, eq=False)
class ScanTruth:
    """What is true of one scan.

    Attributes
    ----------
    count : int
    match : LesionMatch or None
        Where there is a mask, and maps were read.
    cc_counts : tuple of int or None
        Connected components at `THRESHOLDS`, where maps were read.
    """

    count: int
    match: LesionMatch | None = None
    cc_counts: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class Compared:
    """Scans with their truth, and the group of each."""

    results: RunResults
    scans: tuple[ScanSummary, ...]
    truths: tuple[ScanTruth, ...]
    groups: tuple[str, ...]

    @property
    def n_without_truth(self) -> int:
        """How many scans were counted whose truth is not known."""
        return len(self.results.counted) - len(self.scans)


def compare(results: RunResults, options: TruthOptions, *, read_maps: bool, jobs: int = 1) -> Compared:
    """Find the truth of each scan.

    Parameters
    ----------
    results : RunResults
    options : TruthOptions
    read_maps : bool
        Read the maps again, to compare single lesions (where there are masks) and to count connected components at
        other thresholds. Ignored for ensembles.
    jobs : int, default 1
        Number of processes.
    """
    if options.masks is not None and options.masks.is_file() and len(results.counted) > 1:
        raise TruthError(
            f"Expected a folder with a mask for each of {len(results.counted)} scans, but {options.masks} is one file."
        )
    truth: _Table | _Masks = _Masks(options) if options.table is None else _Table(options)
    known = tuple(scan for scan in results.counted if truth.knows(scan))
    if not options.skip_missing or not known:
        missing = [scan.name for scan in results.counted if not truth.knows(scan)]
        check_none_missing(missing, truth.names(), truth.path)
    if isinstance(truth, _Table):
        truth.check(known)
    look = partial(truth.of, counted_with=results.run.counted_with, read_maps=read_maps and not results.has_members)
    found = dict(results_of(look, known, jobs=jobs))
    truths = [found[place].result() for place in range(len(known))]
    if options.label is not None and not any(found.count for found in truths):
        raise TruthError(f"No voxel of any mask has the value {options.label}: is --truth-label right?")
    groups = truth.groups(known, options.group_by)
    return Compared(results, known, tuple(truths), tuple(groups))


class _Table:
    """Truth from a table of counts."""

    def __init__(self, options: TruthOptions) -> None:
        self.path = options.table or Path()
        self._table = read_truth_table(self.path, scan_column=options.scan_column, count_column=options.count_column)

    def names(self) -> Iterable[str]:
        return self._table.rows

    def knows(self, scan: ScanSummary) -> bool:
        return self._table.knows(*_names(scan))

    def check(self, scans: Sequence[ScanSummary]) -> None:
        self._table.check_each_has_its_own(map(_names, scans))

    def of(self, scan: ScanSummary, *, counted_with: CountedWith, read_maps: bool) -> ScanTruth:
        count = self._table.count_of(*_names(scan))
        return ScanTruth(count, cc_counts=_cc_counts(scan, counted_with) if read_maps else None)

    def groups(self, scans: Sequence[ScanSummary], group_by: str | None) -> Sequence[str]:
        column = None if group_by is None else self._table.column(group_by, map(_names, scans))
        return _groups_in_names(scans, group_by) if column is None else column


class _Masks:
    """Truth from a folder of masks."""

    def __init__(self, options: TruthOptions) -> None:
        self.path = options.masks or Path()
        self._label, self._suffix = options.label, options.suffix

    def names(self) -> Iterable[str]:
        return (scan_name(path) for path in find_maps([self.path]))

    def knows(self, scan: ScanSummary) -> bool:
        return not self.path.is_dir() or bool(namesakes(self.path, scan.grid.path, suffix=self._suffix))

    def of(self, scan: ScanSummary, *, counted_with: CountedWith, read_maps: bool) -> ScanTruth:
        mask = counterpart(self.path, scan.grid.path, suffix=self._suffix)
        lesions = true_lesions(mask, scan.grid, counted_with.protocol, label=self._label, within=scan.within)
        if not read_maps:
            return ScanTruth(len(lesions))
        candidates = _counted_again(scan, counted_with).result.candidates
        match = match_lesions(
            candidates.label_map(), lesions.label_map(), n_candidates=len(candidates), n_lesions=len(lesions)
        )
        return ScanTruth(len(lesions), match, _cc_counts(scan, counted_with))

    def groups(self, scans: Sequence[ScanSummary], group_by: str | None) -> Sequence[str]:
        return _groups_in_names(scans, group_by)


def _names(scan: ScanSummary) -> tuple[str, str]:
    """Names that a scan may have in a table: that of its result, and that of its file, which may hold spaces."""
    return scan.name, scan_name(scan.grid.path)


def _counted_again(scan: ScanSummary, counted_with: CountedWith) -> ScanCount:
    """The count of the map, read again; the file must not have changed."""
    path = _existing(scan)
    reading = counted_with.reading.to_dict()
    count = count_file(path, protocol=counted_with.protocol, mask=scan.within, keep_runs=True, **reading)
    if not np.array_equal(count.result.existence, scan.existence[0]):
        raise MapFileError(f"The map {path} of {scan.name} has changed since it was counted. Count again.")
    return count


def _existing(scan: ScanSummary) -> Path:
    path = scan.grid.path
    if not path.exists():
        raise MapFileError(
            f"The map {path} of {scan.name} is no longer there, but is needed to compare lesions. To compare only "
            "counts: --counts-only."
        )
    return path


def _cc_counts(scan: ScanSummary, counted_with: CountedWith) -> tuple[int, ...]:
    source = open_map(_existing(scan), **counted_with.reading.to_dict())
    return component_counts(source, thresholds=THRESHOLDS, protocol=counted_with.protocol, mask=scan.within)


def _groups_in_names(scans: Sequence[ScanSummary], pattern: str | None) -> Sequence[str]:
    """What a regular expression finds in the name of each scan; without one, each scan is a group of its own."""
    names = [scan.name for scan in scans]
    if pattern is None:
        return names
    try:
        found = [re.search(pattern, name) for name in names]
    except re.error as error:
        raise TruthError(f"{pattern!r} is not a column of the truth, nor a regular expression: {error}.") from None
    for name, match in zip(names, found, strict=True):
        if match is None:
            raise TruthError(
                f"{pattern!r} is not a column of the truth, and as a pattern it finds nothing in {name!r}."
            )
    return [match.group(match.lastindex or 0) for match in found if match is not None]

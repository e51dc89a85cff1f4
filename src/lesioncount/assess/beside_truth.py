"""Results beside the truth: true counts and, where there are masks, which candidate is which lesion."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from lesioncount.assess.recount import counted_again
from lesioncount.assess.reviews.reviews import ReviewedTruth
from lesioncount.assess.truth import (
    Instances,
    TruthTable,
    check_none_missing,
    middle_of,
    read_truth_table,
    true_lesions,
)
from lesioncount.candidates import Candidates
from lesioncount.cohort.inputs import maps_in
from lesioncount.cohort.item import FileFacts
from lesioncount.cohort.pairing import pair
from lesioncount.cohort.patterns import is_pattern
from lesioncount.errors import MapFileError, TruthError
from lesioncount.files.formats import scan_name
from lesioncount.protocol import CountingProtocol
from lesioncount.results.counts_of import CountsOf, table_names
from lesioncount.results.record import Entry
from lesioncount.results.recorded import Recorded
from lesioncount.results.scan_count import THRESHOLDS, ScanCount
from lesioncount.results.scan_numbers import WHOSE_COLUMNS
from lesioncount.runs.workers import results_of
from lesioncount.trust.scores.lesions import LesionMatch, match_lesions


@dataclass(frozen=True)
class TruthOptions:
    """Where the truth is, and how it is read.

    Attributes
    ----------
    masks : tuple of Path
        Folder with a mask for each map, of the same name or the same BIDS entities; or a pattern such as
        ``masks/{participant}_{session}.nii.gz``. Of several readers, one each; not each must have drawn all scans.
    table : Path, optional
        Table with a count per scan. With masks as well, counts are those of the table, and lesions those of the masks.
    label : int, optional
        Which value of the masks is a lesion.
    instances : bool
        Each value of the masks but 0 is a lesion of its own. Otherwise lesions are connected regions.
    suffix : str
        What the name of a mask, or a name in the table, adds to that of its map, or has in place of its last part:
        "_label-lesion_mask".
    scan_column, count_column : str, optional
        Of the table. Default: the column that names most scans, and the one called ``count``, those of readers, or the
        only one of whole numbers. Columns of several readers have commas between them.
    group_by : str, optional
        A column of the table, ``participant_id``, or a regular expression that finds the patient in the name of a scan.
    skip_missing : bool
        Leave out scans without truth. Otherwise they are an error.
    reviews : Path, optional
        Folder of results that were reviewed, in place of masks and table: complete reviews are the truth, and all other
        scans are left out.
    reader : str, optional
        Whose reviews. Default: the only reader there is.
    """

    masks: tuple[Path, ...] = ()
    table: Path | None = None
    label: int | None = None
    instances: bool = False
    suffix: str = ""
    scan_column: str | None = None
    count_column: str | None = None
    group_by: str | None = None
    skip_missing: bool = False
    reviews: Path | None = None
    reader: str | None = None

    def __post_init__(self) -> None:
        if not self.masks and self.table is None and self.reviews is None:
            raise TruthError(
                "Expected the truth: masks (--truth), a table of counts (--truth-counts), or both; or --reviews."
            )
        if self.reviews is not None and (self.masks or self.table is not None):
            raise TruthError("Reviews are the truth by themselves: leave --truth and --truth-counts out.")
        if self.reader is not None and self.reviews is None:
            raise TruthError("A reader (--reader) goes with reviews: --reviews.")
        if self.instances and (not self.masks or self.label is not None):
            raise TruthError(
                "With --truth-instances each value of the masks is a lesion of its own: it takes masks (--truth), and "
                "no --truth-label."
            )
        if len(set(self.masks)) < len(self.masks):
            raise TruthError("Expected another folder of masks for each reader, but one is given twice.")
        for path in (*self.masks, *(() if self.table is None else (self.table,))):
            if not path.exists() and not (path in self.masks and is_pattern(path)):
                raise MapFileError(f"{path} does not exist.")

    @classmethod
    def known(cls, *where: Path, **options: Any) -> Self:
        """Counts that are known for some scans: a folder or pattern of masks, one for each reader; or a table."""
        tables = [path for path in where if not (path.is_dir() or is_pattern(path))]
        if tables and len(where) > 1:
            raise TruthError(
                f"Expected one table of counts, with a column for each reader, or a folder of masks for each reader, "
                f"but got {tables[0]} and others."
            )
        return cls(masks=() if tables else where, table=next(iter(tables), None), skip_missing=True, **options)

    @property
    def kind(self) -> str:
        """Of the truth: "masks", "instances", "counts", or one of the first two "and counts"; or "reviews"."""
        if self.reviews is not None:
            return "reviews"
        drawn = ["instances" if self.instances else "masks"] if self.masks else []
        return " and ".join([*drawn, *(() if self.table is None else ("counts",))])

    def read_table(self, scans: Iterable[Sequence[str]], of: str = "lesions") -> TruthTable | None:
        """The table of counts, if there is one, for scans that may be called so; of what is counted there."""
        if self.table is None:
            return None
        columns: dict[str, Any] = {"scan_column": self.scan_column, "count_column": self.count_column}
        return read_truth_table(self.table, list(scans), suffix=self.suffix, of=of, **columns)

    @property
    def where(self) -> str:
        """The paths of the truth."""
        paths = (*self.masks, self.table, self.reviews)
        return " and ".join(str(path) for path in paths if path is not None)

    def masks_of(self, scans: Mapping[str, FileFacts | None]) -> dict[str, dict[str, Path]] | None:
        """The masks of each scan that has any, by its name and by who drew them; None without masks.

        A reader is called as the folder is, or by its whole path where folders have the same name.
        """
        if not self.masks:
            return None
        names = [path.name for path in self.masks]
        found: dict[str, dict[str, Path]] = {}
        for path in self.masks:
            reader = path.name if names.count(path.name) == 1 else str(path)
            for scan, mask in pair(scans, path, role="truth", suffix=self.suffix, none_is_error=False).items():
                found.setdefault(scan, {})[reader] = mask
        return found

    def lesions_in(self, mask: Path, scan: Entry, protocol: CountingProtocol) -> Candidates | Instances:
        """The lesions of a mask of a scan."""
        drawn: dict[str, Any] = {"label": self.label, "instances": self.instances, "within": scan.within}
        return true_lesions(mask, scan.grid, protocol, **drawn)


@dataclass(frozen=True, eq=False)
class ScanTruth:
    """What is true of one scan.

    Attributes
    ----------
    count : int
        With several readers, their median.
    n_drawn : int or None
        Lesions in the mask, where there is one; with several readers, their median. The count is another where a table
        says so.
    matches : dict of str to LesionMatch
        By who drew the mask; empty unless there are masks and maps were read.
    cc_counts : tuple of int or None
        Connected components at `THRESHOLDS`, where maps were read.
    readers : tuple of int
        What each of several readers has counted; empty if there is one.
    """

    count: int
    n_drawn: int | None = None
    matches: Mapping[str, LesionMatch] = field(default_factory=dict)
    cc_counts: tuple[int, ...] | None = None
    readers: tuple[int, ...] = ()

    @property
    def readings(self) -> tuple[int, ...]:
        """What each reader has counted, also if there is one."""
        return self.readers or (self.count,)


@dataclass(frozen=True, eq=False)
class Compared:
    """Scans with their truth, and the group of each; and what a reader must know of the truth."""

    results: CountsOf
    scans: tuple[Entry, ...]
    truths: tuple[ScanTruth, ...]
    groups: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def n_without_truth(self) -> int:
        """How many scans were counted whose truth is not known."""
        return len(self.results.counted) - len(self.scans)

    @property
    def by_reader(self) -> Compared:
        """The same with each scan as often as it was read, each time with the count of one reader as its truth."""
        rows = [(place, count) for place, truth in enumerate(self.truths) for count in truth.readings]
        return replace(
            self,
            scans=tuple(self.scans[place] for place, _ in rows),
            truths=tuple(replace(self.truths[place], count=count, readers=()) for place, count in rows),
            groups=tuple(self.groups[place] for place, _ in rows),
        )


def compare(results: CountsOf, options: TruthOptions, *, read_maps: bool, jobs: int = 1) -> Compared:
    """Find the truth of each scan.

    Parameters
    ----------
    results : CountsOf
    options : TruthOptions
    read_maps : bool
        Read the maps again, to compare single lesions (where there are masks) and to count connected components at
        other thresholds. Ignored for ensembles.
    jobs : int, default 1
        Number of processes.
    """
    one_file = next((path for path in options.masks if path.is_file()), None)
    if one_file is not None and len(results.counted) > 1:
        raise TruthError(
            f"Expected a folder with a mask for each of {len(results.counted)} scans, but {one_file} is one file."
        )
    masks = options.masks_of({scan.name: scan.files for scan in results.counted})
    table = options.read_table(map(table_names, results.counted), results.of)
    known = _with_truth(results.counted, options, table, masks)
    reviews = None if options.reviews is None else ReviewedTruth(results.results, options.reviews, options.reader)
    if reviews is not None:
        known = tuple(scan for scan in known if scan.name in reviews.matches)
    if table is not None:
        table.check_each_has_its_own(map(table_names, known))
    look = partial(
        _truth_of,
        options=options,
        table=table,
        masks=masks,
        matches={} if reviews is None else reviews.matches,
        counted_with=results.settings,
        component_counts=results.component_counts,
        read_maps=read_maps and not results.has_members,
    )
    truths = _in_order(results_of(look, known, jobs=jobs))
    if options.label is not None and not any(truth.n_drawn for truth in truths):
        raise TruthError(f"No voxel of any mask has the value {options.label}: is --truth-label right?")
    groups = groups_of(known, options.group_by, table)
    of_table = (table.note,) if table is not None and table.note else ()
    notes = (*of_table, *_notes(truths, options), *(() if reviews is None else reviews.notes()))
    notes = (*notes, *_same_person(known, groups))
    return Compared(results, known, truths, tuple(groups), notes)


def _in_order(results: Iterable[tuple[int, Future[ScanTruth]]]) -> tuple[ScanTruth, ...]:
    """Results by their places, or the first error. A future takes ten times the memory of its result."""
    found: dict[int, ScanTruth] = {}
    errors: dict[int, BaseException] = {}
    for place, future in results:
        error = future.exception()
        if error is None:
            found[place] = future.result()
        else:
            errors[place] = error
    if errors:
        raise errors[min(errors)]
    return tuple(found[place] for place in range(len(found)))


def _truth_of(
    scan: Entry,
    *,
    options: TruthOptions,
    table: TruthTable | None,
    masks: Mapping[str, Mapping[str, Path]] | None,
    matches: Mapping[str, LesionMatch],
    counted_with: Recorded,
    component_counts: Mapping[str, tuple[int, ...]],
    read_maps: bool,
) -> ScanTruth:
    reviewed = matches.get(scan.name)
    if reviewed is not None:
        at = component_counts.get(scan.name)
        if at is None and read_maps:
            at = _at_thresholds(scan, counted_with, keep_runs=False).counts_at
        match = {"": reviewed} if len(scan.tables) == 1 else {}  # of an ensemble, one member was reviewed
        return ScanTruth(reviewed.n_lesions, None, match, at)
    paths = {} if masks is None else masks[scan.name]
    lesions = {reader: options.lesions_in(path, scan, counted_with.protocol) for reader, path in paths.items()}
    drawn = tuple(map(len, lesions.values()))
    counts = drawn if table is None else table.counts_of(*table_names(scan))
    count, readers = middle_of(counts), counts if len(counts) > 1 else ()
    n_drawn = middle_of(drawn) if drawn else None
    usual = component_counts.get(scan.name)
    if usual or not read_maps:  # changes have been counted the usual way already
        return ScanTruth(count, n_drawn, {}, usual or None, readers)
    again = _at_thresholds(scan, counted_with, keep_runs=bool(lesions))
    found = {reader: _matched(again.result.candidates, one) for reader, one in lesions.items()}
    return ScanTruth(count, n_drawn, found, again.counts_at, readers)


def _at_thresholds(scan: Entry, counted_with: Recorded, *, keep_runs: bool) -> ScanCount:
    purpose = "to compare lesions. To compare only counts: --counts-only"
    return counted_again(scan, counted_with, purpose=purpose, keep_runs=keep_runs, thresholds=THRESHOLDS)


def _matched(candidates: Candidates, lesions: Candidates | Instances) -> LesionMatch:
    labels = candidates.label_map(), lesions.label_map()
    return match_lesions(*labels, n_candidates=len(candidates), n_lesions=len(lesions))


def _notes(truths: Sequence[ScanTruth], options: TruthOptions) -> Iterator[str]:
    n_other = sum(truth.n_drawn not in (None, truth.count) for truth in truths)
    if n_other:
        yield (
            f"In {n_other} of {len(truths)} scans the table has another count than the mask. Counts are compared with "
            "the table, lesions with the masks."
        )
    if options.instances and len(truths) > 1 and max(truth.n_drawn or 0 for truth in truths) < 2:
        yield "No mask holds more than one value. If its regions are the lesions, leave --truth-instances out."


def _same_person(scans: Sequence[Entry], groups: Sequence[str]) -> Iterator[str]:
    """Scans of one person are no independent scans, though they are taken so where nobody says otherwise."""
    people = [scan.whose.get("participant_id") for scan in scans]
    n_known = len(set(people))
    if all(people) and n_known < len(scans) == len(set(groups)):
        yield (
            f"{len(scans)} scans of {n_known} participant{'' if n_known == 1 else 's'} are treated as independent, but "
            "scans of one person resemble each other. Intervals are too short and guarantees do not hold unless you "
            "pass --group-by participant_id."
        )
    if len(set(groups)) == 1 < len(groups):
        yield (
            f"All {len(groups)} scans are of one patient ({groups[0]}): none can be held out, and what fits them may "
            "not fit others."
        )


def _names_in(folders: Iterable[Path]) -> Iterator[str]:
    for folder in folders:
        if folder.is_dir():
            yield from map(scan_name, maps_in(folder))


def _with_truth(
    scans: Sequence[Entry], options: TruthOptions, table: TruthTable | None, masks: Container[str] | None
) -> tuple[Entry, ...]:
    """The scans that table and masks know; an error if there are others, unless these are to be left out."""
    sources: list[tuple[Container[str], Iterable[str], str]] = []
    if table is not None:
        in_table = {scan.name for scan in scans if table.knows(*table_names(scan))}
        sources.append((in_table, table.rows, str(table.path)))
    if masks is not None:
        sources.append((masks, set(_names_in(options.masks)), " and ".join(map(str, options.masks))))
    known = tuple(scan for scan in scans if all(scan.name in there for there, _, _ in sources))
    if not options.skip_missing or not known:
        for there, held, where in sources:
            check_none_missing([scan.name for scan in scans if scan.name not in there], held, where)
    return known


def groups_of(scans: Sequence[Entry], pattern: str | None, table: TruthTable | None) -> Sequence[str]:
    """The group of each scan: from the table, or found in its name; with neither, each is a group of its own."""
    names = [scan.name for scan in scans]
    if pattern is None:
        return names
    column = None if table is None else table.column(pattern, map(table_names, scans))
    if column is not None:
        return column
    if pattern in WHOSE_COLUMNS and all(pattern in scan.whose for scan in scans):
        return [scan.whose[pattern] for scan in scans]
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

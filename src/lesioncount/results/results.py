"""A folder of results → what is known of all its scans or patients together, also as ``pandas.DataFrame``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.tabulated import TabulatedCount
from lesioncount.errors import MapError, MapFileError
from lesioncount.folder.tables import filled_columns
from lesioncount.optional import optional
from lesioncount.protocol import CountingProtocol
from lesioncount.results.count_warnings import DARK_PICTURES, in_general, said_of_all
from lesioncount.results.counts_of import CountsOf, entries_of_pairs
from lesioncount.results.record import Entry, Record, trusted_record
from lesioncount.results.record_files import no_record
from lesioncount.results.run_file import RUN_FILE, WAITING, Run, RunItem, find_run
from lesioncount.results.tables import CHANGE_TABLES, COUNT_TABLES
from lesioncount.results.value_shares import are_pictures
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import Counted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Results:
    """What a run found: one entry per scan or patient, in the order of its inputs.

    Attributes
    ----------
    out : Path
        The folder.
    run : Run
    entries : tuple of Entry
        Records without single candidates.
    """

    out: Path
    run: Run
    entries: tuple[Entry, ...]

    @property
    def scans(self) -> tuple[Entry, ...]:
        """All scans of a count."""
        return self.entries

    @property
    def courses(self) -> tuple[Entry, ...]:
        """All patients of a comparison."""
        return self.entries

    @cached_property
    def counted(self) -> tuple[Entry, ...]:
        """The scans that have a count."""
        return tuple(one for one in self.entries if one.is_ok)

    @property
    def compared(self) -> tuple[Entry, ...]:
        """The patients that were compared."""
        return self.counted

    @cached_property
    def failed(self) -> tuple[Entry, ...]:
        """The scans that could not be counted, or the patients that could not be compared."""
        return tuple(one for one in self.entries if not one.is_ok)

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before it had come to all scans or patients."""
        return self.run.status == "interrupted"

    @property
    def protocol(self) -> CountingProtocol:
        """What was counted as one lesion."""
        return self.run.settings.protocol

    @property
    def calibration(self) -> Calibration | None:
        """What counts were corrected with."""
        return self.run.settings.calibration

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
    def warnings(self) -> dict[str, list[Entry]]:
        """The scans that each warning is about."""
        about: dict[str, list[Entry]] = {}
        for scan in self.entries:
            for warning in scan.warnings:
                about.setdefault(in_general(warning), []).append(scan)
        spread = [scan for scan in self.entries if scan.shares]
        if are_pictures([scan.shares for scan in spread]):
            about[DARK_PICTURES] = spread
        return about

    def check_seen(self) -> None:
        """Raise if no scan or patient was looked at in earnest: their counts of 0 say nothing."""
        maps = [(one, session.warnings) for one in self.counted for session in one.all_sessions()]
        maps += [(one, (one.error,)) for one in self.failed if one.error and said_of_all([(one.error,)], 1)]
        n = len({one.name for one, _ in maps})
        why = said_of_all([warnings for _, warnings in maps], n)
        if why is not None:
            what = "patient" if self.run.is_of_changes else "scan"
            about = f"all {n} {what}s" if n > 1 else f"the {what}"
            raise MapError(
                f"This is so of {about}: {why} Then run again with --overwrite. The results in {self.out} have this "
                "warning, and say nothing about lesions."
            )

    def of(self, counted: Counted | None = None, *, features: Sequence[str] = ()) -> CountsOf:
        """The counts of lesions; or of new, gone or persisting ones, with a pair of sessions in the place of a scan.

        Parameters
        ----------
        counted : {"lesions", "new", "gone", "persisting"}, optional
            Default: what the folder holds, and of changes new ones.
        features : sequence of str, optional
            Of changes: further columns of the tables of candidates, beside those that calibrations need.
        """
        counted = _checked(self.out, self.run, counted)
        if counted == "lesions":
            return CountsOf(self, counted, self.counted)
        pairs = (pair for record in self.records() for pair in entries_of_pairs(record, counted, features))
        return CountsOf(self, counted, tuple(pairs))

    def total(self, calibration: Calibration | None = None, of: Counted | None = None) -> CountDistribution:
        """The number of what was counted in all scans together, as it is or after a calibration."""
        return self.of(of).total(calibration)

    def distributions(self, kind: Counted, *, calibrated: bool = True) -> dict[str, CountDistribution]:
        """The number of new, gone or persisting lesions of each pair, by its name; calibrated where it was."""
        counts = {pair.name: pair.counts[kind] for course in self.compared for pair in course.pairs}
        tables = {name: (calibrated and count.pmf_calibrated) or count.pmf for name, count in counts.items()}
        return {name: TabulatedCount(np.array(table)) for name, table in tables.items()}

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each scan, with the columns of ``counts.tsv``; or for each pair, with those of ``changes.tsv``."""
        return frame_of("changes.tsv" if self.run.is_of_changes else "counts.tsv", self.entries)

    def lesions_to_dataframe(self) -> pd.DataFrame:
        """A row for each candidate of each scan, with the columns of ``lesions.tsv``."""
        return frame_of("lesions.tsv", self.records())

    def regions_to_dataframe(self) -> pd.DataFrame:
        """A row for each region of each scan, with the columns of ``regions.tsv``."""
        return frame_of("regions.tsv", self.entries)

    def lineages_to_dataframe(self) -> pd.DataFrame:
        """A row for each lineage and session, with the columns of ``lineages.tsv``."""
        return frame_of("lineages.tsv", self.records())

    def records(self) -> Iterator[Record]:
        """The whole records of what was counted or compared, read one after the other."""
        for one in self.counted:
            yield self.record(one.name)

    def record(self, name: str) -> Record:
        """The whole record of a scan or a patient."""
        record = trusted_record(self.out, name, of_changes=self.run.is_of_changes)
        if record is None:
            raise no_record(self.out, name)
        return record


def read_results(out: str | Path, *, features: Sequence[str] = ()) -> Results:
    """Read what a run has left in its folder.

    Parameters
    ----------
    out : path
    features : sequence of str, optional
        Further columns of the tables of candidates, such as ``volume``, beside those that its calibration needs.
    """
    return _read(Path(out), _run_in(Path(out)), partial(Entry.of, features=features))


def read_changes(out: str | Path, /) -> Results:
    """Read what ``lesioncount compare`` has left in a folder."""
    out = Path(out)
    run = find_run(out)
    if run is None or not run.is_of_changes:
        raise MapFileError(
            f"Expected the results of a comparison in {out}, but its run.json is not there or is not one. Compare "
            f"first: lesioncount compare BASELINE FOLLOWUP -o {out}"
        )
    return _read(out, run, Entry.of)


def read_counted(out: Path) -> Results:
    """The counts in a folder, where scans that were counted must have their records."""
    run = _run_in(out)
    if run.is_of_changes:
        raise _no_run(out)
    return _countable(out, run, "lesions").results


def read_countable(out: Path, of: Counted | None = None, *, features: Sequence[str] = ()) -> CountsOf:
    """The counts in a folder of results: of lesions, or of new, gone or persisting ones if it is of a comparison.

    Those that were counted or compared must have their records.
    """
    run = _run_in(out)
    return _countable(out, run, _checked(out, run, of), features)


def _countable(out: Path, run: Run, of: Counted, features: Sequence[str] = ()) -> CountsOf:
    pairs: list[Entry] = []

    def entry(record: Record) -> Entry:
        pairs.extend(entries_of_pairs(record, of, features) if run.is_of_changes else ())
        return Entry.of(record, features)

    results = _read(out, run, entry, all_there=True)
    if not results.counted:
        what = f"patient in {out} that was compared" if run.is_of_changes else f"scan in {out} that was counted"
        raise MapFileError(f"There is no {what}.")
    return CountsOf(results, of, tuple(pairs) if run.is_of_changes else results.counted)


def _run_in(out: Path) -> Run:
    """The run in a folder."""
    run = find_run(out)
    if run is None:
        raise _no_run(out)
    return run


def _no_run(out: Path) -> MapFileError:
    holds_others = out.is_dir() and not (out / RUN_FILE).exists() and any(out.iterdir())  # maps, mostly
    return MapFileError(
        f"Expected the results of a run in {out}, but its run.json is not there or cannot be read. Count first: "
        f"lesioncount count {f'{out} -o FOLDER' if holds_others else f'MAPS -o {out}'}"
    )


def _checked(out: Path, run: Run, of: Counted | None) -> Counted:
    """What is meant to be counted; raise if a folder does not hold it."""
    of = of or ("new" if run.is_of_changes else "lesions")
    if run.is_of_changes and of == "lesions":
        raise MapFileError(f"{out} holds changes: ask for new, gone or persisting lesions (--of).")
    if not run.is_of_changes and of != "lesions":
        raise MapFileError(
            f"{out} holds no comparison, so that there are no {of} lesions in it. Compare first: lesioncount "
            f"compare BASELINE FOLLOWUP -o {out}"
        )
    return of


def _read(out: Path, run: Run, entry: Callable[[Record], Entry], *, all_there: bool = False) -> Results:
    """All that a run has come to, from its records, which must be there if they are to be complete."""
    found = (_entry(out, item, run, entry, must_be=all_there) for item in run.items)
    return Results(out, run.without_items, tuple(one for one in found if one is not None))


def _entry(out: Path, item: RunItem, run: Run, entry: Callable[[Record], Entry], *, must_be: bool) -> Entry | None:
    """What is known of a scan or patient; None of one that a run which was stopped has not come to."""
    record = None if item.error else trusted_record(out, item.name, of_changes=run.is_of_changes)
    if record is not None and record.is_ok:
        return entry(record)
    if record is None and item.status == WAITING:
        return None
    if must_be and item.status == "ok":  # nobody is left out without a word
        raise no_record(out, item.name)
    # The run knows of scans that died before they had a record.
    why = item.error or (record.error if record else None)
    return Entry.failed(item.name, why or str(no_record(out, item.name)), of_changes=run.is_of_changes)


def frame_of(name: str, records: Iterable[Record]) -> pd.DataFrame:
    """A table as pandas reads it from its file, which has this name: NaN for what is unknown."""
    table = next(one for one in (*COUNT_TABLES, *CHANGE_TABLES) if one.name == name)
    found = [row for record in records for row in table.rows_of(record)]
    rows = [{name: math.nan if value is None else value for name, value in row.items()} for row in found]
    columns = list(filled_columns(table.columns, rows, optional=table.optional))
    frame: pd.DataFrame = optional("pandas", "notebook", "to_dataframe()").DataFrame(rows, columns=columns)
    return frame

"""The one machine: items → records, tables and ``run.json`` in a folder, side by side, resumed where a run stopped.

The engine knows files, processes and the folder. A `Kind` knows how one item becomes one record: a scan is counted, the
scans of a patient are compared.
"""

from __future__ import annotations

import os
import stat
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from operator import not_
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, NamedTuple

from lesioncount.cohort.courses import Course
from lesioncount.cohort.item import FileFacts, FileStates, ScanFiles, check_states, file_states
from lesioncount.errors import LesionCountError, MapFileError, WorkerDiedError
from lesioncount.files.formats import check_map
from lesioncount.files.hashed import hashes_of_files_read
from lesioncount.files.remote_path import RemotePath
from lesioncount.files.zarr_listing import listed_once
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.tables import write_tsv
from lesioncount.outputs.output import Keep, Output
from lesioncount.results.earlier import earlier_run, names_before
from lesioncount.results.history import History
from lesioncount.results.record import Entry, Record, read_record
from lesioncount.results.record_files import make_shards, record_in, records_in
from lesioncount.results.recorded import Recorded
from lesioncount.results.results import Results
from lesioncount.results.run_file import RUN_FILE, Run, Status
from lesioncount.results.settings import MapSettings
from lesioncount.results.tables import RunTable
from lesioncount.runs.file_counts import error_in_words
from lesioncount.runs.workers import CLUSTER_TIMEOUT, Watched, check_reachable, connected, results_of

# Lots are made small enough for so many: nobody knows how many a cluster has, or will have.
_WORKERS_OF_CLUSTER = 64

# A lot ends at so many items, or at so many bytes of maps: it takes a fraction of a second, even where maps are
# compressed well. To hand over a task takes a millisecond, and to wait for the disk several.
_MOST_ITEMS, _MOST_BYTES = 32, 1 << 18

# So many lots for each process, at least: all are busy to the end, and few items are not held back by each other.
_LOTS_PER_JOB = 8


# What is worked on: a scan, or the scans of a patient.
AnyItem = ScanFiles | Course


class Kind(ABC):
    """What one command does with one item, and what it calls its files. Other processes get it by pickle."""

    command: ClassVar[str]  # "count"
    done: ClassVar[str]  # "counted"
    tables: ClassVar[tuple[RunTable, ...]]  # all that there may be
    settings: MapSettings

    @property
    @abstractmethod
    def recorded(self) -> Recorded:
        """What is recorded of the settings."""

    def recorded_of(self, item: Any) -> Recorded:  # noqa: ARG002 - for kinds in which items differ
        """What is recorded of the settings with one item."""
        return self.recorded

    @abstractmethod
    def work(
        self, item: Any, files: Callable[[], list[FileFacts]], *, keep: Keep, jobs: int, client: Any
    ) -> tuple[Record, Any]:
        """The record of an item, and what was found: for the outputs of it, while maps are at hand.

        What is recorded of its files is asked for when they have been read: then most are hashed.
        """

    def likeness(self, done: Sequence[Entry]) -> dict[str, Any]:  # noqa: ARG002 - for kinds that can tell
        """Whether all that was done is like what a calibration was fitted on: fields of a `Run`, if it can be told."""
        return {}

    @abstractmethod
    def failed(self, item: Any, why: str, files: Sequence[FileFacts] = ()) -> Record:
        """The record of an item that could not be worked on."""

    def check(self, item: Any) -> None:
        """Raise what can be known to be wrong with the maps of an item before voxels are read."""
        for path in (path for scan in item.scans if not scan.tables for path in scan.maps):
            check_map(path, **self.settings.reading)

    def is_spread(self, item: Any, *, is_alone: bool) -> bool:  # noqa: ARG002 - for kinds that can
        """Whether all processes or workers together work on this one item."""
        return False


class WorkedLot(NamedTuple):
    """What is known of the items of a lot, and how many of them were not known before."""

    done: list[Entry]
    n_new: int


@dataclass(frozen=True)
class Engine:
    """A run of a kind in a folder.

    Attributes
    ----------
    kind : Kind
    out : OutputFolder
    jobs : int
        Number of processes.
    cluster : str, optional
        Address of a Dask scheduler that does the work instead.
    resume, overwrite : bool
        Go on with the run that is there, or replace it.
    progress : callable, optional
        Called with what is known of an item, the number of items done, and of all.
    outputs : tuple of Output
        All that there may be beside records and tables, wanted or not.
    cluster_timeout : float
        Seconds to wait for a cluster that has lost all its workers.
    """

    kind: Kind
    out: OutputFolder
    jobs: int = 1
    cluster: str | None = None
    resume: bool = False
    overwrite: bool = False
    progress: Callable[[Entry, int, int], None] | None = None
    outputs: tuple[Output, ...] = ()
    cluster_timeout: float = CLUSTER_TIMEOUT

    def earlier(self) -> Run | None:
        """The run that is in the folder; raise if it is in the way."""
        of_changes, may_be = self.kind.recorded.is_of_changes, self.resume or self.overwrite
        run = earlier_run(self.out, self.kind.command, of_changes=of_changes, may_be=may_be)
        self.out.take_list(RUN_FILE, {} if run is None else run.files)
        return run

    def run(self, items: Sequence[AnyItem], run: Run, before: Run | None) -> Results:
        """Work on items, and write everything.

        Parameters
        ----------
        items : sequence
        run : Run
            How it is done.
        before : Run or None
            What `earlier` gave.
        """
        maps = [(item.name, [scan.path for scan in item.scans]) for item in items]
        overwrite = self.overwrite or (before is not None and not self.resume)  # failures only need no permission
        known = names_before(self.out, maps, before, run, resume=self.resume, overwrite=overwrite)
        items = [replace(item, was_known=item.name in known) for item in items]
        for output in self._wanted:
            items = output.checked(items)
        self._check(items)
        if self.cluster is None:  # its workers may reach what this machine does not
            check_maps(self.kind, items)
        check_reachable(self.cluster)
        with self.out.alone(listed_in=RUN_FILE):
            began, listed, history = time.monotonic(), self.out.listed(), History(self.out)
            history.add_killed(before)
            # From here on the folder holds a run, and whose its names are, also if it is killed.
            self._write_run(run.with_items(waiting=items, files=listed))
            if overwrite:  # also if this run is stopped, a page shows what is no longer there
                self._withdraw(all_parts=True)
            make_shards(self.out, len(items))
            done: dict[str, Entry] = {}
            n_new, status = self._work_on_all(items, done)
            run = run.with_status(status)
            ordered = tuple(done[item.name] for item in items if item.name in done)
            run = run.with_likeness(**self.kind.likeness(ordered))
            results = Results(self.out.path, run, ordered)
            is_changed = bool(n_new) or not _is_as_before(run, [one.name for one in ordered], before)
            is_new = is_changed or not self._are_there(results, listed)
            written = self._write_tables(results) if is_new else ()
            if is_changed:
                self._withdraw()  # whoever wants a page writes it next
            for output in self.outputs:
                output.finish(self.out, results, written)
            if overwrite and not self.resume and status == "finished":
                self._remove_stale(items)
            seconds, listed = time.monotonic() - began, self.out.listed()
            stems = {table.name.rpartition(".")[0] for table in self.kind.tables}  # in whatever format
            tables = {name: sha256 for name, sha256 in listed.items() if name.rpartition(".")[0] in stems}
            history.add(run, {one.name: one.hashes for one in ordered}, tables, seconds=seconds)
            waiting = [item for item in items if item.name not in done]
            self._write_run(run.with_items(ordered, waiting, seconds=seconds, files=listed))
        if status == "finished":
            results.check_seen()
        return results

    def _write_run(self, run: Run) -> None:
        self.out.write_text(RUN_FILE, run.to_json())
        self.out.take_list(RUN_FILE, run.files)

    def _check(self, items: Sequence[AnyItem]) -> None:
        """Raise if something would be replaced that is not ours, or was changed since."""
        self.out.check(table.name for table in self.kind.tables)
        self.out.check(name for output in self._wanted for name in output.of_run)
        self.out.check(record_in(self.out.path, item.name) for item in items if not item.was_known)
        if not self.resume:  # a label map that need not be painted again may have been corrected
            self.out.check(self._names(items))

    @property
    def _wanted(self) -> list[Output]:
        return [output for output in self.outputs if output.is_wanted]

    def _names(self, items: Sequence[AnyItem]) -> Iterator[str]:
        """All files that outputs may write of items."""
        return (name for output in self._wanted for item in items for name in output.names(item))

    def _withdraw(self, *, all_parts: bool = False) -> None:
        """Remove what shows results that are no longer so."""
        for output in self.outputs:
            output.withdraw(self.out, all_parts=all_parts)

    def _work_on_all(self, items: Sequence[AnyItem], done: dict[str, Entry]) -> tuple[int, Status]:
        """Work on all items; give how many were not known before, and whether somebody has stopped it."""
        n_new = 0
        try:
            with closing(self._lots(items)) as lots:
                for lot in lots:
                    if lot.n_new and not n_new:
                        self._withdraw()
                    n_new += lot.n_new
                    for one in lot.done:
                        done[one.name] = one
                        if self.progress is not None:
                            self.progress(one, len(done), len(items))
        except KeyboardInterrupt:
            self._add_recorded(items, done)
            return len(done), "interrupted"
        return n_new, "finished"

    def _add_recorded(self, items: Sequence[AnyItem], done: dict[str, Entry]) -> None:
        """Add items that were not known before, whose record is there although their lot was not finished."""
        for item in items:
            if item.name not in done and not item.was_known:
                recorded = done_before(item, self.kind, self.out.path, self.outputs)
                if recorded is not None:
                    done[item.name] = recorded

    def _lots(self, items: Sequence[AnyItem]) -> Generator[WorkedLot]:
        """Work on lots; on those of a lot that failed as a whole once more, each alone: one of them is to blame.

        Items that all work at together come last.
        """
        work = partial(work_on_lot, kind=self.kind, out=self.out.path, outputs=self.outputs, resume=self.resume)
        spread = [self.kind.is_spread(item, is_alone=len(items) == 1) for item in items]
        single = list(compress(items, map(not_, spread)))
        alone: list[tuple[AnyItem, ...]] = []
        jobs = self.jobs if self.cluster is None else _WORKERS_OF_CLUSTER
        for lot, worked in self._handed_out(list(lots_of(single, jobs=jobs)), work):
            if worked is None:
                alone += [(item,) for item in lot]
            else:
                yield worked
        yield from (one for _, one in self._handed_out(alone, work) if one is not None)
        volumes = list(compress(items, spread))
        try:
            with nullcontext() if self.cluster is None or not volumes else connected(self.cluster) as client:
                watched = None if client is None else Watched(client, self.cluster_timeout)
                for item in volumes:
                    yield work((item,), jobs=self.jobs, client=watched)
        except MapFileError as error:  # the cluster was there when the run began
            yield self._lost(volumes, str(error))

    def _handed_out(
        self, lots: Sequence[tuple[AnyItem, ...]], work: Callable[..., WorkedLot]
    ) -> Iterator[tuple[tuple[AnyItem, ...], WorkedLot | None]]:
        """Lots and what became of them, as they finish; None of several items that failed together."""
        cluster = self.cluster if lots else None
        for place, future in results_of(
            work, lots, jobs=self.jobs, cluster=cluster, cluster_timeout=self.cluster_timeout
        ):
            lot = lots[place]
            try:
                yield lot, future.result()
            except Exception as error:  # noqa: BLE001 - a cluster has errors of its own: a worker killed again and again
                why = self._why_failed(error)
                # Where the cluster is to blame, no item is, and there is nobody to try them alone.
                is_over = len(lot) == 1 or isinstance(error, CancelledError)
                yield lot, self._lost(lot, why) if is_over else None

    def _lost(self, items: Sequence[AnyItem], why: str) -> WorkedLot:
        return WorkedLot([self.kind.failed(item, why).summary for item in items], len(items))

    def _why_failed(self, error: Exception) -> str:
        """What to say of work that failed outside of our hands."""
        if isinstance(error, WorkerDiedError):
            return f"the process that {self.kind.done} it died, possibly out of memory"
        if isinstance(error, CancelledError):
            return f"the cluster was lost before it was {self.kind.done}: --resume continues the run"
        return f"{type(error).__name__}: {error}"

    def _are_there(self, results: Results, listed: Iterable[str]) -> bool:
        """Whether all tables that a run has are among the files that are there and as we wrote them."""
        return {table.name for table in self.kind.tables if table.is_written(results)} <= set(listed)

    def _write_tables(self, results: Results) -> list[str]:
        """Write the tables of a run, and give their names; remove those of an earlier one that it does not have."""
        written = []
        for table in self.kind.tables:
            if not table.is_written(results):
                self.out.remove(table.name)
                continue
            written.append(table.name)
            with (
                self.out.replacing(table.name) as temporary,
                temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file,
            ):
                write_tsv(file, table.columns, table.rows(results), optional=table.optional)
        return written

    def _remove_stale(self, items: Sequence[AnyItem]) -> None:
        """Remove what an earlier run has left and this one has not made again."""
        names = {item.name for item in items}
        records = {PurePosixPath(one).stem: one for one in records_in(self.out.path) if one != RUN_FILE}
        of_changes = self.kind.recorded.is_of_changes
        gone = [
            name
            for name in records
            if name not in names and read_record(self.out.path, name, of_changes=of_changes) is not None
        ]
        for name in gone:
            self.out.remove(records[name])
        made = set(self._names(items))
        for output in self.outputs:
            output.remove_stale(self.out, made)


def check_maps(kind: Kind, items: Sequence[AnyItem]) -> None:
    """Raise the error that the maps of all items have in common, if they do; looks no further than it must.

    Maps that live elsewhere are left to those who read them.
    """
    first: LesionCountError | None = None
    for item in items if len(items) > 1 else ():
        if any(scan.problem or scan.tables or isinstance(scan.path, RemotePath) for scan in item.scans):
            return
        try:
            kind.check(item)
        except LesionCountError as error:
            if first is not None and _in_general(error, item) != _in_general(first, items[0]):
                return
            first = first or error
        else:
            return
    if first is not None:
        raise MapFileError(f"{first} It is the same for all {len(items)}: nothing was written.")


def _in_general(error: Exception, item: AnyItem) -> str:
    """What an error says, without the names of the maps of an item."""
    text = str(error)
    for path in (path for scan in item.scans for path in scan.maps):
        text = text.replace(str(path), "…").replace(path.name, "…")
    return text


def _is_as_before(run: Run, names: list[str], before: Run | None) -> bool:
    """Whether an earlier run of this version has come to the same items: those are known to have the same records."""
    return (
        before is not None
        and before.status == "finished"
        and before.versions == run.versions
        and list(before.known) == names
    )


def lots_of(items: Sequence[AnyItem], *, jobs: int) -> Iterator[tuple[AnyItem, ...]]:
    """Items in their order, in lots for so many processes; large ones, and a few, are each a lot of its own."""
    most = max(1, min(_MOST_ITEMS, len(items) // (_LOTS_PER_JOB * jobs)))
    lot: list[AnyItem] = []
    n_bytes = 0
    for item in items:
        size = sum(_size(scan) for scan in item.scans)
        if lot and (len(lot) == most or n_bytes + size > _MOST_BYTES):
            yield tuple(lot)
            lot, n_bytes = [], 0
        lot.append(item)
        n_bytes += size
    if lot:
        yield tuple(lot)


def _size(scan: ScanFiles) -> int:
    """Bytes of a map or a table; of a folder, and of what cannot be looked at, more than a lot takes."""
    if scan.tables:
        return sum(column.nbytes for table in scan.tables for column in table.values)
    try:
        status = os.stat(scan.path)  # noqa: PTH116 - an address, too, is no file
        return status.st_size if stat.S_ISREG(status.st_mode) else _MOST_BYTES + 1
    except (OSError, ValueError):
        return _MOST_BYTES + 1


def work_on_lot(
    lot: Sequence[AnyItem],
    kind: Kind,
    out: Path,
    outputs: tuple[Output, ...] = (),
    *,
    resume: bool = False,
    jobs: int = 1,
    client: Any = None,
) -> WorkedLot:
    """Work on the items of a lot, but for those that need not be worked on again.

    Of a volume, boxes may be counted by several processes, or by the cluster of a Dask client.
    """
    folder = OutputFolder(out)
    known = [done_before(item, kind, out, outputs) if resume else None for item in lot]
    is_announced = len(lot) > 1
    if is_announced:  # nobody waits for the disk after each record
        folder.announce(record_in(out, item.name) for item, one in zip(lot, known, strict=True) if one is None)
    done = [
        _work_on(item, kind, folder, outputs, is_announced=is_announced, jobs=jobs, client=client)
        if one is None
        else one
        for item, one in zip(lot, known, strict=True)
    ]
    return WorkedLot(done, known.count(None))


def done_before(item: AnyItem, kind: Kind, out: Path, outputs: Sequence[Output] = ()) -> Entry | None:
    """What is known of an item whose record is there, without error, and of the same files and settings; else None.

    All outputs that are wanted must be there, too.
    """
    if any(scan.problem is not None for scan in item.scans):
        return None
    record = read_record(out, item.name, of_changes=kind.recorded.is_of_changes, unchanged=True)
    if (
        record is None
        or not record.is_ok
        or record.settings is None
        or not record.settings.counts_as(kind.recorded_of(item))
    ):
        return None
    if not all(_is_there(out / name) for name in _expected(outputs, item, record)):
        return None
    before = record.all_files()
    try:
        now = [FileFacts.of(scan) for scan in item.scans]
    except OSError:
        return None
    is_same = len(now) == len(before) and all(
        a.is_same_content(b) and a.is_same_scan(b) for a, b in zip(before, now, strict=True)
    )
    return record.summary if is_same else None


def _expected(outputs: Iterable[Output], item: AnyItem, record: Record) -> Iterator[str]:
    """The files of an item that must be there beside its record."""
    return (name for output in outputs if output.is_wanted for name in output.expected(item, record))


def _is_there(path: Path) -> bool:
    """Whether a file is there, and not left empty by a power cut."""
    return path.exists() and path.stat().st_size > 0


@listed_once()
def _work_on(
    item: AnyItem,
    kind: Kind,
    folder: OutputFolder,
    outputs: Sequence[Output],
    *,
    is_announced: bool,
    jobs: int,
    client: Any,
) -> Entry:
    """Work on an item and write its record; what goes wrong with it is part of the record, not an exception."""
    record, found, is_ok = None, None, False
    wanted = [output for output in outputs if output.is_wanted]
    with hashes_of_files_read() as hashes:
        states: list[FileStates] = []
        files = partial(_facts_of, item, hashes, states)
        try:
            states += [file_states(scan) for scan in item.scans]
            record, found = kind.work(item, files, keep=Keep.for_all(wanted), jobs=jobs, client=client)
            _check_unchanged(item, states)
            for output in wanted:
                output.write(folder, item, record, found)
            is_ok = True
        except Exception as error:  # noqa: BLE001 - whatever one file does to a reader, the others are worked on
            record = kind.failed(item, error_in_words(error), _facts_if_readable(files))
    if item.was_known or not is_ok:
        made = set(_expected(wanted, item, record)) if is_ok else set()
        for output in outputs:
            output.remove(folder, item, but=made)
    write = folder.write_announced if is_announced else folder.write_text
    try:
        write(record_in(folder.path, item.name), record.to_json(), though_changed=item.was_known)
    except (MapFileError, OSError) as error:
        return (kind.failed(item, error_in_words(error), _facts_if_readable(files)) if is_ok else record).summary
    for output in wanted if is_ok else ():
        output.show(folder, item, record, found)
    return record.summary


def _facts_of(item: AnyItem, hashes: Mapping[Path, str], states: Sequence[FileStates]) -> list[FileFacts]:
    """What is recorded of the files of an item; those that were read to be counted are not read again."""
    try:
        return [FileFacts.of(scan, hashes) for scan in item.scans]
    except OSError:
        _check_unchanged(item, states)  # that says more than that a file is gone
        raise


def _check_unchanged(item: AnyItem, states: Sequence[FileStates]) -> None:
    for scan, state in zip(item.scans, states, strict=False):  # there are none if they could not be looked at
        check_states(scan, state)


def _facts_if_readable(files: Callable[[], list[FileFacts]]) -> list[FileFacts]:
    """The same of an item that failed; nothing if that is because its files cannot be read."""
    try:
        return files()
    except (LesionCountError, OSError):
        return []

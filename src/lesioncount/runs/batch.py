"""Many maps → one folder of results: counted side by side, resumed where a run stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from itertools import compress
from operator import not_
from pathlib import Path, PurePosixPath

from lesioncount.cohort.item import ScanFiles
from lesioncount.cohort.names import check_case
from lesioncount.cohort.scans import Selection
from lesioncount.errors import WorkerDiedError
from lesioncount.files.formats import is_large_volume, map_ending
from lesioncount.files.remote_path import to_path
from lesioncount.folder.output import OutputFolder
from lesioncount.outputs.bids import DATASET_FILES, check_places, scan_files_in, write_dataset
from lesioncount.outputs.dicom.writing import with_series
from lesioncount.outputs.label_maps import REPORT, output_names, remove_outputs
from lesioncount.outputs.parquet import check_can_write_parquet
from lesioncount.results.answers import check_questions
from lesioncount.results.earlier import RUN_FILE, earlier_run, names_before
from lesioncount.results.history import History
from lesioncount.results.record import ScanSummary, read_record
from lesioncount.results.record_files import make_shards, record_in, records_in
from lesioncount.results.region_settings import region_settings
from lesioncount.results.results import RunResults
from lesioncount.results.run_file import Run, Status, find_run
from lesioncount.results.settings import Settings
from lesioncount.runs.lots import CountedLot, Lot, count_lot, lots_of
from lesioncount.runs.scan_counting import Show, failed
from lesioncount.runs.table_files import are_there, table_names, write_tables
from lesioncount.runs.workers import check_reachable, connected, few_collections, results_of

Progress = Callable[[ScanSummary, int, int], None]

# Lots are made small enough for so many: nobody knows how many a cluster has, or will have.
_WORKERS_OF_CLUSTER = 64

# The page that shows a run, and the folder of the rows of its table.
PAGE = f"{REPORT}.html"
TABLE = f"{REPORT}/table"


@few_collections()
def count_batch(  # noqa: PLR0913 - as many as a run has options
    inputs: Sequence[str | Path],
    out: str | Path,
    /,
    *,
    settings: Settings | None = None,
    mask: str | Path | None = None,
    regions: str | Path | None = None,
    selection: Selection | None = None,
    members: bool = False,
    jobs: int = 1,
    cluster: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    show: Show | None = None,
    parquet: bool = False,
    command: str | None = None,
) -> RunResults:
    """Count all maps of some files, folders or globs, and write tables and records into a folder.

    Parameters
    ----------
    inputs : sequence of path
        Files, folders (searched with everything below them) or glob patterns. With ``members``, two or more folders
        that hold maps of the same scans, in the same places or with the same BIDS entities.
    out : path
        Folder of the results; made if it is not there.
    settings : Settings, optional
        Protocol, channel, scale, logits, calibration, and whether to write label maps.
    mask : path, optional
        A mask for all maps; a folder with a mask for each, of the same name or the same BIDS entities; or a pattern
        such as ``masks/{participant}_{session}.nii.gz``.
    regions : path, optional
        In the same way, a label map of regions to count in: for all maps, one for each, or one for each patient. What
        the labels are called is in ``settings``.
    selection : Selection, optional
        Which files in folders are maps, where names of scans begin, and how participants and masks are found.
    members : bool, default False
        Whether each input is one member of an ensemble: the count of a scan is the mixture of its members' counts.
    jobs : int, default 1
        Number of processes.
    cluster : str, optional
        Address of a Dask scheduler that does the work instead. Its workers must see the same files.
    resume : bool, default False
        Keep what is there and still right: same files, no error. With other settings, it is refused.
    overwrite : bool, default False
        Do everything again, and replace what is there.
    progress : callable, optional
        Called with the summary of a scan, the number of scans done, and the number of all.
    show : callable, optional
        Called, in the process that counted it, with the folder, the files, the record and the count of each scan:
        `lesioncount.report.SectionWriter` makes pictures for the report while the map is at hand.
    parquet : bool, default False
        Write each table as Parquet, too.
    command : str, optional
        What was typed, for the history of runs (``runs.jsonl``).
    """
    if parquet:
        check_can_write_parquet()
    settings, folder = Settings() if settings is None else settings, OutputFolder(out)
    settings = replace(settings, regions=region_settings(regions, settings.regions, ()))
    before = earlier_run(folder, find_run, "count", may_be=resume or overwrite)
    scans = (selection or Selection()).find(
        inputs,
        folder.path,
        mask=None if mask is None else to_path(mask),
        regions=None if regions is None else to_path(regions),
        members=members,
        known=before.known if before is not None and resume else None,
    )
    check_case([scan.name for scan in scans], folder.path)
    settings.check(members=members)
    check_questions(settings.questions, settings.regions)
    scans = with_series(scans, settings.dicom)
    if settings.bids:
        check_places(scans)
    given = tuple(compress(("mask", "members"), (mask is not None, members)))
    run = Run(settings.recorded, jobs, cluster, command=command, given=given)
    maps = [(scan.name, (scan.path,)) for scan in scans]
    known = names_before(folder, maps, before, run, resume=resume, overwrite=overwrite)
    scans = [replace(scan, was_counted=scan.name in known) for scan in scans]
    _check(folder, scans, settings, resume=resume, parquet=parquet)
    check_reachable(cluster)
    with folder.alone(listed_in=RUN_FILE):
        began, listed, history = time.monotonic(), folder.listed(), History(folder)
        history.add_killed(before)
        # From here on the folder holds a run, and whose its names are, also if it is killed.
        folder.write_text(RUN_FILE, run.to_json(waiting=scans, files=listed))
        make_shards(folder, len(scans))
        count = partial(count_lot, settings=settings, out=folder.path, show=show, resume=resume)
        done: dict[str, ScanSummary] = {}
        n_new, status = _count_into(done, folder, scans, count, settings.level, run, progress)
        results = RunResults(folder.path, replace(run, status=status), tuple(_in_order(done, scans)))
        is_changed = bool(n_new) or not _is_as_before(results, before)
        if is_changed or not are_there(results, listed, parquet=parquet):
            write_tables(folder, results, parquet=parquet)
        if is_changed:
            folder.remove(PAGE)  # it shows what is no longer so; whoever wants a report writes it next
        if settings.bids:
            write_dataset(folder, results)
        if overwrite and not (resume or results.interrupted):
            _remove_stale(folder, results, {name for scan in scans for name in output_names(scan, settings.recorded)})
        _finish(folder, results, [scan for scan in scans if scan.name not in done], history, began, parquet=parquet)
    return results


def _count_into(
    done: dict[str, ScanSummary],
    folder: OutputFolder,
    scans: Sequence[ScanFiles],
    count: Callable[..., CountedLot],
    level: int | None,
    run: Run,
    progress: Progress | None,
) -> tuple[int, Status]:
    """Count all scans; give how many were not known before, and whether somebody has stopped it."""
    n_new = 0
    try:
        with closing(_count_all(scans, count, level=level, jobs=run.jobs, cluster=run.cluster)) as counted:
            for lot in counted:
                if lot.n_new and not n_new:
                    folder.remove(PAGE)
                n_new += lot.n_new
                for summary in lot.summaries:
                    done[summary.name] = summary
                    if progress is not None:
                        progress(summary, len(done), len(scans))
    except KeyboardInterrupt:
        return len(done), "interrupted"
    return n_new, "finished"


def _in_order(done: Mapping[str, ScanSummary], scans: Sequence[ScanFiles]) -> Iterator[ScanSummary]:
    return (done[scan.name] for scan in scans if scan.name in done)


def _finish(
    folder: OutputFolder,
    results: RunResults,
    waiting: Sequence[ScanFiles],
    history: History,
    began: float,
    *,
    parquet: bool,
) -> None:
    """Write what the run has done: a line of history, and all in ``run.json``."""
    seconds, listed = time.monotonic() - began, folder.listed()
    inputs = {scan.name: [] if scan.files is None else [scan.files.hashes] for scan in results.scans}
    tables = {name: listed[name] for name in table_names(parquet=parquet) if name in listed}
    history.add(results.run, inputs, tables, seconds=seconds)
    folder.write_text(RUN_FILE, results.run.to_json(results.scans, waiting, seconds=seconds, files=listed))


def _count_all(
    scans: Sequence[ScanFiles],
    count: Callable[..., CountedLot],
    *,
    level: int | None,
    jobs: int,
    cluster: str | None,
) -> Generator[CountedLot]:
    """Count scans, in lots; those of a lot that failed as a whole once more, each alone: one of them is to blame.

    Volumes that all work at together come last.
    """
    spread = [is_spread(scan, level, is_alone=len(scans) == 1) for scan in scans]
    volumes, scans = list(compress(scans, spread)), list(compress(scans, map(not_, spread)))
    lots = list(lots_of(scans, jobs=jobs if cluster is None else _WORKERS_OF_CLUSTER))
    alone: list[Lot] = []
    for lot, counted in _counted(lots, count, jobs=jobs, cluster=cluster):
        if counted is None:
            alone += [(scan,) for scan in lot]
        else:
            yield counted
    yield from (one for _, one in _counted(alone, count, jobs=jobs, cluster=cluster) if one is not None)
    with nullcontext() if cluster is None or not volumes else connected(cluster) as client:
        for scan in volumes:
            yield count((scan,), jobs=jobs, client=client)


def _counted(
    lots: Sequence[Lot], count: Callable[[Lot], CountedLot], *, jobs: int, cluster: str | None
) -> Iterator[tuple[Lot, CountedLot | None]]:
    """Lots and what was counted as they come; None of several scans that failed together."""
    for place, future in results_of(count, lots, jobs=jobs, cluster=cluster if lots else None):
        lot = lots[place]
        try:
            yield lot, future.result()
        except Exception as error:  # noqa: BLE001 - a cluster has errors of its own: a worker killed again and again
            why = why_failed(error)
            yield lot, None if len(lot) > 1 else CountedLot([failed(lot[0], why)], 1)


def is_spread(scan: ScanFiles, level: int | None = None, *, is_alone: bool) -> bool:
    """Whether one scan is counted by all processes or workers together: large volumes, and a volume that is alone."""
    return is_large_volume(scan.path, level) or (is_alone and map_ending(scan.path) == ".zarr")


def why_failed(error: Exception, *, done: str = "counted") -> str:
    """What to say of work that failed outside of our hands."""
    if isinstance(error, WorkerDiedError):
        return f"the process that {done} it died, possibly out of memory"
    if isinstance(error, CancelledError):
        return f"the cluster was lost before it was {done}: --resume continues the run"
    return f"{type(error).__name__}: {error}"


def _is_as_before(results: RunResults, before: Run | None) -> bool:
    """Whether an earlier run of this version has come to the same scans: those are known to have the same records."""
    return (
        before is not None
        and before.status == "finished"
        and before.versions == results.run.versions
        and [scan.name for scan in before.scans] == [scan.name for scan in results.scans]
    )


def _check(
    folder: OutputFolder, scans: Sequence[ScanFiles], settings: Settings, *, resume: bool, parquet: bool
) -> None:
    """Raise if something would be replaced that is not ours, or was changed since."""
    folder.check([RUN_FILE, *table_names(parquet=parquet), *(DATASET_FILES if settings.bids else ())])
    folder.check(record_in(folder.path, scan.name) for scan in scans if not scan.was_counted)
    if not resume:  # a label map that need not be painted again may have been corrected
        folder.check(name for scan in scans for name in output_names(scan, settings.recorded))


def _remove_stale(folder: OutputFolder, results: RunResults, made: set[str]) -> None:
    """Remove what an earlier run has left and this one has not made again."""
    names = {scan.name for scan in results.scans}
    for record in records_in(folder.path):
        name = PurePosixPath(record).stem
        if record != RUN_FILE and name not in names and read_record(folder.path, name) is not None:
            folder.remove(record)
            remove_outputs(folder, name)
    for name in scan_files_in(folder) - made:
        folder.remove(name)
    sections = [name for name in _report_files(folder.path) if PurePosixPath(name).stem not in names]
    for name in (PAGE, *sections, *(() if results.run.counted_with.bids else DATASET_FILES)):
        folder.remove(name)


def _report_files(out: Path) -> Iterator[str]:
    """All files of a folder that may be sections of its report, or rows of its table."""
    for pattern in (f"{REPORT}/*.js", f"{REPORT}/*/*.js"):
        for path in out.glob(pattern):
            yield path.relative_to(out).as_posix()

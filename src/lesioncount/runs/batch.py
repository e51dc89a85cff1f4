"""Many maps → one folder of results: counted side by side, resumed where a run stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import compress
from operator import not_
from pathlib import Path, PurePosixPath

from lesioncount.errors import MapFileError, WorkerDiedError
from lesioncount.files.formats import is_large_volume, map_ending
from lesioncount.files.ome_labels import last_ome_file
from lesioncount.files.ome_zarr import VERSIONS
from lesioncount.files.output import OutputFolder
from lesioncount.files.remote_path import to_path
from lesioncount.runs.answers import check_questions
from lesioncount.runs.bids_dataset import DATASET_FILES, write_dataset
from lesioncount.runs.bids_output import check_places, scan_files_in
from lesioncount.runs.names import check_case
from lesioncount.runs.parquet import check_can_write_parquet
from lesioncount.runs.record_files import make_shards, record_in, records_in
from lesioncount.runs.records import ScanSummary, read_record
from lesioncount.runs.region_settings import region_settings
from lesioncount.runs.results import RunResults
from lesioncount.runs.run_file import RUN_FILE, Run, find_run, is_of_other_kind
from lesioncount.runs.run_tables import are_there, table_names, write_tables
from lesioncount.runs.scan_counting import Show, failed
from lesioncount.runs.scan_files import FileFacts, ScanFiles
from lesioncount.runs.scan_lots import CountedLot, Lot, count_lot, lots_of
from lesioncount.runs.scan_outputs import (
    label_volume_file,
    ome_label_name,
    output_names,
    own_names,
    remove_label_volume,
    remove_ome_labels,
)
from lesioncount.runs.scan_series import with_series
from lesioncount.runs.scans import Selection
from lesioncount.runs.settings import Settings
from lesioncount.runs.workers import connected, few_collections, results_of

Progress = Callable[[ScanSummary, int, int], None]

# Lots are made small enough for so many: nobody knows how many a cluster has, or will have.
_WORKERS_OF_CLUSTER = 64

# The page that shows a run, the folder of its parts, and that of the rows of its table.
REPORT = "report"
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
        Keep what is there and still right: same files, same settings, no error.
    overwrite : bool, default False
        Do everything again, and replace what is there.
    progress : callable, optional
        Called with the summary of a scan, the number of scans done, and the number of all.
    show : callable, optional
        Called, in the process that counted it, with the folder, the files, the record and the count of each scan:
        `lesioncount.report.SectionWriter` makes pictures for the report while the map is at hand.
    parquet : bool, default False
        Write each table as Parquet, too.
    """
    if parquet:
        check_can_write_parquet()
    settings, folder = Settings() if settings is None else settings, OutputFolder(out)
    settings = replace(settings, regions=region_settings(regions, settings.regions, ()))
    known = _known(folder, resume=resume or overwrite)
    scans = (selection or Selection()).find(
        inputs,
        folder.path,
        mask=None if mask is None else to_path(mask),
        regions=None if regions is None else to_path(regions),
        members=members,
        known=known if resume else None,
    )
    check_case([scan.name for scan in scans], folder.path)
    settings.check(members=members)
    check_questions(settings.questions, settings.regions)
    scans = with_series(scans, settings.dicom)
    if settings.bids:
        check_places(scans)
    scans = [replace(scan, was_counted=scan.name in known) for scan in scans]
    _check(folder, scans, settings, resume=resume, parquet=parquet)
    with folder.alone(listed_in=RUN_FILE):
        began, run = time.monotonic(), Run(settings.recorded, jobs, cluster)
        before, listed = find_run(folder.path), folder.listed()
        # From here on the folder holds a run, also if it is killed.
        folder.write_text(RUN_FILE, run.to_json(files=listed))
        done: dict[str, ScanSummary] = {}

        def tell(summary: ScanSummary) -> None:
            done[summary.name] = summary
            if progress is not None:
                progress(summary, len(done), len(scans))

        try:
            make_shards(folder, len(scans))
            count = partial(count_lot, settings=settings, out=folder.path, show=show, resume=resume)
            n_new = _count_all(scans, count, level=settings.level, jobs=jobs, cluster=cluster, tell=tell)
            run = replace(run, status="finished")
        except KeyboardInterrupt:
            run, n_new = replace(run, status="interrupted"), len(done)
        results = RunResults(folder.path, run, tuple(done[scan.name] for scan in scans if scan.name in done))
        if n_new or not _is_as_before(results, before) or not are_there(results, listed, parquet=parquet):
            write_tables(folder, results, parquet=parquet)
        if settings.bids:
            write_dataset(folder, results)
        if overwrite and not (resume or results.interrupted):
            _remove_stale(folder, results, {name for scan in scans for name in output_names(scan, settings.recorded)})
        seconds = time.monotonic() - began
        folder.write_text(RUN_FILE, run.to_json(results.scans, seconds=seconds, files=folder.listed()))
    return results


def _count_all(
    scans: Sequence[ScanFiles],
    count: Callable[..., CountedLot],
    *,
    level: int | None,
    jobs: int,
    cluster: str | None,
    tell: Callable[[ScanSummary], None],
) -> int:
    """Count scans, in lots; those of a lot that failed as a whole once more, each alone: one of them is to blame.

    Volumes that all work at together come last. Returns how many were not known before.
    """
    spread = [is_spread(scan, level, is_alone=len(scans) == 1) for scan in scans]
    volumes, scans = list(compress(scans, spread)), list(compress(scans, map(not_, spread)))
    lots = list(lots_of(scans, jobs=jobs if cluster is None else _WORKERS_OF_CLUSTER))
    n_new, alone = 0, list[Lot]()
    for lot, counted in _counted(lots, count, jobs=jobs, cluster=cluster):
        if counted is None:
            alone += [(scan,) for scan in lot]
        else:
            n_new += _told(counted, tell)
    for _, counted in _counted(alone, count, jobs=jobs, cluster=cluster):
        if counted is not None:
            n_new += _told(counted, tell)
    with nullcontext() if cluster is None or not volumes else connected(cluster) as client:
        for scan in volumes:
            n_new += _told(count((scan,), jobs=jobs, client=client), tell)
    return n_new


def _told(counted: CountedLot, tell: Callable[[ScanSummary], None]) -> int:
    for summary in counted.summaries:
        tell(summary)
    return counted.n_new


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
            yield lot, None if len(lot) > 1 else CountedLot([failed(lot[0], why, FileFacts(str(lot[0].path)))], 1)


def is_spread(scan: ScanFiles, level: int | None = None, *, is_alone: bool) -> bool:
    """Whether one scan is counted by all processes or workers together: large volumes, and a volume that is alone."""
    return is_large_volume(scan.path, level) or (is_alone and map_ending(scan.path) == ".zarr")


def why_failed(error: Exception, *, done: str = "counted") -> str:
    """What to say of work that failed outside of our hands."""
    if isinstance(error, WorkerDiedError):
        return f"the process that {done} it died, possibly for want of memory"
    if isinstance(error, CancelledError):
        return "the cluster was lost before it was counted: --resume continues the run"
    return f"{type(error).__name__}: {error}"


def _is_as_before(results: RunResults, before: Run | None) -> bool:
    """Whether an earlier run of this version has come to the same scans: those are known to have the same records."""
    return (
        before is not None
        and before.status == "finished"
        and before.versions == results.run.versions
        and [scan.name for scan in before.scans] == [scan.name for scan in results.scans]
    )


def _known(folder: OutputFolder, *, resume: bool) -> dict[str, str | None]:
    """The scans of an earlier run in this folder and their paths; it may be there only if it goes on or is replaced."""
    if not folder.is_ours(RUN_FILE):
        return {}
    if is_of_other_kind(folder.path):
        raise MapFileError(f"{folder.path} holds other results, not those of lesioncount count. Choose another folder.")
    if not resume:
        raise MapFileError(
            f"{folder.path} holds the results of an earlier run. Choose another folder, continue that run (--resume), "
            "or replace its results (--overwrite)."
        )
    run = find_run(folder.path)
    return {} if run is None else {scan.name: scan.path for scan in run.scans}


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
            _remove_outputs(folder, name)
    for name in names:
        _remove_outputs(folder, name, but=made)
    for name in scan_files_in(folder) - made:
        folder.remove(name)
    sections = [name for name in _report_files(folder.path) if PurePosixPath(name).stem not in names]
    pages = [f"{REPORT}.html", *sections]
    for name in (*pages, *(() if results.run.counted_with.bids else DATASET_FILES)):
        folder.remove(name)


def _report_files(out: Path) -> Iterator[str]:
    """All files of a folder that may be sections of its report, or rows of its table."""
    for pattern in (f"{REPORT}/*.js", f"{REPORT}/*/*.js"):
        for path in out.glob(pattern):
            yield path.relative_to(out).as_posix()


def _remove_outputs(folder: OutputFolder, name: str, *, but: Collection[str] = ()) -> None:
    for one in own_names(name):
        if one not in but:
            folder.remove(one)
    if not any(f"{ome_label_name(name)}/{last_ome_file(version)}" in but for version in VERSIONS):
        remove_ome_labels(folder, name)
    if label_volume_file(name) not in but:
        remove_label_volume(folder, name)

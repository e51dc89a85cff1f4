"""Many maps → one folder of results: counted side by side, resumed where a run stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import CancelledError
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import compress
from operator import not_
from pathlib import Path
from typing import Any

from lesioncount.errors import MapFileError, WorkerDiedError
from lesioncount.files.formats import is_large_volume, map_ending
from lesioncount.files.output import OutputFolder
from lesioncount.files.remote_path import to_path
from lesioncount.runs.answers import ANSWER_COLUMNS, OPTIONAL_ANSWER_COLUMNS, check_questions
from lesioncount.runs.bids_dataset import DATASET_FILES, write_dataset
from lesioncount.runs.bids_output import check_places, scan_files_in
from lesioncount.runs.lesion_rows import LESION_COLUMNS, OPTIONAL_LESION_COLUMNS
from lesioncount.runs.names import check_case
from lesioncount.runs.records import ScanSummary, read_record, record_name
from lesioncount.runs.region_numbers import OPTIONAL_REGION_COLUMNS, REGION_COLUMNS
from lesioncount.runs.region_settings import region_settings
from lesioncount.runs.results import RunResults
from lesioncount.runs.run_file import RUN_FILE, Run, find_run, is_of_other_kind
from lesioncount.runs.scan_counting import Show, count_scan, counted_before, failed
from lesioncount.runs.scan_files import FileFacts, ScanFiles
from lesioncount.runs.scan_numbers import COUNT_COLUMNS, MEMBER_COLUMNS, OPTIONAL_COUNT_COLUMNS, WHOSE_COLUMNS
from lesioncount.runs.scan_outputs import (
    label_name,
    label_volume_file,
    output_names,
    own_names,
    remove_label_volume,
    remove_ome_labels,
)
from lesioncount.runs.scan_series import with_series
from lesioncount.runs.scans import Selection
from lesioncount.runs.settings import Settings
from lesioncount.runs.tables import filled_columns, to_tsv
from lesioncount.runs.workers import connected, results_of

Progress = Callable[[ScanSummary, int, int], None]

# What a run writes beside the records of its scans.
TABLES = ("counts.tsv", "lesions.tsv", "members.tsv", "regions.tsv", "answers.tsv")

# The page that shows a run, and the folder of its parts.
REPORT = "report"


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
    """
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
    _check(folder, scans, settings, resume=resume)
    with folder.alone(listed_in=RUN_FILE):
        began, run = time.monotonic(), Run(settings.recorded, jobs, cluster)
        # From here on the folder holds a run, also if it is killed.
        folder.write_text(RUN_FILE, run.to_json(files=folder.listed()))
        done: dict[str, ScanSummary] = {}

        def tell(summary: ScanSummary) -> None:
            done[summary.name] = summary
            if progress is not None:
                progress(summary, len(done), len(scans))

        try:
            count = partial(count_scan, settings=settings, out=folder.path, show=show)
            _count_all(scans, settings, folder.path, count, jobs=jobs, cluster=cluster, resume=resume, tell=tell)
            run = replace(run, status="finished")
        except KeyboardInterrupt:
            run = replace(run, status="interrupted")
        results = RunResults(folder.path, run, tuple(done[scan.name] for scan in scans if scan.name in done))
        _write_tables(folder, results)
        if settings.bids:
            write_dataset(folder, results)
        if overwrite and not (resume or results.interrupted):
            _remove_stale(folder, results, {name for scan in scans for name in output_names(scan, settings.recorded)})
        seconds = time.monotonic() - began
        folder.write_text(RUN_FILE, run.to_json(results.scans, seconds=seconds, files=folder.listed()))
    return results


def _count_all(
    scans: Sequence[ScanFiles],
    settings: Settings,
    out: Path,
    count: Callable[..., ScanSummary],
    *,
    jobs: int,
    cluster: str | None,
    resume: bool,
    tell: Callable[[ScanSummary], None],
) -> None:
    """Count scans, but for those that need not be counted again."""
    todo = []
    for scan in scans:
        before = counted_before(scan, settings, out) if resume else None
        if before is None:
            todo.append(scan)
        else:
            tell(before)
    spread = [is_spread(scan, settings.level, is_alone=len(todo) == 1) for scan in todo]
    volumes, todo = list(compress(todo, spread)), list(compress(todo, map(not_, spread)))
    for place, future in results_of(count, todo, jobs=jobs, cluster=cluster if todo else None):
        try:
            summary = future.result()
        except Exception as error:  # noqa: BLE001 - a cluster has errors of its own: a worker killed again and again
            summary = failed(todo[place], why_failed(error), FileFacts(str(todo[place].path)))
        tell(summary)
    with nullcontext() if cluster is None or not volumes else connected(cluster) as client:
        for scan in volumes:
            tell(count(scan, jobs=jobs, client=client))


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


def _check(folder: OutputFolder, scans: Sequence[ScanFiles], settings: Settings, *, resume: bool) -> None:
    """Raise if something would be replaced that is not ours, or was changed since."""
    folder.check([RUN_FILE, *TABLES, *(DATASET_FILES if settings.bids else ())])
    folder.check(record_name(scan.name) for scan in scans if not scan.was_counted)
    if not resume:  # a label map that need not be painted again may have been corrected
        folder.check(name for scan in scans for name in output_names(scan, settings.recorded))


def _remove_stale(folder: OutputFolder, results: RunResults, made: set[str]) -> None:
    """Remove what an earlier run has left and this one has not made again."""
    names = {scan.name for scan in results.scans}
    for path in folder.path.glob("*.json"):
        if path.name != RUN_FILE and path.stem not in names and read_record(folder.path, path.stem) is not None:
            folder.remove(path.name)
            _remove_outputs(folder, path.stem)
    for name in names:
        _remove_outputs(folder, name, but=made)
    for name in scan_files_in(folder) - made:
        folder.remove(name)
    sections = [f"{REPORT}/{path.name}" for path in (folder.path / REPORT).glob("*.js") if path.stem not in names]
    pages = [f"{REPORT}.html", *sections]
    for name in (*pages, *(() if results.run.counted_with.bids else DATASET_FILES)):
        folder.remove(name)


def _remove_outputs(folder: OutputFolder, name: str, *, but: Collection[str] = ()) -> None:
    for one in own_names(name):
        if one not in but:
            folder.remove(one)
    if label_name(name) not in but:
        remove_ome_labels(folder, name)
    if label_volume_file(name) not in but:
        remove_label_volume(folder, name)


def _write_tables(folder: OutputFolder, results: RunResults) -> None:
    counts = [scan.row() for scan in results.scans]
    columns = filled_columns(COUNT_COLUMNS, counts, optional=OPTIONAL_COUNT_COLUMNS)
    folder.write_text("counts.tsv", to_tsv(columns, counts))
    lesions = [
        {"scan": record.name, **record.summary.whose, **row.row()}
        for record in results.records()
        for row in record.lesions
    ]
    columns = ("scan", *WHOSE_COLUMNS, *LESION_COLUMNS[1:])
    columns = filled_columns(columns, lesions, optional=(*WHOSE_COLUMNS, *OPTIONAL_LESION_COLUMNS))
    folder.write_text("lesions.tsv", to_tsv(columns, lesions))
    members = [{"scan": one.name, **one.whose, **member.row()} for one in results.counted for member in one.members]
    _write_or_remove(folder, "members.tsv", MEMBER_COLUMNS, members, optional=WHOSE_COLUMNS)
    regions = [row for one in results.counted for row in one.region_rows()]
    _write_or_remove(folder, "regions.tsv", REGION_COLUMNS, regions, optional=OPTIONAL_REGION_COLUMNS)
    answers = [row for one in results.counted for row in one.answer_rows()]
    _write_or_remove(folder, "answers.tsv", ANSWER_COLUMNS, answers, optional=OPTIONAL_ANSWER_COLUMNS)


def _write_or_remove(
    folder: OutputFolder, name: str, columns: Sequence[str], rows: Sequence[dict[str, Any]], *, optional: Sequence[str]
) -> None:
    """Write a table that not all runs have; without rows, remove that of an earlier run."""
    if rows:
        folder.write_text(name, to_tsv(filled_columns(columns, rows, optional=optional), rows))
    else:
        folder.remove(name)

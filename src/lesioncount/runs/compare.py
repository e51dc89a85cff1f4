"""Maps of many patients at several times → one folder of results: what has changed in each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lesioncount.cohort.courses import Course, CourseSelection
from lesioncount.cohort.item import FileFacts
from lesioncount.cohort.names import check_case
from lesioncount.files.remote_path import to_path, without_secrets
from lesioncount.folder.output import OutputFolder
from lesioncount.outputs import outputs_of
from lesioncount.outputs.output import Keep
from lesioncount.outputs.page import Show
from lesioncount.protocol import CountingProtocol
from lesioncount.results.record import Entry, Record
from lesioncount.results.recorded import Recorded
from lesioncount.results.results import Results
from lesioncount.results.run_file import Run
from lesioncount.results.scan_count import CourseMaps
from lesioncount.results.settings import ChangeSettings
from lesioncount.results.tables import CHANGE_TABLES
from lesioncount.runs.comparing import compared
from lesioncount.runs.detection_changes import read_tables
from lesioncount.runs.detection_counts import check_needs
from lesioncount.runs.engine import Engine, Kind
from lesioncount.runs.session_maps import read_maps
from lesioncount.runs.workers import CLUSTER_TIMEOUT

Progress = Callable[[Entry, int, int], None]


@dataclass(frozen=True)
class Comparing(Kind):
    """How the scans of one patient are compared."""

    settings: ChangeSettings

    command = "compare"
    done = "compared"
    tables = CHANGE_TABLES

    @property
    def recorded(self) -> Recorded:
        """What is recorded of the settings."""
        return self.settings.recorded

    def work(
        self, item: Course, files: Callable[[], list[FileFacts]], *, keep: Keep, jobs: int, client: Any
    ) -> tuple[Record, CourseMaps]:
        """Compare the maps of a patient."""
        del keep, jobs, client  # maps are in memory as a whole, and so are pictures of them
        is_table = any(scan.tables for scan in item.scans)
        maps = (
            read_tables(item.scans, self.settings) if is_table else read_maps(item.scans, self.settings, item.sessions)
        )
        return compared(item, maps, tuple(files()), self.settings), maps

    def failed(self, item: Course, why: str, files: Sequence[FileFacts] = ()) -> Record:
        """The record of a patient that could not be compared."""
        del files
        known: dict[str, Any] = {"participant_id": item.participant, "paths": item.paths}
        return Record.failed(item.name, without_secrets(why), of_changes=True, **known)


def compare_batch(  # noqa: PLR0913 - as many as a run has options
    inputs: Sequence[str | Path],
    out: str | Path,
    /,
    *,
    settings: ChangeSettings | None = None,
    selection: CourseSelection | None = None,
    mask: str | Path | None = None,
    jobs: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    show: Show | None = None,
    cluster: str | None = None,
    cluster_timeout: float = CLUSTER_TIMEOUT,
    parquet: bool = False,
    csv: Literal["comma", "semicolon"] | None = None,
    command: str | None = None,
) -> Results:
    """Compare the maps of patients at several times, and write tables and records into a folder.

    Parameters
    ----------
    inputs : sequence of path
        One folder with the sessions of participants; or for each time a folder or a file, the first before the second.
        None with a table of pairs (`CourseSelection`).
    out : path
        Folder of the results; made if it is not there.
    settings : ChangeSettings, optional
        Protocol, tolerance, coupling, calibrations, questions, and whether to write label maps.
    selection : CourseSelection, optional
        How maps are paired.
    mask : path, optional
        A mask for all maps, a folder with one for each, or a pattern. What lies outside of the mask of any session of a
        patient is not compared.
    jobs : int, default 1
        Number of processes.
    resume : bool, default False
        Keep what is there and still right: same files, no error. With other settings, it is refused.
    overwrite : bool, default False
        Do everything again, and replace what is there.
    progress : callable, optional
        Called with the entry of a patient, the number of patients done, and the number of all.
    show : callable, optional
        Called, in the process that compared it, with the folder, the course, its record and its maps:
        `lesioncount.report.SectionWriter` makes pictures for the page while the maps are at hand.
    cluster : str, optional
        Address of a Dask scheduler that does the work instead. Its workers must see the same files.
    cluster_timeout : float, default 300
        Seconds to wait for a cluster that has lost all its workers. What is not done by then has failed, and is done
        when the run is resumed.
    parquet : bool, default False
        Write each table as Parquet, too.
    csv : {"comma", "semicolon"}, optional
        Write each table as CSV for Excel, too, with this between cells.
    command : str, optional
        What was typed, for the history of runs (``runs.jsonl``).
    """
    selection, folder = selection or CourseSelection(), OutputFolder(out)
    if settings is None:
        is_table = selection.selection.are_tables(inputs)
        settings = ChangeSettings(CountingProtocol.named("detections" if is_table else "paper"))
    outputs = outputs_of(settings, command=Comparing.command, tables=CHANGE_TABLES, parquet=parquet, csv=csv, show=show)
    engine = Engine(Comparing(settings), folder, jobs, cluster, resume, overwrite, progress, outputs, cluster_timeout)
    before = engine.earlier()
    settings.check()
    found = selection.find(inputs, folder.path, mask=None if mask is None else to_path(mask))
    check_needs(settings, [scan for course in found.courses for scan in course.scans], mask=mask)
    check_case([course.name for course in found.courses], folder.path)
    given = () if mask is None else ("mask",)
    run = Run.begun(settings.recorded, jobs=jobs, cluster=cluster, command=command, given=given, alone=found.alone)
    return engine.run(found.courses, run, before)

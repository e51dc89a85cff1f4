"""Many maps → one folder of results: the count of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any

from lesioncount.cohort.item import FileFacts, ScanFiles
from lesioncount.cohort.names import check_case
from lesioncount.cohort.scans import Selection
from lesioncount.files.formats import is_large_volume, map_ending
from lesioncount.files.remote_path import to_path, without_secrets
from lesioncount.folder.output import OutputFolder
from lesioncount.outputs.bids import DATASET_FILES, check_places, remove_scan, scan_files_in, write_dataset
from lesioncount.outputs.dicom.writing import with_series
from lesioncount.outputs.label_maps import REPORT, expected_names, output_names, remove_outputs, write_outputs
from lesioncount.results.answers import check_questions
from lesioncount.results.record import ScanRecord, ScanSummary, read_record
from lesioncount.results.region_settings import region_settings
from lesioncount.results.results import RunResults
from lesioncount.results.run_file import Run, find_run
from lesioncount.results.scan_count import ScanCount
from lesioncount.results.settings import Settings
from lesioncount.results.tables import TABLES, RunTable, tables_of
from lesioncount.runs.engine import Engine, Kind
from lesioncount.runs.file_counts import count_file

Progress = Callable[[ScanSummary, int, int], None]

# Shows a scan that has just been counted, while its map is at hand; given its files, its record, and the count of its
# map (of an ensemble, that of its first member), with shades and runs. What goes wrong with it is its own affair.
Show = Callable[[OutputFolder, ScanFiles, ScanRecord, ScanCount], None]


@dataclass(frozen=True)
class Counting(Kind[ScanFiles, ScanRecord, list[ScanCount], ScanSummary, RunResults]):
    """How one scan is counted."""

    settings: Settings

    command = "count"
    done = "counted"
    page = f"{REPORT}.html"
    tables = TABLES

    def find_run(self, out: Path) -> Run | None:
        """The run of counts in a folder."""
        return find_run(out)

    def is_spread(self, item: ScanFiles, *, is_alone: bool) -> bool:
        """Large volumes, and a volume that is alone."""
        return is_large_volume(item.path, self.settings.level) or (is_alone and map_ending(item.path) == ".zarr")

    def work(
        self, item: ScanFiles, files: Callable[[], list[FileFacts]], *, is_shown: bool, jobs: int, client: Any
    ) -> tuple[ScanRecord, list[ScanCount]]:
        """Count the maps of a scan."""
        how = self.settings
        counts = [
            count_file(
                path,
                protocol=how.protocol,
                mask=item.mask,
                regions=item.regions,
                region_names=how.regions,
                channel=how.channel,
                scale=how.scale,
                logits=how.logits,
                level=how.level,
                keep_runs=how.has_outputs or (is_shown and path == item.path),
                keep_shades=is_shown and path == item.path,
                jobs=jobs,
                client=client,
            )
            for path in item.maps
        ]
        return ScanRecord.of(item.name, counts, files()[0], how), counts

    def failed(self, item: ScanFiles, why: str, files: Sequence[FileFacts] = ()) -> ScanRecord:
        """The record of a scan that could not be counted."""
        known = files[0] if files else FileFacts.unread(item)
        summary = ScanSummary(item.name, error=without_secrets(why), files=known)
        return ScanRecord(summary, self.settings.recorded)

    def brief(self, record: ScanRecord) -> ScanSummary:
        """The summary of a record."""
        return record.summary

    def text(self, record: ScanRecord) -> str:
        """A record as JSON."""
        return record.to_json()

    def unchanged(self, item: ScanFiles, out: Path) -> tuple[ScanSummary, list[FileFacts]] | None:
        """What the record says of a scan that was counted with the same settings, and whose outputs are there."""
        record = read_record(out, item.name, unchanged=True)
        if record is None or not record.summary.is_counted or record.summary.files is None:
            return None
        if record.counted_with is None or not record.counted_with.counts_as(self.settings.recorded):
            return None
        n_candidates = len(record.summary.tables[0])
        if not all(_is_there(out / name) for name in expected_names(item, self.settings.recorded, n_candidates)):
            return None
        return record.summary, [record.summary.files]

    def write_outputs(self, folder: OutputFolder, item: ScanFiles, record: ScanRecord, found: list[ScanCount]) -> None:
        """Write label maps and the like, of the first member."""
        if self.settings.has_outputs:
            write_outputs(folder, item, record, found[0], self.settings)

    def output_names(self, item: ScanFiles) -> tuple[str, ...]:
        """Label maps and the like."""
        return output_names(item, self.settings.recorded)

    def remove_outputs(self, folder: OutputFolder, item: ScanFiles, *, but: Iterable[str]) -> None:
        """Remove label maps and the like."""
        kept = set(but)
        remove_outputs(folder, item.name, but=kept)
        if not (self.settings.bids and kept):
            remove_scan(folder, item)

    def shown(self, found: list[ScanCount]) -> ScanCount:
        """The count of the first member."""
        return found[0]

    def results(self, out: Path, run: Run, done: tuple[ScanSummary, ...]) -> RunResults:
        """All scans."""
        return RunResults(out, run, done)

    def tables_of(self, results: RunResults) -> tuple[RunTable, ...]:
        """Counts, candidates, members, regions and answers."""
        return tables_of(results)

    def is_record(self, out: Path, name: str) -> bool:
        """Whether there is a record of a scan."""
        return read_record(out, name) is not None

    def remove_stale(self, folder: OutputFolder, items: Sequence[ScanFiles], gone: Iterable[str]) -> None:
        """Remove label maps of scans that are gone, and what is left of a BIDS derivative."""
        for name in gone:
            remove_outputs(folder, name)
        made = {name for item in items for name in self.output_names(item)}
        dataset = () if self.settings.bids else DATASET_FILES
        for name in (*(scan_files_in(folder) - made), *dataset):
            folder.remove(name)

    def finish(self, folder: OutputFolder, results: RunResults) -> None:
        """Describe the BIDS derivative."""
        if self.settings.bids:
            write_dataset(folder, results)

    def further_files(self) -> tuple[str, ...]:
        """What describes the BIDS derivative."""
        return DATASET_FILES if self.settings.bids else ()


def _is_there(path: Path) -> bool:
    """Whether a file is there, and not left empty by a power cut."""
    return path.exists() and path.stat().st_size > 0


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
    settings, folder = Settings() if settings is None else settings, OutputFolder(out)
    settings = replace(settings, regions=region_settings(regions, settings.regions, ()))
    engine = Engine(Counting(settings), folder, jobs, cluster, resume, overwrite, parquet, progress, show)
    before = engine.earlier()
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
    return engine.run(scans, Run(settings.recorded, jobs, cluster, command=command, given=given), before)

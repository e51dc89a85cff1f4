"""Many maps → one folder of results: the count of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any, Literal

from lesioncount.cohort.item import FileFacts, ScanFiles
from lesioncount.cohort.names import check_case
from lesioncount.cohort.scans import Selection
from lesioncount.distributions.mixture import MixtureOfCounts, combined
from lesioncount.files.formats import is_large_volume, map_ending
from lesioncount.files.remote_path import to_path, without_secrets
from lesioncount.folder.output import OutputFolder
from lesioncount.outputs import outputs_of
from lesioncount.outputs.calibration_file import CalibrationFile
from lesioncount.outputs.output import Keep
from lesioncount.outputs.page import Show
from lesioncount.protocol import CountingProtocol
from lesioncount.results.answers import answers, check_questions
from lesioncount.results.count_warnings import in_general
from lesioncount.results.lesion_rows import lesion_rows, with_list
from lesioncount.results.record import FORMAT_VERSION, Entry, Record
from lesioncount.results.record_parts import MapFacts
from lesioncount.results.recorded import Recorded
from lesioncount.results.region_numbers import region_counts
from lesioncount.results.region_settings import region_settings
from lesioncount.results.results import Results
from lesioncount.results.run_file import Run
from lesioncount.results.scan_count import ScanCount
from lesioncount.results.scan_numbers import (
    CONFIDENCE,
    AnotherReader,
    CandidateNumbers,
    CountNumbers,
    EnsembleNumbers,
    MemberNumbers,
    ScanNumbers,
)
from lesioncount.results.settings import Settings
from lesioncount.results.tables import COUNT_TABLES
from lesioncount.runs.detection_counts import check_needs, count_table
from lesioncount.runs.engine import Engine, Kind
from lesioncount.runs.file_counts import count_file
from lesioncount.runs.workers import CLUSTER_TIMEOUT
from lesioncount.trust.candidate_table import CandidateTable

Progress = Callable[[Entry, int, int], None]


@dataclass(frozen=True)
class Counting(Kind):
    """How one scan is counted."""

    settings: Settings

    command = "count"
    done = "counted"
    tables = COUNT_TABLES

    @property
    def recorded(self) -> Recorded:
        """What is recorded of the settings."""
        return self.settings.recorded

    def recorded_of(self, item: ScanFiles) -> Recorded:
        """What is recorded with one scan: its own calibration, if its count is known."""
        return self.settings.of_scan(item.name).recorded

    def is_spread(self, item: ScanFiles, *, is_alone: bool) -> bool:
        """Large volumes, and a volume that is alone."""
        if item.tables:
            return False
        return is_large_volume(item.path, self.settings.level) or (is_alone and map_ending(item.path) == ".zarr")

    def work(
        self, item: ScanFiles, files: Callable[[], list[FileFacts]], *, keep: Keep, jobs: int, client: Any
    ) -> tuple[Record, ScanCount]:
        """Count the maps of a scan; of an ensemble, give what was found in the first."""
        how = self.settings
        if item.tables:
            found = [count_table(item, table, how) for table in item.tables]
            return counted(item.name, found, files()[0], how), found[0]
        counts = [
            count_file(
                path,
                protocol=how.protocol,
                mask=item.mask,
                regions=item.regions,
                region_names=how.regions,
                **how.reading,
                keep_runs=keep.runs and path == item.path,
                keep_shades=keep.shades and path == item.path,
                jobs=jobs,
                client=client,
            )
            for path in item.maps
        ]
        return counted(item.name, counts, files()[0], how), counts[0]

    def likeness(self, done: Sequence[Entry]) -> dict[str, Any]:
        """Whether the scans differ from those of the calibration, as far as their candidates can tell.

        Where the calibration was learned from some of them, whether the others do.
        """
        fit, known = self.settings.calibration, self.settings.known
        if fit is None or fit.scans is None:
            return {}
        new = [one for one in done if one.tables and (known is None or one.name not in known.fold_of)]
        # Of an ensemble, its members in turn: so a calibration remembers them.
        tables = [one.tables[place % len(one.tables)] for place, one in enumerate(new)]
        found = fit.scans.compare(tables, names=[one.shown for one in new])
        if found is None:
            return {}
        if known is not None:
            found = replace(found, which="Scans without a known count")
        if not found.is_alarm:
            return {"alike": str(found), "outliers": found.outliers}
        promised = {
            "The guarantee of the intervals": self.settings.conformal,
            "The promise of the list": self.settings.listed is not None,
        }
        withdrawn = (f" {what} does not hold for them." for what, is_promised in promised.items() if is_promised)
        return {"unlike": f"{found}{''.join(withdrawn)}", "outliers": found.outliers}

    def failed(self, item: ScanFiles, why: str, files: Sequence[FileFacts] = ()) -> Record:
        """The record of a scan that could not be counted."""
        known = files[0] if files else FileFacts.unread(item)
        return Record.failed(item.name, without_secrets(why), input=known, settings=self.recorded)


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
    cluster_timeout: float = CLUSTER_TIMEOUT,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    show: Show | None = None,
    parquet: bool = False,
    csv: Literal["comma", "semicolon"] | None = None,
    command: str | None = None,
) -> Results:
    """Count all maps of some files, folders or globs, and write tables and records into a folder.

    Parameters
    ----------
    inputs : sequence of path
        Files, folders (searched with everything below them) or glob patterns. With ``members``, two or more folders
        that hold maps of the same scans, in the same places or with the same BIDS entities. Or tables of detections,
        as `lesioncount.read_candidates` reads them.
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
    cluster_timeout : float, default 300
        Seconds to wait for a cluster that has lost all its workers. What is not done by then has failed, and is done
        when the run is resumed.
    resume : bool, default False
        Keep what is there and still right: same files, no error. With other settings, it is refused.
    overwrite : bool, default False
        Do everything again, and replace what is there.
    progress : callable, optional
        Called with the entry of a scan, the number of scans done, and the number of all.
    show : callable, optional
        Called, in the process that counted it, with the folder, the files, the record and the count of each scan:
        `lesioncount.report.SectionWriter` makes pictures for the report while the map is at hand.
    parquet : bool, default False
        Write each table as Parquet, too.
    csv : {"comma", "semicolon"}, optional
        Write each table as CSV for Excel, too, with this between cells.
    command : str, optional
        What was typed, for the history of runs (``runs.jsonl``).
    """
    selection, folder = selection or Selection(), OutputFolder(out)
    if settings is None:
        settings = Settings(
            CountingProtocol.named("detections") if selection.are_tables(inputs) else CountingProtocol()
        )
    settings = replace(settings, regions=region_settings(regions, settings.regions, ()))
    outputs = outputs_of(settings, command=Counting.command, tables=COUNT_TABLES, parquet=parquet, csv=csv, show=show)
    engine = Engine(Counting(settings), folder, jobs, cluster, resume, overwrite, progress, outputs, cluster_timeout)
    before = engine.earlier()
    learned = CalibrationFile(settings.known, was_there=before is not None and before.settings.known is not None)
    engine = replace(engine, outputs=(*outputs, learned))
    scans = selection.find(
        inputs,
        folder.path,
        mask=None if mask is None else to_path(mask),
        regions=None if regions is None else to_path(regions),
        members=members,
        known=before.known if before is not None and resume else None,
    )
    check_needs(settings, scans, mask=mask)
    check_case([scan.name for scan in scans], folder.path)
    settings.check(members=members)
    check_questions(settings.questions, settings.regions)
    is_listed = any(scan.is_listed for scan in scans)
    given = tuple(compress(("mask", "members", "scans"), (mask is not None, members, is_listed)))
    run = Run.begun(settings.recorded, jobs=jobs, cluster=cluster, command=command, given=given)
    return engine.run(scans, run, before)


def counted(name: str, counts: Sequence[ScanCount], files: FileFacts, settings: Settings) -> Record:
    """The record of a scan whose maps have been counted."""
    settings = settings.of_scan(name)
    fit, calibration = settings.calibration, None if settings.calibration is None else settings.calibration.calibration
    together = combined([count.result.distribution for count in counts])
    features = () if fit is None else fit.features
    tables = [CandidateTable.of_candidates(count.result.candidates, *features) for count in counts]
    corrected = None if calibration is None else combined([calibration.distribution(table) for table in tables])
    reads, pool = settings.reads.get(name, ()), None if fit is None else fit.pool
    another = pool.distribution(corrected, reads) if reads and pool is not None and corrected is not None else None
    numbers = ScanNumbers.of(
        CandidateNumbers.of(counts),
        CountNumbers.of(together),
        None if corrected is None else CountNumbers.of(corrected),
        settings.recorded.fingerprint(),
        fit.guaranteed(tables[0], CONFIDENCE) if fit is not None and settings.conformal else None,
        EnsembleNumbers.of(together, len(counts)) if isinstance(together, MixtureOfCounts) else None,
        None if another is None else AnotherReader.of(reads, another),
    )
    caveat = [calibration.caveat] if calibration is not None and calibration.is_stated else []
    return Record(
        FORMAT_VERSION,
        scan=name,
        status="ok",
        input=files,
        settings=settings.recorded,
        map=MapFacts.of(counts[0]),
        warnings=_once_each([*(warning for count in counts for warning in count.warnings), *caveat]),
        shares=counts[0].shares if len(tables[0]) and counts[0].result.candidates.warning is None else (),
        count=numbers,
        n_dropped=sum(count.result.candidates.n_dropped for count in counts),
        pmf=tuple(together.pmf().tolist()),
        pmf_calibrated=() if corrected is None else tuple(corrected.pmf().tolist()),
        pmf_another_reader=() if another is None else tuple(another.pmf().tolist()),
        regions=region_counts(counts, calibration),
        answers=answers(settings.questions, counts, calibration),
        lesions=with_list(lesion_rows(counts, calibration), settings.list_threshold),
        members=tuple(map(MemberNumbers.of, range(1, len(counts) + 1), counts)) if len(counts) > 1 else (),
    )


def _once_each(warnings: Iterable[str]) -> tuple[str, ...]:
    """The first warning of each kind: members of an ensemble mostly say the same."""
    first: dict[str, str] = {}
    for warning in warnings:
        first.setdefault(in_general(warning), warning)
    return tuple(first.values())

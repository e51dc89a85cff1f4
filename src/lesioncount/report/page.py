"""A folder of results → ``report.html`` or ``changes.html``: one file that needs nothing else, or with a folder."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from lesioncount.cohort.courses import Course
from lesioncount.cohort.item import ScanFiles
from lesioncount.errors import LesionCountError, MapFileError
from lesioncount.files.remote_path import to_path
from lesioncount.folder.output import OutputFolder
from lesioncount.report.change_page import CHANGES
from lesioncount.report.count_page import COUNTS
from lesioncount.report.section_folder import (
    ROWS_AT_ONCE,
    Image,
    PageKind,
    SectionFolder,
    SectionText,
    fingerprint_of,
    has_rows,
    is_written,
    write_rows,
)
from lesioncount.report.templates import check_can_report, rendered
from lesioncount.results.record import Record, trusted_record
from lesioncount.results.record_files import is_sharded, no_record, shard_of
from lesioncount.results.results import Results, read_results
from lesioncount.results.run_file import find_run
from lesioncount.results.scan_count import CourseMaps, ScanCount
from lesioncount.runs.workers import results_of

# Up to so many scans or patients, everything is one page, which can be sent by mail: some megabytes. With more, a
# browser would be slow to open it, so that sections are files of their own, loaded when they are opened.
FEW = 40

# Sections that are open where there are many.
_OPEN_OF_MANY = 3

Progress = Callable[[int, int], None]

# By whether they are of changes.
_KINDS: tuple[PageKind, PageKind] = (COUNTS, CHANGES)


def write_report(
    results: Results | str | Path,
    *,
    images: str | Path | None = None,
    images_suffix: str = "",
    jobs: int = 1,
    progress: Progress | None = None,
) -> Path:
    """Write a page that shows the results of a run: the whole cohort, each scan or patient, and single lesions.

    Of more than 40 scans or patients, sections are files in a folder beside the page, of the same name. What is there
    and right is kept: sections that `SectionWriter` made during the run, and everything if nothing has changed.

    Parameters
    ----------
    results : Results or path
        What `count_batch` or `compare_batch` returned, or the folder it wrote to.
    images : path, optional
        What to show behind the candidates: a folder with an image for each map, of the same name or the same BIDS
        entities; a pattern such as ``flair/{participant}_{session}_FLAIR.nii.gz``; or one image for all. It must lie
        on the grid of its map, or, where times are compared, of the last map of the patient. Default: the map itself.
    images_suffix : str
        What the name of an image adds to that of its map, or has in place of its last part.
    jobs : int, default 1
        Number of processes that make sections.
    progress : callable, optional
        Called with the number of sections made, and of those that must be.

    Returns
    -------
    Path
        Of the page, ``report.html`` or ``changes.html`` in the folder of the results.
    """
    check_can_report()
    if not isinstance(results, str | Path):
        return _written(results, images, images_suffix, jobs, progress)
    out = Path(results)
    run = find_run(out)
    # That nothing has changed is known without a look into the records, which takes seconds.
    if images is None and run is not None:
        page = _Page(_KINDS[run.is_of_changes], OutputFolder(out), run, run.items)
        with suppress(MapFileError):  # of a record that is gone
            if page.is_right:
                return page.tidied()
    return _written(read_results(out), images, images_suffix, jobs, progress)


def _written(results: Results, images: str | Path | None, suffix: str, jobs: int, progress: Progress | None) -> Path:
    kind, shown = _KINDS[results.run.is_of_changes], {}
    if images is not None:
        where = to_path(images)
        found = kind.images(results, where, suffix)
        shown = {name: _or_why(own, where, kind) for name, own in found.items()}
    page = _Page(kind, OutputFolder(results.out), results.run, results.entries, shown)
    if not page.is_right:
        page.write(results, jobs=jobs, progress=progress)
    return page.tidied()


@dataclass(frozen=True)
class SectionWriter:
    """Writes the section of each scan or patient while maps are at hand: ``show`` of `count_batch`, `compare_batch`.

    Attributes
    ----------
    images : Path, optional
        Where images were looked for.
    """

    images: Path | None = None

    def __call__(
        self,
        folder: OutputFolder,
        item: ScanFiles | Course,
        record: Record,
        found: ScanCount | CourseMaps,
    ) -> None:
        """Write a section; what goes wrong shows when the page finds none, and makes it."""
        kind = _KINDS[record.is_of_changes]
        sections = SectionFolder(folder, kind)
        own = () if self.images is None else _or_why([scan.image for scan in item.scans], self.images, kind)
        try:
            key = sections.key(item.name, own)
            sections.write([(item.name, kind.section(record, own, found))], {item.name: key})
        except (LesionCountError, OSError, MemoryError, ValueError):
            return


@dataclass(frozen=True)
class _Page:
    """A page that shows a run.

    Attributes
    ----------
    kind : PageKind
    folder : OutputFolder
    run : Run
    entries : sequence
        All that it lists.
    images : mapping of str to sequence of path or text
        What each is drawn on, or why not; nothing where no images were asked for.
    """

    kind: PageKind
    folder: OutputFolder
    run: Any
    entries: Sequence[Any]
    images: Mapping[str, Sequence[Image]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its file."""
        return f"{self.kind.folder}.html"

    @property
    def in_folder(self) -> bool:
        """Whether sections are files of their own."""
        return len(self.entries) > FEW

    @cached_property
    def sections(self) -> SectionFolder:
        """Where they are then, and before."""
        return SectionFolder(self.folder, self.kind)

    @cached_property
    def keys(self) -> dict[str, str]:
        """What each section depends on."""
        done = (one.name for one in self.entries if one.status == "ok")
        checksums = {one.name: getattr(one, "checksum", "") for one in self.entries}  # of those that were read
        return self.sections.keys({name: self.images.get(name, ()) for name in done}, checksums)

    @cached_property
    def noted(self) -> dict[str, bool]:
        """Of the sections that were there and right when this was first asked: whether they have a note."""
        return self.sections.noted(self.keys)

    @cached_property
    def fingerprint(self) -> str:
        """What it depends on: the run, what became of its scans or patients, and their sections."""
        run = self.run
        of_run = (run.started[:10], run.status, dict(run.versions), self.kind.about(run))
        return fingerprint_of(of_run, [(one.name, one.error or None, self.keys.get(one.name)) for one in self.entries])

    @property
    def is_right(self) -> bool:
        """Whether it is there, with its sections, and shows just this."""
        if self.in_folder and (len(self.noted) < len(self.keys) or not self._has_rows):
            return False
        return is_written(self.folder, self.name, self.fingerprint)

    @property
    def _has_rows(self) -> bool:
        return not self.kind.has_parts or has_rows(self.folder.path, len(self.entries))

    def tidied(self) -> Path:
        """Its path, after sections that it does not load are removed."""
        self.sections.remove(but=self.keys if self.in_folder else None)
        return self.folder.path / self.name

    def write(self, results: Results, *, jobs: int, progress: Progress | None) -> None:
        """Make what is missing, and write the page."""
        made = self._made(jobs, progress)
        anchors = {one.name: f"{self.kind.what}-{number}" for number, one in enumerate(self.entries, start=1)}
        if self.in_folder:
            self.sections.write(made, self.keys)
            if self.kind.has_parts:
                write_rows(self.folder, results, anchors)
            text = self._rendered(results, anchors, None, self.sections.noted(self.keys))
        else:
            sections = {name: self.sections.read(name) for name in self.noted} | dict(made)
            noted = {name: one.has_note for name, one in sections.items()}
            text = self._rendered(results, anchors, sections, noted)
        self.folder.write_text(self.name, text)

    def _made(self, jobs: int, progress: Progress | None) -> Iterator[tuple[str, SectionText]]:
        """Sections that are missing, from records and maps, which are read once more."""
        missing = [(name, self.images.get(name, ())) for name in self.keys if name not in self.noted]
        make = partial(_made, self.kind.section, self.folder.path)
        for done, (place, future) in enumerate(results_of(make, missing, jobs=jobs), start=1):
            yield missing[place][0], future.result()
            if progress is not None:
                progress(done, len(missing))

    def _rendered(
        self,
        results: Results,
        anchors: Mapping[str, str],
        sections: Mapping[str, SectionText] | None,
        noted: Mapping[str, bool],
    ) -> str:
        """The page, with its sections, or without them if they are files of their own."""
        # Those of equal interest come in the order of the run.
        entries = sorted(
            (one for one in self.entries if one.name in self.keys), key=lambda one: -self.kind.interest(one)
        )
        has_shards = is_sharded(self.folder.path)
        return rendered(
            self.kind.template,
            results=results,
            what=self.kind.what,
            anchors=anchors,
            fingerprint=self.fingerprint,
            in_folder=self.in_folder,
            folder=self.kind.folder,
            shards={one.name: shard_of(one.name) if has_shards else "" for one in self.entries},
            rows_at_once=ROWS_AT_ONCE if self.in_folder else math.inf,
            shown=[(one, None if sections is None else sections[one.name]) for one in entries],
            without_pictures=[one for one in entries if noted[one.name]],
            n_open=len(entries) if len(entries) <= self.kind.many else _OPEN_OF_MANY,
            **self.kind.content(results, entries, anchors),
        )


def _or_why(found: Sequence[Path | None], images: Path, kind: PageKind) -> tuple[Image, ...]:
    """Images; where there is none among those that were asked for, a text that says so."""
    return tuple(one or f"{kind.no_image} in {images}." for one in found)


def _made(
    section: Callable[[Any, Sequence[Image], None], SectionText],
    out: Path,
    item: tuple[str, Sequence[Image]],
) -> SectionText:
    name, images = item
    record = trusted_record(out, name)
    if record is None:
        raise no_record(out, name)
    return section(record, images, None)

"""Sections of the scans of a run: made while a scan is counted, or later from its record and its map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lesioncount.cohort.item import ScanFiles
from lesioncount.errors import LesionCountError
from lesioncount.folder.output import OutputFolder
from lesioncount.outputs.label_maps import REPORT
from lesioncount.report.section_folder import Progress, SectionFolder, make_all
from lesioncount.report.sections import SectionText, section_text
from lesioncount.results.record import ScanRecord, read_record
from lesioncount.results.record_files import no_record
from lesioncount.results.results import RunResults
from lesioncount.results.scan_count import ScanCount
from lesioncount.results.settings import CountedWith

# What a section looks like is decided by these.
_TEMPLATES = ("section.html.j2", "summary.html.j2", "numbers.html.j2", "regions.html.j2")


def sections_in(folder: OutputFolder) -> SectionFolder:
    """The sections of the report in a folder of results."""
    return SectionFolder(folder, REPORT, _TEMPLATES, "Count again.")


@dataclass(frozen=True)
class SectionWriter:
    """Writes the section of each scan that is counted, while its map is at hand: `count_batch` takes it as ``show``.

    Attributes
    ----------
    images : Path, optional
        Where images were looked for.
    """

    images: Path | None = None

    def __call__(self, folder: OutputFolder, scan: ScanFiles, record: ScanRecord, count: ScanCount) -> None:
        """Write the section of a scan; what goes wrong shows when the report finds none, and makes it."""
        if record.counted_with is None:
            return
        image = None if self.images is None else image_or_why(scan.image, self.images)
        sections = sections_in(folder)
        try:
            key = sections.key(scan.name, [image])
            text = section_text(record, record.counted_with, image, count)
            sections.write([(scan.name, text)], {scan.name: key})
        except (LesionCountError, OSError, MemoryError, ValueError):
            return


def image_or_why(image: Path | None, images: Path) -> Path | str:
    """The image of a scan; where there is none among those that were asked for, a text that says so."""
    return image or f"Shown on the map, because there is no image of this scan in {images}."


def make_sections(
    results: RunResults,
    images: Mapping[str, Path | str],
    keys: Mapping[str, str],
    *,
    jobs: int,
    progress: Progress | None,
) -> Iterator[tuple[str, SectionText]]:
    """Make sections from records and maps, which are read once more.

    Parameters
    ----------
    results : RunResults
    images : mapping of str to path or str
        The image of each scan, or why there is none.
    keys : mapping of str to str
        Of the scans whose sections are to be made.
    jobs : int
        Number of processes.
    progress : callable, optional
        Called with the number of sections done, and of all.
    """
    make = partial(_made, out=results.out, counted_with=results.run.counted_with)
    return make_all(make, {name: (name, images.get(name)) for name in keys}, jobs=jobs, progress=progress)


def _made(item: tuple[str, Path | str | None], out: Path, counted_with: CountedWith) -> SectionText:
    name, image = item
    record = read_record(out, name)
    if record is None:
        raise no_record(out, name)
    return section_text(record, counted_with, image)

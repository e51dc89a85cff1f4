"""Sections of the page as files: made while a scan is counted, kept as long as they are right, loaded when asked for.

Each is a script that hands its section to the page, because that is the only kind of file that a page which was opened
from disk may load. Its first line says what it was made from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lesioncount.errors import LesionCountError, MapFileError
from lesioncount.files.output import OutputFolder
from lesioncount.report.sections import SectionText, section_text
from lesioncount.report.templates import looks
from lesioncount.runs.batch import REPORT, TABLE, sections_in
from lesioncount.runs.file_counts import ScanCount
from lesioncount.runs.record_files import is_sharded, no_record, record_in, shard_of
from lesioncount.runs.records import ScanRecord, read_record
from lesioncount.runs.results import RunResults
from lesioncount.runs.scan_files import ScanFiles
from lesioncount.runs.settings import CountedWith
from lesioncount.runs.workers import results_of
from lesioncount.version import __version__

Progress = Callable[[int, int], None]

# Opens a file; with its key, and with whether there is a note in it.
_HEAD = "// lesioncount section "
_NOTED = " noted"
_CALL, _END = "lesioncountSection(", ");\n"

# Written at once: a ledger is brought up to date for each lot, and a lot is held.
_TOGETHER = 50

# What a section looks like is decided by these.
_TEMPLATES = ("section.html.j2", "summary.html.j2", "numbers.html.j2", "regions.html.j2")

_LONGEST_HEAD = 200


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
        try:
            key = section_key(folder.path, scan.name, image)
            text = section_text(record, record.counted_with, image, count)
            folder.write_together({section_name(folder.path, scan.name): _script(scan.name, key, text)})
        except (LesionCountError, OSError, MemoryError, ValueError):
            return


def image_or_why(image: Path | None, images: Path) -> Path | str:
    """The image of a scan; where there is none among those that were asked for, a text that says so."""
    return image or f"Shown on the map, because there is no image of this scan in {images}."


def section_name(out: Path, scan: str) -> str:
    """The file of the section of a scan: in a folder, where records are in folders."""
    return f"{REPORT}/{shard_of(scan)}/{scan}.js" if is_sharded(out) else f"{REPORT}/{scan}.js"


def section_key(out: Path, scan: str, image: Path | str | None) -> str:
    """What a section depends on: the record, which knows the map by its hash, the image, and how we draw.

    Of an image, only its size and the time of its last change are looked at: a cohort has gigabytes of them.
    """
    digest = hashlib.sha256(f"{__version__}\n{looks(*_TEMPLATES)}\n{image}\n".encode("utf-8", "backslashreplace"))
    if isinstance(image, Path):
        state = image.stat()
        digest.update(f"{state.st_size} {state.st_mtime_ns}\n".encode())
    digest.update((out / record_in(out, scan)).read_bytes())
    return digest.hexdigest()


def section_keys(out: Path, scans: Iterable[str], images: Mapping[str, Path | str]) -> dict[str, str]:
    """The key of the section of each scan that was counted."""
    keys = {}
    for scan in scans:
        if Path(scan).name != scan or "\\" in scan:  # a run that somebody else wrote may name anything
            raise MapFileError(f"{scan[:80]!r} is not the name of a scan: it leads out of {out}. Count again.")
        try:
            keys[scan] = section_key(out, scan, images.get(scan))
        except (OSError, ValueError):
            raise MapFileError(
                f"The record {out / record_in(out, scan)} is not there, or its image is gone. Count again."
            ) from None
    return keys


def noted(out: Path, keys: Mapping[str, str]) -> dict[str, bool]:
    """Of the sections that are there and right: whether they have a note."""
    found = {}
    for scan, key in keys.items():
        head = _head(out / section_name(out, scan))
        if head.startswith(f"{_HEAD}{key}"):
            found[scan] = head.endswith(_NOTED)
    return found


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
    names = list(keys)
    make = partial(_made, out=results.out, counted_with=results.run.counted_with)
    todo = [(name, images.get(name)) for name in names]
    for done, (place, future) in enumerate(results_of(make, todo, jobs=jobs), start=1):
        yield names[place], future.result()
        if progress is not None:
            progress(done, len(names))


def _made(item: tuple[str, Path | str | None], out: Path, counted_with: CountedWith) -> SectionText:
    name, image = item
    record = read_record(out, name)
    if record is None:
        raise no_record(out, name)
    return section_text(record, counted_with, image)


def write_sections(folder: OutputFolder, made: Iterator[tuple[str, SectionText]], keys: Mapping[str, str]) -> None:
    """Write sections as they come, in lots."""
    lot: dict[str, bytes] = {}
    for name, text in made:
        lot[section_name(folder.path, name)] = _script(name, keys[name], text)
        if len(lot) == _TOGETHER:
            folder.write_together(lot)
            lot = {}
    folder.write_together(lot)


def read_section(out: Path, scan: str) -> SectionText:
    """A section that is there."""
    head, _, script = (out / section_name(out, scan)).read_text("utf-8").partition("\n")
    content = json.loads(script.removeprefix(_CALL).rpartition(_END)[0])
    return SectionText(content["summary"], content["body"], head.endswith(_NOTED))


def remove_sections(folder: OutputFolder, *, but: Sequence[str] = ()) -> None:
    """Remove all sections of ours but those of some scans; without any, the folder too, if nothing else is in it."""
    kept = {section_name(folder.path, scan) for scan in but}
    for name in sections_in(folder.path):
        is_row = name.startswith(f"{TABLE}/")
        if name not in kept and not (but and is_row):
            folder.remove(name)
    if not but:
        for path in (folder.path / REPORT).glob("*/"):
            folder.remove_empty(f"{REPORT}/{path.name}")
        folder.remove_empty(REPORT)


def _script(scan: str, key: str, text: SectionText) -> bytes:
    content = json.dumps({"scan": scan, "summary": text.summary, "body": text.body})
    return f"{_HEAD}{key}{_NOTED if text.has_note else ''}\n{_CALL}{content}{_END}".encode()


def _head(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.readline(_LONGEST_HEAD).decode("utf-8", "replace").rstrip()
    except OSError:
        return ""

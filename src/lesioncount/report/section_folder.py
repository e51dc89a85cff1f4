"""Sections of a page, and the rows of a very long table, as files in a folder beside it.

Sections are kept as long as they are right, and loaded when asked for; rows are read after the first screen is shown.
Each file is a script that hands its content to the page, because that is the only kind of file that a page which was
opened from disk may load. The first line of a section says what it was made from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lesioncount.errors import MapFileError
from lesioncount.files.formats import version_of
from lesioncount.files.remote_path import RemotePath
from lesioncount.folder.atomic import checksum_in
from lesioncount.folder.output import OutputFolder
from lesioncount.outputs.page import PAGES
from lesioncount.report.backgrounds import Slices
from lesioncount.report.templates import looks, template
from lesioncount.results.record_files import SHARDS, is_sharded, record_in, shard_of
from lesioncount.results.results import Results
from lesioncount.version import __version__

# Opens a file; with its key, and with whether there is a note in it.
_HEAD = "// lesioncount section "
_NOTED = " noted"
_CALL, _END = "lesioncountSection(", ");\n"

# Written at once: a ledger is brought up to date for each lot, and a lot is held.
_TOGETHER = 50

_LONGEST_HEAD = 200

# Rows of the table that are laid out at first: a few screens. The others are there, to be searched and sorted.
ROWS_AT_ONCE = 100

# Up to so many scans, all rows are part of the page: some megabytes, which a browser shows within a second.
PAGED_FROM = 2000

# Rows of a part: a megabyte of text.
_ROWS_OF_PART = 2000


@dataclass(frozen=True)
class SectionFolder:
    """The sections of a page, by the names of the records that they show.

    Attributes
    ----------
    out : OutputFolder
        Of the results, with the records.
    kind : PageKind
        Of the page.
    """

    out: OutputFolder
    kind: PageKind

    def file(self, record: str) -> str:
        """The file of a section: in a folder, where records are in folders."""
        shard = f"{shard_of(record)}/" if is_sharded(self.out.path) else ""
        return f"{self.kind.folder}/{shard}{record}.js"

    def key(self, record: str, images: Sequence[Image], checksum: str = "") -> str:
        """What a section depends on: the record, which knows maps by their hashes, images, and how we draw.

        The record is read, unless its check sum is known.

        Of an image, only its size and the time of its last change are looked at: a cohort has gigabytes of them.
        """
        digest = hashlib.sha256(f"{__version__}\n{looks(*self.kind.section_templates)}\n".encode())
        for image in images:
            digest.update(f"{image}\n".encode("utf-8", "backslashreplace"))
            if isinstance(image, RemotePath):
                digest.update(f"{version_of(image)}\n".encode())
            elif isinstance(image, Path):
                state = image.stat()
                digest.update(f"{state.st_size} {state.st_mtime_ns}\n".encode())
        digest.update((checksum or self._checksum(record)).encode("utf-8", "backslashreplace"))
        return digest.hexdigest()

    def _checksum(self, record: str) -> str:
        """That of a record; all of it, if it is not as we wrote it."""
        path = self.out.path / record_in(self.out.path, record)
        text = path.read_text("utf-8")
        return checksum_in(path.name, text) or text

    def keys(self, images: Mapping[str, Sequence[Image]], checksums: Mapping[str, str]) -> dict[str, str]:
        """The keys of all sections, given the images of each, and the check sums of records where they are known."""
        keys = {}
        for record, own in images.items():
            if Path(record).name != record or "\\" in record:  # a run that somebody else wrote may name anything
                raise MapFileError(
                    f"{record[:80]!r} is not the name of a record: it leads out of {self.out.path}. {self.kind.again}"
                )
            try:
                keys[record] = self.key(record, own, checksums.get(record, ""))
            except (OSError, ValueError):
                file = self.out.path / record_in(self.out.path, record)
                raise MapFileError(f"The record {file} is not there, or its image is gone. {self.kind.again}") from None
        return keys

    def noted(self, keys: Mapping[str, str]) -> dict[str, bool]:
        """Of the sections that are there and right: whether they have a note."""
        found = {}
        for record, key in keys.items():
            head = _head(self.out.path / self.file(record))
            if head.startswith(f"{_HEAD}{key}"):
                found[record] = head.endswith(_NOTED)
        return found

    def write(self, made: Iterable[tuple[str, SectionText]], keys: Mapping[str, str]) -> None:
        """Write sections as they come, in lots."""
        lot: dict[str, bytes] = {}
        for record, text in made:
            lot[self.file(record)] = _script(record, keys[record], text)
            if len(lot) == _TOGETHER:
                self.out.write_together(lot)
                lot = {}
        self.out.write_together(lot)

    def read(self, record: str) -> SectionText:
        """A section that is there."""
        head, _, script = (self.out.path / self.file(record)).read_text("utf-8").partition("\n")
        content = json.loads(script.removeprefix(_CALL).rpartition(_END)[0])
        return SectionText(content["summary"], content["body"], head.endswith(_NOTED))

    def remove(self, *, but: Iterable[str] | None = None) -> None:
        """Remove all sections of ours but some; without ``but``, all that a page reads, and empty folders."""
        kept = {self.file(record) for record in but or ()}
        for pattern in ("*.js", "*/*.js" if but is None else f"{SHARDS}/*.js"):
            for path in (self.out.path / self.kind.folder).glob(pattern):
                file = path.relative_to(self.out.path).as_posix()
                if file not in kept:
                    self.out.remove(file)
        if not kept:
            for path in (self.out.path / self.kind.folder).glob("*/"):
                self.out.remove_empty(f"{self.kind.folder}/{path.name}")
            self.out.remove_empty(self.kind.folder)


def _script(record: str, key: str, text: SectionText) -> bytes:
    content = json.dumps({"scan": record, "summary": text.summary, "body": text.body})
    return f"{_HEAD}{key}{_NOTED if text.has_note else ''}\n{_CALL}{content}{_END}".encode()


def _head(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.readline(_LONGEST_HEAD).decode("utf-8", "replace").rstrip()
    except OSError:
        return ""


def fingerprint_of(*about: object) -> str:
    """What a page depends on: how we draw, and what it is about."""
    return hashlib.sha256(repr((__version__, looks(), *about)).encode("utf-8", "backslashreplace")).hexdigest()


def is_written(folder: OutputFolder, page: str, fingerprint: str) -> bool:
    """Whether a page is there, ours, and made from just this."""
    try:
        head = (folder.path / page).read_text("utf-8", errors="replace")
    except OSError:
        return False
    return f'<meta name="fingerprint" content="{fingerprint}">' in head and folder.is_ours(page)


def n_parts(n_scans: int) -> int:
    """In how many parts the rows come; 0 if they are part of the page."""
    return -(-n_scans // _ROWS_OF_PART) if n_scans > PAGED_FROM else 0


def has_rows(out: Path, n_scans: int) -> bool:
    """Whether all parts are there that the page of so many scans reads."""
    return all((out / part_name(part)).is_file() for part in range(n_parts(n_scans)))


def part_name(part: int) -> str:
    """The file of a part of the table."""
    return f"{PAGES['count']}/table/{part}.js"


def write_rows(folder: OutputFolder, results: Results, anchors: Mapping[str, str]) -> None:
    """Write the rows of the table, if they are not part of the page, and remove those of an earlier page."""
    names = set()
    if n_parts(len(results.scans)):
        for part, script in enumerate(_scripts(results, anchors)):
            folder.write_together({part_name(part): script})
            names.add(part_name(part))
    for path in (folder.path / PAGES["count"] / "table").glob("*.js"):
        name = path.relative_to(folder.path).as_posix()
        if name not in names:
            folder.remove(name)


def _scripts(results: Results, anchors: Mapping[str, str]) -> Iterator[bytes]:
    """The parts as scripts."""
    row = template("scan_row.html.j2").module.scan_row
    kinds = ["raw"] if results.calibration is None else ["raw", "calibrated"]
    has_shards, is_guaranteed = is_sharded(results.out), results.is_guaranteed
    for begin in range(0, len(results.scans), _ROWS_OF_PART):
        scans = results.scans[begin : begin + _ROWS_OF_PART]
        shards = [shard_of(one.name) if has_shards else "" for one in scans]
        rows = (
            row(one, anchors[one.name], shard, kinds, is_guaranteed) for one, shard in zip(scans, shards, strict=True)
        )
        texts = [str(one).strip() for one in rows]
        yield f"lesioncountRows({json.dumps(texts)});\n".encode()


# What a section is drawn on: an image, a text that says why there is none, or nothing that was asked for.
Image = Path | str | None


@dataclass(frozen=True)
class SectionText:
    """A section as parts of a page, both of them HTML; and whether something could not be shown as it was to be."""

    summary: str
    body: str
    has_note: bool

    @classmethod
    def rendered(cls, summary: str, body: str, slices: Slices, **content: Any) -> SectionText:
        """From the names of two templates, and what they show."""
        head, text = (template(name).render(slices=slices, **content) for name in (summary, body))
        return cls(head, text, bool(slices.notes))


@dataclass(frozen=True, eq=False, kw_only=True)
class PageKind:
    """The page of one command: what it calls its things, and functions of its runs, results, records and entries.

    An entry is what becomes of a scan or a patient, with its ``name``, ``status`` and ``error``.
    """

    folder: str  # of sections; the page beside it has the same name
    template: str
    section_templates: tuple[str, ...]  # what a section looks like is decided by these
    what: str  # "scan"
    again: str  # what to do when a record is gone
    no_image: str  # what a section says when there is none; then comes where it was looked for
    many: int  # from more than so many on, sections are closed until they are asked for, but for the first ones
    has_parts: bool  # whether the rows of a very long table are files of their own
    about: Callable[[Any], object]  # what else the page says of a run
    images: Callable[[Any, Path, str], Mapping[str, Sequence[Path | None]]]  # of sessions, given where, and a suffix
    section: Callable[[Any, Sequence[Image], Any], SectionText]  # of a record; None: maps are read again
    interest: Callable[[Any], float]  # of an entry: those with more come first
    content: Callable[[Any, Sequence[Any], Mapping[str, str]], dict[str, Any]]  # what else its template asks for

"""Sections of a page as files in a folder beside it: kept as long as they are right, loaded when asked for.

Each is a script that hands its section to the page, because that is the only kind of file that a page which was opened
from disk may load. Its first line says what it was made from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lesioncount.errors import MapFileError
from lesioncount.files.formats import version_of
from lesioncount.files.remote_path import RemotePath
from lesioncount.folder.output import OutputFolder
from lesioncount.report.page_kind import Image, PageKind, SectionText
from lesioncount.report.templates import looks
from lesioncount.results.record_files import SHARDS, is_sharded, record_in, shard_of
from lesioncount.version import __version__

# Opens a file; with its key, and with whether there is a note in it.
_HEAD = "// lesioncount section "
_NOTED = " noted"
_CALL, _END = "lesioncountSection(", ");\n"

# Written at once: a ledger is brought up to date for each lot, and a lot is held.
_TOGETHER = 50

_LONGEST_HEAD = 200


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

    def key(self, record: str, images: Sequence[Image]) -> str:
        """What a section depends on: the record, which knows maps by their hashes, images, and how we draw.

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
        digest.update((self.out.path / record_in(self.out.path, record)).read_bytes())
        return digest.hexdigest()

    def keys(self, images: Mapping[str, Sequence[Image]]) -> dict[str, str]:
        """The keys of all sections, given the images of each."""
        keys = {}
        for record, own in images.items():
            if Path(record).name != record or "\\" in record:  # a run that somebody else wrote may name anything
                raise MapFileError(
                    f"{record[:80]!r} is not the name of a record: it leads out of {self.out.path}. {self.kind.again}"
                )
            try:
                keys[record] = self.key(record, own)
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

"""The journals of readers in a folder of results: ``reviews/READER.jsonl``."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import defaultdict
from pathlib import Path

from lesioncount.assess.reviews.events import ReviewEvent, event_of
from lesioncount.errors import ReviewError
from lesioncount.folder.journal import Journal
from lesioncount.folder.output import OutputFolder

# Inside of a folder of results.
REVIEWS = "reviews"

_ENDING = ".jsonl"
_LONGEST_NAME = 60

# What any disk takes in the name of a file; the first may be no dot, which would hide it, nor a dash.
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class ReaderJournal:
    """The journal of one reader: what was decided, in the order in which it was.

    Parameters
    ----------
    out : Path
        The folder of results.
    reader : str
        The name of a person, as typed.
    """

    def __init__(self, out: Path, reader: str) -> None:
        self.reader = checked_reader(reader)
        self.name = f"{REVIEWS}/{file_name(self.reader)}"
        self.n_skipped = 0
        self._folder = OutputFolder(out)
        self._journal = Journal(out / self.name)
        self._by_scan: dict[str, list[ReviewEvent]] = defaultdict(list)

    def append(self, event: ReviewEvent) -> None:
        """Write what was done, and wait until it is on the disk."""
        self._folder.append_line(self.name, event.to_line())

    def refresh(self) -> set[str]:
        """Read what was written since, by this process or another; the names of the scans it is about."""
        changed: set[str] = set()
        for line in self._journal.news():
            event = event_of(line)
            if event is None or event.reader != self.reader:
                self.n_skipped += bool(line.strip())
                continue
            self._by_scan[event.scan].append(event)
            changed.add(event.scan)
        return changed

    def events(self, scan: str) -> tuple[ReviewEvent, ...]:
        """What was done about a scan, as far as it was read."""
        return tuple(self._by_scan.get(scan, ()))

    def scans(self) -> tuple[str, ...]:
        """The names of the scans that something was done about."""
        return tuple(self._by_scan)


def checked_reader(name: str) -> str:
    """The name of a reader, without blanks around it."""
    plain = unicodedata.normalize("NFC", name).strip()
    if not plain or len(plain) > _LONGEST_NAME or not plain.isprintable():
        raise ReviewError(f"Expected the name of a reader, of 1 to {_LONGEST_NAME} characters.")
    return plain


def file_name(reader: str) -> str:
    """The journal of a reader, in the folder of reviews."""
    return f"{file_stem(reader)}{_ENDING}"


def file_stem(reader: str) -> str:
    """What the files of a reader are called. Where letters must be replaced, a check sum keeps two readers apart."""
    if _SAFE.fullmatch(reader):
        return reader
    plain = unicodedata.normalize("NFKD", reader).encode("ascii", "ignore").decode()
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", plain).strip("._-") or "reader"
    return f"{safe}-{hashlib.sha256(reader.encode()).hexdigest()[:6]}"


def readers_of(out: Path) -> tuple[str, ...]:
    """The names of all readers who have a journal in a folder of results, in order."""
    found = set()
    for path in sorted((out / REVIEWS).glob(f"*{_ENDING}")):
        reader = _first_reader(path)
        if reader is not None and file_name(reader) == path.name:
            found.add(reader)
    return tuple(sorted(found))


def read_journal(out: Path, reader: str) -> ReaderJournal:
    """The journal of a reader, read to its end."""
    journal = ReaderJournal(out, reader)
    journal.refresh()
    return journal


def notes_on_journals(out: Path) -> list[str]:
    """Lines that say nothing, as those do that a crash has cut: one sentence for each reader who has any."""
    skipped = {reader: read_journal(out, reader).n_skipped for reader in readers_of(out)}
    return [
        f"In the journal of {reader}, {n} line{'' if n == 1 else 's'} cannot be read and {'is' if n == 1 else 'are'} "
        "skipped. A crash leaves such lines, of decisions that were never shown as saved."
        for reader, n in skipped.items()
        if n
    ]


def _first_reader(path: Path) -> str | None:
    if path.is_symlink() or not path.is_file():
        return None
    events = (event_of(line) for line in Journal(path).news())
    return next((event.reader for event in events if event is not None), None)

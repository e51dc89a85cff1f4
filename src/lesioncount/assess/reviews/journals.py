"""What readers did: one event a line, in the journals of a folder of results, ``reviews/READER.jsonl``."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import unicodedata
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, convert, field
from msgspec.structs import asdict

from lesioncount.errors import ReviewError
from lesioncount.folder.journal import Journal
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.plain import plain_text, present, whole_number

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
    for number, line in enumerate(Journal(path).news(), start=1):
        event = event_of(line)
        if event is not None:
            try:
                checked_reader(event.reader)
            except ReviewError as error:
                raise ReviewError(f"{path}, line {number}: {str(error)[0].lower()}{str(error)[1:]}") from None
            return event.reader
    return None


Action = Literal["decide", "add", "undo", "done"]
Verdict = Literal["lesion", "none", "unsure", "several"]
VERDICTS: tuple[Verdict, ...] = ("lesion", "none", "unsure", "several")

# Lesions in one candidate: more than anybody counts by eye.
MOST_IN_ONE = 1000

# Of what was shown, as JSON: settings of the page and where it stood.
_LONGEST_SHOWN = 4000

# A day. Pages that were left open overnight say nothing about how long a decision takes.
_LONGEST_SECONDS = 86_400.0


class ReviewEvent(Struct, frozen=True, kw_only=True):
    """A decision about a candidate, a lesion that was added, the end of a scan, or the taking back of one of these.

    Attributes
    ----------
    reader, scan : str
        Names.
    action : {"decide", "add", "undo", "done"}
    map_sha256 : str or None
        Of the map that was shown: decisions are about no other.
    counting : str
        What candidates are: "regions" or "peaks", and of which channel of the map, if there are several.
    candidate : int or None
        The label of the candidate, in the run that was reviewed.
    peak : tuple of int
        Its voxel with the highest probability, by which it is known again.
    verdict : {"lesion", "none", "unsure", "several"} or None
    n : int
        Lesions in it, for "several".
    at : tuple of int
        The voxel of a lesion that was added.
    undoes : str or None
        The ``id`` of what is taken back.
    done : bool
        Whether the reader has looked at the whole scan.
    rest : {"none"} or None
        With ``done``: what all candidates are that were not decided.
    seconds : float
        That it took.
    shown : dict
        What was on the screen.
    time, id : str
        When it was, in UTC, and what it is known by.
    """

    reader: str
    scan: str
    action: Action
    map_sha256: str | None = None
    counting: str = "regions"
    candidate: int | None = None
    peak: tuple[int, ...] = ()
    verdict: Verdict | None = None
    n: int = 1
    at: tuple[int, ...] = ()
    undoes: str | None = None
    done: bool = False
    rest: Literal["none"] | None = None
    seconds: float = 0.0
    shown: dict[str, Any] = {}
    time: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    id: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        if not 0 <= self.seconds <= _LONGEST_SECONDS:
            raise ReviewError(f"Expected seconds from 0 to {_LONGEST_SECONDS:g}, but got {self.seconds}.")
        if self.action == "decide" and (self.verdict is None or not self.peak):
            raise ReviewError(f"Expected a verdict about a candidate, one of {', '.join(VERDICTS)}.")
        if self.verdict == "several" and not 2 <= self.n <= MOST_IN_ONE:
            raise ReviewError(f"Expected several to be from 2 to {MOST_IN_ONE} lesions, but got {self.n}.")
        if self.action == "add" and not self.at:
            raise ReviewError("Expected the voxel of the lesion that is added.")
        if self.action == "undo" and self.undoes is None:
            raise ReviewError("Expected what is taken back.")
        if len(plain_text(self.shown)) > _LONGEST_SHOWN:
            raise ReviewError(f"What was shown is longer than {_LONGEST_SHOWN} characters.")

    @property
    def n_lesions(self) -> int | None:
        """How many lesions a candidate was found to be; None for one that the reader is unsure of."""
        return {"lesion": 1, "none": 0, "unsure": None, "several": self.n}[self.verdict or "unsure"]

    def to_line(self) -> bytes:
        """As one line, without its end."""
        return plain_text(present(asdict(self))).encode("ascii")


def event_of(line: bytes) -> ReviewEvent | None:
    """What a line of a journal says; None if it was cut, or is of something else."""
    try:
        return convert(json.loads(line, parse_int=whole_number), ReviewEvent)
    except (ValueError, RecursionError):  # also a `ReviewError`
        return None

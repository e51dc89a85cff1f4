"""What a reader did, as one line of a journal."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from lesioncount.errors import ReviewError
from lesioncount.folder.plain import plain_text, present, typed, whole_number

Action = Literal["decide", "add", "undo", "done"]
Verdict = Literal["lesion", "none", "unsure", "several"]
VERDICTS: tuple[Verdict, ...] = ("lesion", "none", "unsure", "several")

# Lesions in one candidate: more than anybody counts by eye.
MOST_IN_ONE = 1000

# Of what was shown, as JSON: settings of the page and where it stood.
_LONGEST_SHOWN = 4000

# A day. Pages that were left open overnight say nothing about how long a decision takes.
_LONGEST_SECONDS = 86_400.0


@dataclass(frozen=True, kw_only=True)
class ReviewEvent:
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
    shown: dict[str, Any] = field(default_factory=dict)
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
        content = json.loads(line, parse_int=whole_number)
        return _typed(content) if isinstance(content, Mapping) else None
    except (ValueError, RecursionError, ReviewError):
        return None


def _typed(content: Mapping[str, Any]) -> ReviewEvent:
    return typed(content, ReviewEvent)

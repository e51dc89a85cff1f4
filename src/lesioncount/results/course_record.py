"""The record of one course: everything about the changes of a patient, as one JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from lesioncount.cohort.item import FileFacts
from lesioncount.folder.atomic import is_certified
from lesioncount.folder.plain import present, read_json, to_json, typed
from lesioncount.results.answers import Answer
from lesioncount.results.course_settings import KINDS, ComparedWith
from lesioncount.results.record import MapFacts
from lesioncount.results.record_files import record_in
from lesioncount.results.scan_numbers import ScanNumbers
from lesioncount.results.session_rows import FollowedLesion
from lesioncount.trust.candidate_table import CandidateTable, Counted

FORMAT_VERSION = 1

# What tells the folder of a comparison, and its records, from those of a count.
KIND = "changes"


@dataclass(frozen=True, eq=False)
class SessionRecord:
    """One session of a course.

    Attributes
    ----------
    session : str
    files : FileFacts
    map : MapFacts
        On the grid that all sessions of the course were brought to.
    is_resampled : bool
        Whether the map has another grid itself.
    warnings : tuple of str
    lesions : tuple of FollowedLesion
    n_dropped : int
        Candidates below the smallest size of the protocol.
    """

    session: str
    files: FileFacts
    map: MapFacts
    is_resampled: bool = False
    warnings: tuple[str, ...] = ()
    lesions: tuple[FollowedLesion, ...] = field(default=(), repr=False)
    n_dropped: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "session": self.session,
            "input": self.files.to_dict(),
            "map": asdict(self.map),
            "is_resampled": self.is_resampled,
            "warnings": self.warnings,
            "n_dropped": self.n_dropped,
            "lesions": [lesion.row() for lesion in self.lesions],
        }

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> Self:
        """From plain values."""
        return cls(
            typed(content["session"], str),
            typed(content["input"], FileFacts),
            typed(content["map"], MapFacts),
            typed(content["is_resampled"], bool),
            typed(content["warnings"], tuple[str, ...]),
            typed(content["lesions"], tuple[FollowedLesion, ...]),
            typed(content["n_dropped"], int),
        )


@dataclass(frozen=True, eq=False)
class ChangeCount:
    """How many lesions are new, gone or persisting.

    Attributes
    ----------
    numbers : ScanNumbers
        Of the distribution. Its ``cc_count`` is that of components above 0.5 that are there at one time only (of
        persisting lesions, at both).
    pmf, pmf_calibrated : tuple of float
        Probabilities of 0, 1, …
    component_counts : tuple of int
        Such components at each of `THRESHOLDS`.
    """

    numbers: ScanNumbers
    pmf: tuple[float, ...]
    pmf_calibrated: tuple[float, ...] = ()
    component_counts: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        more = present({"pmf_calibrated": self.pmf_calibrated})
        return {"count": self.numbers.row(), "pmf": self.pmf, **more, "component_counts": self.component_counts}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> Self:
        """From plain values."""
        pmf = typed(content["pmf"], tuple[float, ...])
        if not pmf:
            raise ValueError("expected a distribution")
        return cls(
            ScanNumbers.from_row(typed(content["count"], dict[str, Any])),
            pmf,
            typed(content.get("pmf_calibrated", ()), tuple[float, ...]),
            typed(content.get("component_counts", ()), tuple[int, ...]),
        )


@dataclass(frozen=True, eq=False)
class PairRecord:
    """What has changed from one session to the next.

    Attributes
    ----------
    name : str
    before, after : int
        Which sessions of the course.
    tolerance_mm : float
    counts : mapping of str to ChangeCount
        Of new, gone and persisting lesions.
    answers : tuple of Answer
        To the questions that were asked.
    """

    name: str
    before: int
    after: int
    tolerance_mm: float
    counts: Mapping[Counted, ChangeCount]
    answers: tuple[Answer, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        counts: dict[str, Any] = {kind: count.to_dict() for kind, count in self.counts.items()}
        return {
            "pair": self.name,
            "before": self.before,
            "after": self.after,
            "tolerance_mm": self.tolerance_mm,
            **counts,
            **present({"answers": tuple(answer.to_dict() for answer in self.answers)}),
        }

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> Self:
        """From plain values."""
        return cls(
            typed(content["pair"], str),
            typed(content["before"], int),
            typed(content["after"], int),
            typed(content["tolerance_mm"], float),
            {kind: ChangeCount.from_plain(typed(content[kind], dict[str, Any])) for kind in KINDS},
            typed(content.get("answers", ()), tuple[Answer, ...]),
        )


@dataclass(frozen=True, eq=False)
class CourseRecord:
    """Everything about the changes of one patient: what its JSON file holds.

    Attributes
    ----------
    name : str
    error : str or None
        Why it could not be compared.
    participant : str or None
    compared_with : ComparedWith or None
    sessions : tuple of SessionRecord
        In the order of time; none if it could not be compared.
    pairs : tuple of PairRecord
        Of each session and the next.
    notes : tuple of str
        What a reader must know: that maps were resampled, or do not cover each other.
    paths : tuple of str
        Of the maps.
    """

    name: str
    error: str | None = None
    participant: str | None = None
    compared_with: ComparedWith | None = None
    sessions: tuple[SessionRecord, ...] = ()
    pairs: tuple[PairRecord, ...] = ()
    notes: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    @property
    def is_compared(self) -> bool:
        """Whether there is a result."""
        return self.error is None

    @property
    def status(self) -> str:
        """In tables: ok or failed."""
        return "ok" if self.is_compared else "failed"

    @property
    def hashes(self) -> list[dict[str, Any]]:
        """The SHA-256 of all files that were read, by session."""
        return [session.files.hashes for session in self.sessions]

    @property
    def without_lesions(self) -> Self:
        """What a run keeps at hand: everything but the single candidates."""
        return replace(self, sessions=tuple(replace(one, lesions=()) for one in self.sessions))

    def table(self, pair: PairRecord, kind: Counted, *features: str) -> CandidateTable:
        """What the maps say of the candidates that may be new, gone or persisting."""
        is_gone = kind == "gone"
        lesions = self.sessions[pair.before if is_gone else pair.after].lesions
        others = [(one.gone_after if is_gone else one.new_before) or 0.0 for one in lesions]
        risen = [(one.gone_height if is_gone else one.new_height) or 0.0 for one in lesions]
        return CandidateTable.of_rows(lesions, *features, other=others, risen=risen)

    def to_json(self) -> str:
        """As text."""
        return to_json(
            {
                "format": FORMAT_VERSION,
                "kind": KIND,
                "patient": self.name,
                "participant_id": self.participant,
                "status": self.status,
                "error": self.error,
                "paths": self.paths,
                "settings": None if self.compared_with is None else self.compared_with.to_dict(),
                "notes": self.notes,
                "pairs": [pair.to_dict() for pair in self.pairs],
                "sessions": [session.to_dict() for session in self.sessions],
            }
        )

    @classmethod
    def from_plain(cls, content: Any) -> Self:
        """From what its file holds; ValueError, KeyError, TypeError or one of our errors if it is no record."""
        content = typed(content, dict[str, Any])
        if content["format"] != FORMAT_VERSION or content["kind"] != KIND:
            raise ValueError(f"expected a record of changes, of format {FORMAT_VERSION}")
        settings = content["settings"]
        record = cls(
            typed(content["patient"], str),
            typed(content["error"], str | None),
            typed(content["participant_id"], str | None),
            None if settings is None else ComparedWith.from_dict(typed(settings, dict[str, Any])),
            tuple(map(SessionRecord.from_plain, typed(content["sessions"], tuple[dict[str, Any], ...]))),
            tuple(map(PairRecord.from_plain, typed(content["pairs"], tuple[dict[str, Any], ...]))),
            typed(content["notes"], tuple[str, ...]),
            typed(content["paths"], tuple[str, ...]),
        )
        record.check()
        return record

    def check(self) -> None:
        """Raise ValueError unless its parts fit together."""
        n = len(self.sessions)
        has_results = n > 1 and bool(self.pairs) and self.compared_with is not None
        if self.is_compared != has_results or (not has_results and (n > 0 or self.pairs)):
            raise ValueError("expected two sessions or more, and what has changed between them; or an error")
        if any(not 0 <= pair.before < pair.after < n for pair in self.pairs):
            raise ValueError("expected pairs of sessions that are there")
        for session in self.sessions:
            if not all(lesion.lies_in(session.map.shape) and lesion.is_sound for lesion in session.lesions):
                raise ValueError("expected candidates inside of the map, with lineages and probabilities")


def read_course(out: Path, name: str, *, unchanged: bool = False) -> CourseRecord | None:
    """The record of a course; None when there is none, or it is not one; or not ``unchanged``, if it must be."""
    path = out / record_in(out, name)
    if unchanged and not is_certified(path):
        return None
    try:
        record = CourseRecord.from_plain(read_json(path))
    except (OSError, ValueError, KeyError, TypeError, IndexError, OverflowError):
        return None
    return record if record.name == name else None

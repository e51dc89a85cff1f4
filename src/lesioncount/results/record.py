"""The record of a scan, or of the scans of a patient: everything about its count or changes, as one JSON file.

A scan is a course of one session: `Record.all_sessions` gives it as one. What a run keeps at hand of a record is an
`Entry`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from lesioncount.cohort.item import FileFacts
from lesioncount.cohort.names import shown_name
from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.mixture import combined
from lesioncount.errors import LesionCountError
from lesioncount.files.geometry import VoxelGrid
from lesioncount.folder.atomic import checksum_in
from lesioncount.folder.plain import UNKNOWN, decoded, to_json
from lesioncount.results.answers import Answer
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.record_files import edited_record, record_in
from lesioncount.results.record_parts import MapFacts, Pair, SessionRecord, is_sound, map_held_once
from lesioncount.results.recorded import Recorded, held_once
from lesioncount.results.region_numbers import RegionRow
from lesioncount.results.scan_numbers import MemberNumbers, ScanNumbers
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import CandidateTable, Counted

FORMAT_VERSION = 1

# What tells the folder of a comparison, and its records, from those of a count.
CHANGES = "changes"

# The keys that a file has, whatever is in them; of a scan that was counted, also the second ones.
_OF_SCANS = frozenset({"format", "scan", "status", "error", "input", "settings"})
_OF_COUNTS = frozenset({"map", "warnings", "count", "n_dropped", "pmf", "lesions"})
_OF_COURSES = frozenset(
    {
        "format",
        "kind",
        "patient",
        "participant_id",
        "status",
        "error",
        "paths",
        "settings",
        "notes",
        "pairs",
        "sessions",
    }
)


# What is known of a file itself, and not written into it by a record.
_OF_FILES = ("checksum", "is_edited")


class Record(Struct, frozen=True):
    """Everything about one scan or patient: what its JSON file holds, by its keys.

    Attributes
    ----------
    format : int
    kind : str
        "changes", if scans of a patient were compared.
    scan, patient : str
        The name of the scan that was counted, or of the patient whose scans were compared.
    participant_id : str or None
        Of a comparison: whose scans they are.
    status : str
        In tables: ok or failed.
    error : str or None
        Why it could not be counted or compared.
    paths : tuple of str
        Of a comparison: the maps.
    input : FileFacts or None
        The map that was counted, and whose it is.
    settings : Recorded or None
        How it was done.
    map : MapFacts or None
        Of an ensemble, the map of its first member.
    warnings : tuple of str
    shares : tuple of int
        How the values of the map are spread, see `ValueSample`; none where that says nothing.
    count : ScanNumbers or None
        The row of ``counts.tsv``; None when counting failed.
    n_dropped : int
        Candidates below the smallest size of the protocol.
    pmf, pmf_calibrated, pmf_another_reader : tuple of float
        Probabilities of the counts 0, 1, …
    regions : tuple of RegionRow
        The count in each region, where it was counted with regions.
    answers : tuple of Answer
        To the questions that were asked.
    lesions : tuple of LesionRow
        All candidates; of an ensemble, those of all members.
    members : tuple of MemberNumbers
        None unless it is an ensemble.
    notes : tuple of str
        Of a comparison, what a reader must know: that maps were resampled, or do not cover each other.
    pairs : tuple of Pair
        Of each session and the next.
    sessions : tuple of SessionRecord
        In the order of time; none if it could not be compared.
    checksum : str
        Of its file, if that is as we wrote it.
    is_edited : bool
        Whether its file has a check sum that does not fit.
    """

    format: int = 0
    kind: str = ""
    scan: str = ""
    patient: str = ""
    participant_id: str | None = None
    status: str = ""
    error: str | None = None
    paths: tuple[str, ...] = ()
    input: FileFacts | None = None
    settings: Recorded | None = None
    map: MapFacts | None = None
    warnings: tuple[str, ...] = ()
    shares: tuple[int, ...] = ()
    count: ScanNumbers | None = None
    n_dropped: int = 0
    pmf: tuple[float, ...] = ()
    pmf_calibrated: tuple[float, ...] = ()
    pmf_another_reader: tuple[float, ...] = ()
    regions: tuple[RegionRow, ...] = ()
    answers: tuple[Answer, ...] = ()
    lesions: tuple[LesionRow, ...] = ()
    members: tuple[MemberNumbers, ...] = ()
    notes: tuple[str, ...] = ()
    pairs: tuple[Pair, ...] = ()
    sessions: tuple[SessionRecord, ...] = ()
    checksum: str = ""
    is_edited: bool = False

    @property
    def name(self) -> str:
        """That of the scan or the patient."""
        return self.patient or self.scan

    @property
    def shown(self) -> str:
        """The same as people wrote it, for tables and pages."""
        return shown_name(self.name)

    @property
    def is_ok(self) -> bool:
        """Whether there is a result."""
        return self.status == "ok"

    @property
    def is_of_changes(self) -> bool:
        """Whether scans of a patient were compared."""
        return self.kind == CHANGES

    @property
    def files(self) -> FileFacts | None:
        """The map that was counted, and whose it is."""
        return self.input

    @property
    def hashes(self) -> list[dict[str, Any]]:
        """The SHA-256 of all files that were read, by session."""
        return [one.hashes for one in self.all_files()]

    @property
    def whose(self) -> dict[str, str]:
        """Participant and session, where they are known: cells of tables."""
        if self.is_of_changes:
            return {"participant_id": self.participant_id} if self.participant_id else {}
        return {} if self.input is None else self.input.whose

    @property
    def numbers(self) -> ScanNumbers | None:
        """The row of ``counts.tsv``; None when counting failed."""
        return self.count

    @property
    def counted(self) -> ScanNumbers:
        """The numbers of a scan that is known to have been counted."""
        if self.count is None:
            raise LesionCountError(f"{self.name} was not counted: {self.error}")
        return self.count

    @property
    def grid(self) -> VoxelGrid:
        """Where the voxels of the map lie, for a scan that was counted."""
        if self.map is None or self.input is None:
            raise LesionCountError(f"{self.name} was not counted: {self.error}")
        return self.map.grid(self.input.path)

    @property
    def within(self) -> Path | None:
        """The mask that was counted inside of."""
        return None if self.input is None or self.input.mask is None else Path(self.input.mask)

    @property
    def disagrees(self) -> bool:
        """Whether the members of an ensemble differ by more than they are unsure of themselves."""
        ensemble = None if self.count is None else self.count.ensemble
        return ensemble is not None and ensemble.disagrees

    def all_files(self) -> tuple[FileFacts, ...]:
        """The maps of all sessions."""
        if self.is_of_changes:
            return tuple(session.input for session in self.sessions)
        return () if self.input is None else (self.input,)

    def all_sessions(self) -> tuple[SessionRecord, ...]:
        """The sessions, of which a scan that was counted is the only one."""
        if self.is_of_changes or self.input is None or self.map is None:
            return self.sessions
        session = self.input.session_id or ""
        only = SessionRecord(session, self.input, self.map, False, self.warnings, self.n_dropped, self.lesions)
        return (only,)

    def candidate_tables(self, *features: str) -> tuple[CandidateTable, ...]:
        """The candidates as counted: one table, or one per member of an ensemble; with the features of calibrations."""
        calibration = None if self.settings is None else self.settings.calibration
        features = (*(() if calibration is None else calibration.weights), *features)
        return tuple(CandidateTable.of_rows(rows, *features) for rows in self._by_member())

    def _by_member(self) -> Sequence[Sequence[LesionRow]]:
        """The candidates of each member of an ensemble; all of them, if it is none."""
        if len(self.members) < 2:
            return [self.lesions] if self.count is not None else []
        by_member: list[list[LesionRow]] = [[] for _ in self.members]
        for row in self.lesions:
            by_member[(row.member or 1) - 1].append(row)
        return by_member

    def table(self, pair: Pair, kind: Counted, *features: str) -> CandidateTable:
        """What the maps say of the candidates that may be new, gone or persisting."""
        is_gone = kind == "gone"
        lesions = self.sessions[pair.before if is_gone else pair.after].lesions
        others = [(one.gone_after if is_gone else one.new_before) or 0.0 for one in lesions]
        risen = [(one.gone_height if is_gone else one.new_height) or 0.0 for one in lesions]
        return CandidateTable.of_rows(lesions, *features, other=others, risen=risen)

    @property
    def summary(self) -> Entry:
        """What a run keeps at hand of it."""
        return Entry.of(self)

    def to_json(self) -> str:
        """As text."""
        always = _OF_COURSES if self.is_of_changes else _OF_SCANS | (_OF_COUNTS if self.is_ok else frozenset())
        values = {name: getattr(self, name) for name in Record.__struct_fields__ if name not in _OF_FILES}
        values["settings"] = None if self.settings is None else self.settings.plain
        return to_json({name: value for name, value in values.items() if name in always or value})

    @classmethod
    def failed(cls, name: str, why: str, *, of_changes: bool = False, **known: Any) -> Self:
        """The record of a scan or a patient that could not be counted or compared."""
        kind, scan, patient = (CHANGES, "", name) if of_changes else ("", name, "")
        return cls(FORMAT_VERSION, kind, scan, patient, status="failed", error=why, **known)

    def checked(self) -> Self:
        """The same, with settings that equal records share; ValueError or one of our errors if it is no record."""
        if self.format != FORMAT_VERSION or self.kind not in ("", CHANGES):
            raise ValueError(f"expected a record of format {FORMAT_VERSION}")
        if self.is_ok != (self.error is None) or not self.name:
            raise ValueError("expected a name, and a result or an error")
        if self.is_of_changes:
            self._check_changes()
        elif self.is_ok:
            self._check_count()
        return self if self.settings is None else replace(self, settings=held_once(self.settings))

    def _check_count(self) -> None:
        if self.count is None or not is_sound(self.count, self.pmf, self.pmf_calibrated):
            raise ValueError("expected numbers and their distribution, both calibrated or neither")
        if not (all(one.is_sound for one in self.regions) and all(one.is_sound for one in self.answers)):
            raise ValueError("expected a distribution for each region, and answers to be probabilities")
        of_maps: Sequence[MemberNumbers | ScanNumbers] = self.members or (self.count,)
        if not all(1 <= (row.member or 1) <= len(of_maps) for row in self.lesions):
            raise ValueError("expected candidates of the members there are")
        for numbers, rows in zip(of_maps, self._by_member(), strict=True):
            if numbers.n_candidates not in (len(rows), UNKNOWN):
                raise ValueError("expected as many candidates as were counted")
        if not self.all_sessions():
            raise ValueError("expected the files and the map of a scan that was counted")
        for session in self.all_sessions():
            session.check()

    def _check_changes(self) -> None:
        n = len(self.sessions)
        has_results = n > 1 and bool(self.pairs) and self.settings is not None
        if self.is_ok != has_results or (not has_results and (n > 0 or self.pairs)):
            raise ValueError("expected two sessions or more, and what has changed between them; or an error")
        if any(not 0 <= pair.before < pair.after < n for pair in self.pairs):
            raise ValueError("expected pairs of sessions that are there")
        for session in self.sessions:
            session.check()
            if any(lesion.lineage < 1 for lesion in session.lesions):
                raise ValueError("expected a lineage for each candidate")
        for pair in self.pairs:
            if not all(one.is_sound for one in pair.counts.values()) or not all(one.is_sound for one in pair.answers):
                raise ValueError("expected distributions of changes, and answers to be probabilities")


class Entry(Record, frozen=True, eq=False):
    """What a run keeps at hand of a scan or patient: its record without single candidates, a kilobyte of a scan.

    Attributes
    ----------
    tables : tuple of CandidateTable
        The candidates of a scan, as counted: one table, or one per member of an ensemble.
    own_calibration : Calibration or None
        Of a scan with a known count that its run has learned from: what corrects it in place of the run's.
    """

    tables: tuple[CandidateTable, ...] = ()
    own_calibration: Calibration | None = None

    def __post_init__(self) -> None:
        """Hold the facts of equal maps once, also where it comes from another process."""
        force_setattr(self, "map", None if self.map is None else map_held_once(self.map))

    @classmethod
    def of(cls, record: Record, features: Sequence[str] = ()) -> Self:
        """Of a record; tables have the features of its calibration, and these."""
        values = {name: getattr(record, name) for name in Record.__struct_fields__}
        values |= {"settings": None, "lesions": (), "sessions": tuple(one.brief for one in record.sessions)}
        if not record.is_of_changes:
            values |= {"pmf": (), "pmf_calibrated": (), "pmf_another_reader": ()}
            values |= {"regions": tuple(one.numbers for one in record.regions)}
        return cls(**values, tables=record.candidate_tables(*features), own_calibration=_own(record))

    def distribution(self, calibration: Calibration) -> CountDistribution:
        """The distribution of the count."""
        return combined([calibration.distribution(table) for table in self.tables])

    def corrected_by(self, calibration: Calibration) -> Calibration:
        """The calibration of a run, or that of this scan."""
        return self.own_calibration or calibration


def _own(record: Record) -> Calibration | None:
    """The calibration of a scan in a run that has learned from known counts, where scans have several."""
    return None if record.settings is None or record.settings.known is None else record.settings.calibration


def read_record(out: Path, name: str, *, of_changes: bool | None = None, unchanged: bool = False) -> Record | None:
    """The record of a scan or a patient; None when there is none, or it is not one.

    Parameters
    ----------
    out : Path
    name : str
    of_changes : bool, optional
        Whether it must be one of a comparison, or of a count. Default: either.
    unchanged : bool, default False
        Whether it must be as we wrote it.
    """
    path = out / record_in(out, name)
    try:
        text = path.read_text("utf-8")
        checksum = checksum_in(path.name, text)
        if unchanged and not checksum:
            return None
        record = decoded(text, Record, is_ours=bool(checksum)).checked()
    except (OSError, ValueError, TypeError, OverflowError):
        return None
    record = replace(record, checksum=checksum, is_edited=bool(record.checksum) and not checksum)
    return record if record.name == name and of_changes in (None, record.is_of_changes) else None


def trusted_record(out: Path, name: str, *, of_changes: bool | None = None) -> Record | None:
    """The same for those who take its numbers: raise if they are not those that were written."""
    record = read_record(out, name, of_changes=of_changes)
    if record is not None and record.is_edited:
        raise edited_record(out, name)
    return record

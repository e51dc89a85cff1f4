"""The record of one scan: everything about its count, as one JSON file; and the summary that a run keeps at hand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from lesioncount.cohort.item import FileFacts
from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.mixture import MixtureOfCounts, combined
from lesioncount.errors import LesionCountError
from lesioncount.files.geometry import VoxelGrid
from lesioncount.folder.atomic import is_certified_text
from lesioncount.folder.plain import cells, decoded_as, present, to_json
from lesioncount.folder.sent import Sent
from lesioncount.results.answers import Answer, answers
from lesioncount.results.count_warnings import in_general
from lesioncount.results.lesion_rows import LesionRow, lesion_rows
from lesioncount.results.record_files import record_in
from lesioncount.results.region_numbers import RegionCount, RegionNumbers, read_region_counts, region_counts
from lesioncount.results.scan_count import ScanCount
from lesioncount.results.scan_numbers import (
    CONFIDENCE,
    CandidateNumbers,
    CountNumbers,
    EnsembleNumbers,
    MemberNumbers,
    ScanNumbers,
)
from lesioncount.results.settings import CountedWith, Settings
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import CandidateTable

if TYPE_CHECKING:
    from lesioncount.trust.fitting import CalibrationFit

FORMAT_VERSION = 1


# Existence is a difference of two numbers that are written with all their digits.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class MapFacts(Sent):
    """What is recorded of a map: its format, and where its voxels lie."""

    file_format: str
    shape: tuple[int, ...]
    dtype: str
    spacing_mm: tuple[float, ...] | None
    affine: tuple[tuple[float, ...], ...] | None
    why_unplaced: str | None = None

    def __post_init__(self) -> None:
        """Check what was read from a file."""
        if len(self.shape) not in (2, 3) or min(self.shape) < 1:
            raise ValueError("a map has two or three axes with voxels")
        if self.spacing_mm is not None and len(self.spacing_mm) != len(self.shape):
            raise ValueError("a voxel has a size along each axis")
        if self.affine is not None and [len(row) for row in self.affine] != [4] * 4:
            raise ValueError("an affine has four rows and four columns")

    @classmethod
    def of(cls, count: ScanCount) -> Self:
        """Of the map that was counted."""
        source = count.source
        affine = None if source.affine is None else tuple(map(tuple, source.affine.tolist()))
        return cls(source.format, source.shape, str(source.dtype), source.spacing_mm, affine, source.grid.why_unplaced)

    def grid(self, path: str) -> VoxelGrid:
        """The grid of the map, which is in this file."""
        affine = None if self.affine is None else np.array(self.affine, dtype=np.float64).reshape(4, 4)
        return VoxelGrid(Path(path), self.shape, affine, self.spacing_mm, self.why_unplaced)


@dataclass(frozen=True, eq=False, slots=True)
class ScanSummary(Sent):
    """What a run knows of one scan without its single candidates: a kilobyte, for a run holds those of all its scans.

    Attributes
    ----------
    name : str
    error : str or None
        Why it could not be counted.
    files : FileFacts or None
    map : MapFacts or None
        Of an ensemble, the map of its first member.
    numbers : ScanNumbers or None
        Its row of ``counts.tsv``; None when counting failed.
    tables : tuple of CandidateTable
        The candidates as counted: one table, or one per member of an ensemble.
    members : tuple of MemberNumbers
        None unless it is an ensemble.
    warnings : tuple of str
    n_dropped : int
        Candidates below the smallest size of the protocol.
    regions : tuple of RegionNumbers
        The count in each region, where it was counted with regions.
    answers : tuple of Answer
        To the questions that were asked.
    """

    name: str
    error: str | None = None
    files: FileFacts | None = None
    map: MapFacts | None = None
    numbers: ScanNumbers | None = None
    tables: tuple[CandidateTable, ...] = ()
    members: tuple[MemberNumbers, ...] = ()
    warnings: tuple[str, ...] = ()
    n_dropped: int = 0
    regions: tuple[RegionNumbers, ...] = ()
    answers: tuple[Answer, ...] = ()

    def __post_init__(self) -> None:
        """Hold the facts of equal maps once."""
        object.__setattr__(self, "map", None if self.map is None else _held_once(self.map))

    @property
    def is_counted(self) -> bool:
        """Whether there is a count."""
        return self.numbers is not None

    @property
    def status(self) -> str:
        """In tables: ok or failed."""
        return "ok" if self.is_counted else "failed"

    @property
    def hashes(self) -> list[dict[str, Any]]:
        """The SHA-256 of all files that were read."""
        return [] if self.files is None else [self.files.hashes]

    @property
    def counted(self) -> ScanNumbers:
        """The numbers of a scan that is known to have been counted."""
        if self.numbers is None:
            raise LesionCountError(f"{self.name} was not counted: {self.error}")
        return self.numbers

    @property
    def grid(self) -> VoxelGrid:
        """Where the voxels of the map lie, for a scan that was counted."""
        if self.map is None or self.files is None:
            raise LesionCountError(f"{self.name} was not counted: {self.error}")
        return self.map.grid(self.files.path)

    @property
    def within(self) -> Path | None:
        """The mask that was counted inside of."""
        return None if self.files is None or self.files.mask is None else Path(self.files.mask)

    @property
    def disagrees(self) -> bool:
        """Whether the members of an ensemble differ by more than they are unsure of themselves."""
        return self.numbers is not None and self.numbers.ensemble is not None and self.numbers.ensemble.disagrees

    def distribution(self, calibration: Calibration) -> CountDistribution:
        """The distribution of the count."""
        return combined([calibration.distribution(table) for table in self.tables])

    def row(self) -> dict[str, Any]:
        """The cells of its row in ``counts.tsv``."""
        numbers = {} if self.numbers is None else self.numbers.row()
        path = None if self.files is None else self.files.relative
        return {"scan": self.name, **self.whose, "path": path, "status": self.status, **numbers, "error": self.error}

    def region_rows(self) -> list[dict[str, Any]]:
        """The cells of its rows in ``regions.tsv``."""
        return [{"scan": self.name, **self.whose, **region.row()} for region in self.regions]

    def answer_rows(self) -> list[dict[str, Any]]:
        """The cells of its rows in ``answers.tsv``."""
        return [{"scan": self.name, **self.whose, **answer.row()} for answer in self.answers]

    @property
    def whose(self) -> dict[str, str]:
        """Participant and session, where they are known: cells of tables."""
        return {} if self.files is None else self.files.whose


@dataclass(frozen=True)
class _Content:
    """The keys of a record, as its file has them; those with a default may be missing."""

    format: int
    scan: str
    status: str
    error: str | None
    input: FileFacts | None
    settings: dict[str, Any] | None = None
    map: MapFacts | None = None
    warnings: tuple[str, ...] = ()
    count: dict[str, Any] = field(default_factory=dict)
    n_dropped: int = 0
    pmf: tuple[float, ...] = ()
    pmf_calibrated: tuple[float, ...] = ()
    regions: tuple[Any, ...] = ()
    answers: tuple[Answer, ...] = ()
    lesions: tuple[LesionRow, ...] | None = None
    members: tuple[dict[str, Any], ...] = ()


@lru_cache(maxsize=256)
def _held_once(facts: MapFacts) -> MapFacts:
    """The first of equal ones: most scans of a cohort have the same grid."""
    return facts


@dataclass(frozen=True, eq=False)
class ScanRecord:
    """Everything about the count of a scan: what its JSON file holds.

    Attributes
    ----------
    summary : ScanSummary
    counted_with : CountedWith or None
    pmf, pmf_calibrated : tuple of float
        Probabilities of the counts 0, 1, …
    lesions : tuple of LesionRow
        All candidates; of an ensemble, those of all members.
    regions : tuple of RegionCount
        The count in each region, with its distribution.
    """

    summary: ScanSummary
    counted_with: CountedWith | None = None
    pmf: tuple[float, ...] = ()
    pmf_calibrated: tuple[float, ...] = ()
    lesions: tuple[LesionRow, ...] = field(default=(), repr=False)
    regions: tuple[RegionCount, ...] = field(default=(), repr=False)

    @property
    def name(self) -> str:
        """That of the scan."""
        return self.summary.name

    @classmethod
    def of(cls, name: str, counts: Sequence[ScanCount], files: FileFacts, settings: Settings) -> Self:
        """The record of the count of one map, or of several members that are combined."""
        fit = settings.calibration
        raw = [count.result.distribution for count in counts]
        together = combined(raw)
        features = () if fit is None else fit.features
        tables = tuple(CandidateTable.of_candidates(count.result.candidates, *features) for count in counts)
        corrected = None if fit is None else combined([fit.calibration.distribution(table) for table in tables])
        calibration = None if fit is None else fit.calibration
        regions = region_counts(counts, calibration)
        summary = ScanSummary(
            name,
            files=files,
            map=MapFacts.of(counts[0]),
            numbers=ScanNumbers(
                CandidateNumbers.of(counts),
                CountNumbers.of(together),
                None if corrected is None else CountNumbers.of(corrected),
                None if fit is None else fit.fingerprint,
                _guaranteed(tables, fit) if settings.conformal else None,
                EnsembleNumbers.of(together, len(counts)) if isinstance(together, MixtureOfCounts) else None,
            ),
            tables=tables,
            members=_members(counts, raw) if len(counts) > 1 else (),
            warnings=_once_each(warning for count in counts for warning in count.warnings),
            n_dropped=sum(count.result.candidates.n_dropped for count in counts),
            regions=tuple(one.numbers for one in regions),
            answers=answers(settings.questions, counts, calibration),
        )
        return cls(
            summary,
            settings.recorded,
            tuple(together.pmf().tolist()),
            () if corrected is None else tuple(corrected.pmf().tolist()),
            lesion_rows(counts, calibration),
            regions,
        )

    def to_json(self) -> str:
        """As text."""
        summary = self.summary
        content = {
            "format": FORMAT_VERSION,
            "scan": summary.name,
            "status": summary.status,
            "error": summary.error,
            "input": None if summary.files is None else summary.files.to_dict(),
            "settings": None if self.counted_with is None else self.counted_with.to_dict(),
        }
        if summary.map is not None and summary.numbers is not None:
            content |= {
                "map": cells(summary.map),
                "warnings": summary.warnings,
                "count": summary.numbers.row(),
                "n_dropped": summary.n_dropped,
                "pmf": self.pmf,
                **present({"pmf_calibrated": self.pmf_calibrated}),
                **present({"regions": tuple(region.to_dict() for region in self.regions)}),
                **present({"answers": tuple(answer.to_dict() for answer in summary.answers)}),
                "lesions": [lesion.row() for lesion in self.lesions],
                **present({"members": tuple(member.row() for member in summary.members)}),
            }
        return to_json(content)

    @classmethod
    def from_json(cls, text: str, *, is_ours: bool = False, features: Sequence[str] = ()) -> Self:
        """From text, which is ours if it carries our check sum; tables have the features of its calibration, and these.

        ValueError, KeyError, TypeError or one of our errors if it is no record.
        """
        given = decoded_as(text, _Content, is_ours=is_ours)
        if given.format != FORMAT_VERSION:
            raise ValueError(f"expected format {FORMAT_VERSION}")
        is_ok, n_members = given.status == "ok", max(len(given.members), 1)
        if is_ok and (given.input is None or given.map is None or given.lesions is None or not given.pmf):
            raise ValueError("expected files, map, candidates and distribution of a scan that was counted")
        lesions = (given.lesions or ()) if is_ok else ()
        _check_lesions(lesions, n_members)
        counted_with = None if given.settings is None else CountedWith.from_dict(given.settings)
        if counted_with is not None and counted_with.calibration is not None:
            features = (*counted_with.calibration.weights, *features)
        of_maps = _by_member(lesions, n_members) if is_ok else ()
        tables = tuple(CandidateTable.of_rows(rows, *features) for rows in of_maps)
        regions = read_region_counts(given.regions)
        summary = ScanSummary(
            given.scan,
            error=given.error,
            files=given.input,
            map=given.map if is_ok else None,
            numbers=ScanNumbers.from_row(given.count) if is_ok else None,
            tables=tables,
            members=tuple(MemberNumbers.from_row(row) for row in given.members),
            warnings=given.warnings,
            n_dropped=given.n_dropped,
            regions=tuple(one.numbers for one in regions),
            answers=given.answers,
        )
        of_map = [lesion for lesion in lesions if lesion.is_of_first_member]
        if summary.map is not None and not all(lesion.lies_in(summary.map.shape) for lesion in of_map):
            raise ValueError("expected candidates inside of the map")
        if summary.numbers is not None and (summary.numbers.calibrated is None) == bool(given.pmf_calibrated):
            raise ValueError("expected calibrated numbers and their distribution, or neither")
        return cls(
            summary,
            counted_with,
            given.pmf if is_ok else (),
            given.pmf_calibrated,
            lesions,
            regions,
        )


def read_record(out: Path, name: str, *, unchanged: bool = False, features: Sequence[str] = ()) -> ScanRecord | None:
    """The record of a scan; None when there is none, or it is not one; or not ``unchanged``, if it must be."""
    path = out / record_in(out, name)
    try:
        text = path.read_text("utf-8")
        is_ours = is_certified_text(path.name, text)
        if unchanged and not is_ours:
            return None
        record = ScanRecord.from_json(text, is_ours=is_ours, features=features)
    except (OSError, ValueError, KeyError, TypeError, IndexError, OverflowError):
        return None
    return record if record.name == name else None


def _guaranteed(tables: Sequence[CandidateTable], fit: CalibrationFit | None) -> tuple[int, int] | None:
    return None if fit is None else fit.guaranteed(tables[0], CONFIDENCE)


def _members(counts: Sequence[ScanCount], raw: Sequence[CountDistribution]) -> tuple[MemberNumbers, ...]:
    return tuple(
        MemberNumbers(number, str(count.source.path), CandidateNumbers.of([count]), CountNumbers.of(one))
        for number, (count, one) in enumerate(zip(counts, raw, strict=True), start=1)
    )


def _once_each(warnings: Iterable[str]) -> tuple[str, ...]:
    """The first warning of each kind: members of an ensemble mostly say the same."""
    first: dict[str, str] = {}
    for warning in warnings:
        first.setdefault(in_general(warning), warning)
    return tuple(first.values())


def _member_of(row: LesionRow) -> int:
    return 1 if row.member is None else row.member


def _check_lesions(lesions: Sequence[LesionRow], n_members: int) -> None:
    for row in lesions:
        saddle = row.saddle_probability or 0.0
        if not 1 <= _member_of(row) <= n_members or not 0 <= row.existence <= 1:
            raise ValueError("expected candidates of the members there are, and probabilities in [0, 1]")
        if not 0 <= saddle <= row.height <= 1 or not math.isclose(
            row.existence, row.height - saddle, abs_tol=_ROUNDING
        ):
            raise ValueError("expected peaks above their saddles, and their difference as existence")


def _by_member(lesions: Sequence[LesionRow], n_members: int) -> Sequence[Sequence[LesionRow]]:
    """The candidates of each member of an ensemble; all of them, if it is none."""
    if n_members == 1:
        return (lesions,)
    by_member: list[list[LesionRow]] = [[] for _ in range(n_members)]
    for row in lesions:
        by_member[_member_of(row) - 1].append(row)
    return by_member

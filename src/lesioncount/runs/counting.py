"""One scan → its record: the count of its map, or of several members that are combined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lesioncount.cohort.item import FileFacts
from lesioncount.distributions.mixture import MixtureOfCounts, combined
from lesioncount.results.answers import answers
from lesioncount.results.count_warnings import in_general
from lesioncount.results.lesion_rows import lesion_rows, with_list
from lesioncount.results.record import FORMAT_VERSION, Record
from lesioncount.results.record_parts import MapFacts
from lesioncount.results.region_numbers import region_counts
from lesioncount.results.scan_count import ScanCount
from lesioncount.results.scan_numbers import (
    CONFIDENCE,
    AnotherReader,
    CandidateNumbers,
    CountNumbers,
    EnsembleNumbers,
    MemberNumbers,
    ScanNumbers,
)
from lesioncount.results.settings import Settings
from lesioncount.trust.candidate_table import CandidateTable


def counted(name: str, counts: Sequence[ScanCount], files: FileFacts, settings: Settings) -> Record:
    """The record of a scan whose maps have been counted."""
    settings = settings.of_scan(name)
    fit, calibration = settings.calibration, None if settings.calibration is None else settings.calibration.calibration
    together = combined([count.result.distribution for count in counts])
    features = () if fit is None else fit.features
    tables = [CandidateTable.of_candidates(count.result.candidates, *features) for count in counts]
    corrected = None if calibration is None else combined([calibration.distribution(table) for table in tables])
    reads, pool = settings.reads.get(name, ()), None if fit is None else fit.pool
    another = pool.distribution(corrected, reads) if reads and pool is not None and corrected is not None else None
    numbers = ScanNumbers.of(
        CandidateNumbers.of(counts),
        CountNumbers.of(together),
        None if corrected is None else CountNumbers.of(corrected),
        settings.recorded.fingerprint(),
        fit.guaranteed(tables[0], CONFIDENCE) if fit is not None and settings.conformal else None,
        EnsembleNumbers.of(together, len(counts)) if isinstance(together, MixtureOfCounts) else None,
        None if another is None else AnotherReader.of(reads, another),
    )
    return Record(
        FORMAT_VERSION,
        scan=name,
        status="ok",
        input=files,
        settings=settings.recorded,
        map=MapFacts.of(counts[0]),
        warnings=_once_each(warning for count in counts for warning in count.warnings),
        shares=counts[0].shares if len(tables[0]) and counts[0].result.candidates.warning is None else (),
        count=numbers,
        n_dropped=sum(count.result.candidates.n_dropped for count in counts),
        pmf=tuple(together.pmf().tolist()),
        pmf_calibrated=() if corrected is None else tuple(corrected.pmf().tolist()),
        pmf_another_reader=() if another is None else tuple(another.pmf().tolist()),
        regions=region_counts(counts, calibration),
        answers=answers(settings.questions, counts, calibration),
        lesions=with_list(lesion_rows(counts, calibration), settings.list_threshold),
        members=tuple(map(MemberNumbers.of, range(1, len(counts) + 1), counts)) if len(counts) > 1 else (),
    )


def _once_each(warnings: Iterable[str]) -> tuple[str, ...]:
    """The first warning of each kind: members of an ensemble mostly say the same."""
    first: dict[str, str] = {}
    for warning in warnings:
        first.setdefault(in_general(warning), warning)
    return tuple(first.values())

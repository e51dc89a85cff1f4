"""A folder of results → what groups are made of: scans or pairs of them, each with a distribution, and whose it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lesioncount.assess.as_counts import find_changes
from lesioncount.assess.beside_truth import table_names
from lesioncount.cohort.whose import label_of
from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.protocol import CountingProtocol
from lesioncount.results.course_record import CourseRecord, PairRecord
from lesioncount.results.course_results import ChangeResults
from lesioncount.results.record import ScanSummary
from lesioncount.results.results import RunResults, read_counted
from lesioncount.results.scan_numbers import WHOSE_COLUMNS
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import Counted


@dataclass(frozen=True, eq=False)
class CountedSubject:
    """One thing that was counted: a scan, or a pair of scans of one patient.

    Attributes
    ----------
    names : tuple of str
        What it may be called in a table; the first is its name.
    members : tuple of CountDistribution
        The count by each member of an ensemble; one where there is one map.
    participant, session : str or None
        Whose it is, where that is known.
    folder : Path or None
        Of its map: a table of participants may be there, or above.
    """

    names: tuple[str, ...]
    members: tuple[CountDistribution, ...]
    participant: str | None = None
    session: str | None = None
    folder: Path | None = None

    @property
    def name(self) -> str:
        """The first of its names."""
        return self.names[0]

    @property
    def participant_names(self) -> tuple[str, ...]:
        """How a table of participants may call the one that it is of: with ``sub-`` or without."""
        label = label_of(self.participant)
        return () if self.participant is None else (self.participant, f"sub-{label}", str(label))


@dataclass(frozen=True, eq=False)
class CountedCohort:
    """Everything that was counted, and how.

    Attributes
    ----------
    source : str
        Where it comes from: a folder of results.
    subjects : tuple of CountedSubject
    protocol : CountingProtocol
        What was counted as one lesion.
    is_calibrated : bool
        Whether distributions were corrected by a calibration.
    n_failed : int
        Scans that could not be counted, or patients that could not be compared.
    of : {"lesions", "new", "gone", "persisting"}
        What was counted: lesions of scans, or changes of pairs of them.
    """

    source: str
    subjects: tuple[CountedSubject, ...]
    protocol: CountingProtocol
    is_calibrated: bool = False
    n_failed: int = 0
    of: Counted = "lesions"


def read_cohort(out: Path, of: Counted | None = None) -> CountedCohort:
    """What was counted in a folder of results: lesions of scans or, in that of a comparison, changes of pairs."""
    found = find_changes(out, of)
    return cohort_of(read_counted(out)) if found is None else cohort_of_changes(*found)


def cohort_of(results: RunResults) -> CountedCohort:
    """The scans of a run: their calibrated counts where the run was calibrated, else the counts as maps have them."""
    calibration = results.calibration
    subjects = tuple(_subject(scan, calibration or Calibration()) for scan in results.counted)
    is_calibrated, n_failed = calibration is not None, len(results.failed)
    return CountedCohort(str(results.out), subjects, results.protocol, is_calibrated, n_failed)


def _subject(scan: ScanSummary, calibration: Calibration) -> CountedSubject:
    members = tuple(calibration.distribution(table) for table in scan.tables)
    participant, session = (scan.whose.get(column) for column in WHOSE_COLUMNS)
    return CountedSubject(table_names(scan), members, participant, session, scan.grid.path.parent)


def cohort_of_changes(results: ChangeResults, kind: Counted) -> CountedCohort:
    """The pairs of a comparison: their calibrated numbers of changes where these were calibrated."""
    counts = results.distributions(kind)
    subjects = tuple(_pair(course, pair, counts[pair.name]) for course in results.compared for pair in course.pairs)
    compared_with = results.run.compared_with
    is_calibrated = kind in compared_with.calibrations
    return CountedCohort(
        str(results.out), subjects, compared_with.protocol, is_calibrated, len(results.failed), of=kind
    )


def _pair(course: CourseRecord, pair: PairRecord, count: CountDistribution) -> CountedSubject:
    """A pair belongs to its later session; all pairs of a course are of one patient, whatever he is called."""
    later = course.sessions[pair.after]
    names = (pair.name, *((course.name,) if len(course.pairs) == 1 else ()))
    participant = course.participant or course.name
    return CountedSubject(names, (count,), participant, later.session, Path(later.files.path).parent)

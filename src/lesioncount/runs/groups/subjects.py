"""A folder of results → what groups are made of: scans with the distribution of a count, and whose they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.protocol import CountingProtocol
from lesioncount.runs.comparison import table_names
from lesioncount.runs.records import ScanSummary
from lesioncount.runs.results import RunResults
from lesioncount.runs.scan_numbers import WHOSE_COLUMNS
from lesioncount.runs.whose import label_of
from lesioncount.trust.calibration import Calibration


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
        Scans that could not be counted.
    """

    source: str
    subjects: tuple[CountedSubject, ...]
    protocol: CountingProtocol
    is_calibrated: bool = False
    n_failed: int = 0


def cohort_of(results: RunResults) -> CountedCohort:
    """The scans of a run: their calibrated counts where the run was calibrated, else the counts as maps have them."""
    calibration = results.calibration
    subjects = tuple(_subject(scan, calibration or Calibration()) for scan in results.counted)
    is_calibrated, n_failed = calibration is not None, len(results.failed)
    return CountedCohort(str(results.out), subjects, results.protocol, is_calibrated, n_failed)


def _subject(scan: ScanSummary, calibration: Calibration) -> CountedSubject:
    heights = zip(scan.peak_probability, scan.saddle_probability, strict=True)
    members = tuple(calibration.distribution(peaks, saddles) for peaks, saddles in heights)
    participant, session = (scan.whose.get(column) for column in WHOSE_COLUMNS)
    return CountedSubject(table_names(scan), members, participant, session, scan.grid.path.parent)

"""Results → one thing that is counted of them: what is evaluated, calibrated and summarized."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lesioncount.cohort.table_names import names_in_tables
from lesioncount.cohort.whose import label_of
from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.mixture import combined
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.distributions.sum_of_counts import SumOfCounts
from lesioncount.protocol import CountingProtocol
from lesioncount.results.record import FORMAT_VERSION, Entry, Record
from lesioncount.results.recorded import Recorded
from lesioncount.results.scan_count import THRESHOLDS
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import Counted

if TYPE_CHECKING:
    from lesioncount.results.results import Results  # which gives these


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
class CountsOf:
    """The counts of lesions; or of new, gone or persisting ones, with a pair of sessions in the place of a scan.

    Attributes
    ----------
    results : Results
        That it is of.
    of : {"lesions", "new", "gone", "persisting"}
    counted : tuple of Entry
        The scans that have a count. Of changes, each is the session of a pair that the candidates are in: the later
        one, of gone lesions the earlier one.
    """

    results: Results
    of: Counted
    counted: tuple[Entry, ...]

    @property
    def out(self) -> Path:
        """The folder of the results."""
        return self.results.out

    @property
    def failed(self) -> tuple[Entry, ...]:
        """The scans that could not be counted, or the patients that could not be compared."""
        return self.results.failed

    @property
    def settings(self) -> Recorded:
        """How it was counted."""
        return self.results.run.settings

    @property
    def protocol(self) -> CountingProtocol:
        """What was counted as one lesion."""
        return self.settings.protocol

    @property
    def calibration(self) -> Calibration | None:
        """What counts were corrected with."""
        return self.settings.calibrations.get(self.of)

    @property
    def as_it_is(self) -> Calibration:
        """What corrects nothing."""
        return self.settings.as_it_is(self.of)

    @property
    def has_members(self) -> bool:
        """Whether scans were counted by the members of an ensemble."""
        return any(len(scan.tables) > 1 for scan in self.counted)

    @cached_property
    def component_counts(self) -> Mapping[str, tuple[int, ...]]:
        """What the usual way counts at each threshold, where that is known without the maps: of changes, by pair.

        Of detections, the usual count is how many have a higher score.
        """
        if self.of == "lesions" and self.protocol.has_detections:
            peaks = {scan.name: scan.tables[0].peak for scan in self.counted}
            return {name: tuple(int((one > at).sum()) for at in THRESHOLDS) for name, one in peaks.items()}
        pairs = (pair for course in self.results.compared for pair in course.pairs)
        return {pair.name: pair.counts[self.of].component_counts for pair in pairs}

    def total(self, calibration: Calibration | None = None) -> CountDistribution:
        """The number of what was counted in all scans together, as it is or after a calibration."""
        if calibration is not None:
            calibration.check(self.protocol, self.of)
        # By one map, counts of different scans are independent, and their total is a sum. By an ensemble they are not:
        # a network that sees too much does so in all scans. So each member has a total of its own, and the total is the
        # mixture of those. (Where the numbering of members means nothing, as with samples of dropout, the variance
        # between totals is on average the sum of those of the scans: right too.)
        has_own = calibration == self.calibration and any(scan.own_calibration for scan in self.counted)
        if calibration is not None and self.counted and (calibration.is_joint or has_own):
            # Likewise, one of the calibrations that few scans allow is right for all scans.
            counts = [
                _by_members(scan.corrected_by(calibration) if has_own else calibration, scan) for scan in self.counted
            ]
            return combined([SumOfCounts(one) for one in zip(*counts, strict=True)])
        # Where nothing but candidates counts, those of all scans add up.
        of = self.as_it_is if calibration is None else calibration
        members = list(zip(*(scan.tables for scan in self.counted), strict=True)) or [()]
        existence = ([np.empty(0), *map(of.existence, tables)] for tables in members)
        return combined([PoissonBinomial(np.concatenate(one)) for one in existence])

    @cached_property
    def subjects(self) -> tuple[CountedSubject, ...]:
        """What groups are made of: calibrated counts where the run was calibrated, else those of the maps."""
        if self.of != "lesions":
            return tuple(self._of_pairs())
        calibration = self.calibration or Calibration()
        return tuple(
            CountedSubject(
                table_names(scan),
                tuple(_by_members(scan.corrected_by(calibration), scan)),
                scan.whose.get("participant_id"),
                scan.whose.get("session_id"),
                scan.grid.path.parent,
            )
            for scan in self.counted
        )

    def _of_pairs(self) -> Iterator[CountedSubject]:
        """A pair belongs to its later session; all pairs of a course are of one patient, whatever he is called."""
        counts = self.results.distributions(self.of)
        for course in self.results.compared:
            for pair in course.pairs:
                later = course.sessions[pair.after]
                names = (pair.name, *((course.name,) if len(course.pairs) == 1 else ()))
                whose = course.participant_id or course.name, later.session
                yield CountedSubject(names, (counts[pair.name],), *whose, Path(later.files.path).parent)


def table_names(scan: Record) -> tuple[str, ...]:
    """Names that a scan may have in a table: of its result, its file, its path, its participant and session."""
    relative = None if scan.files is None else scan.files.relative
    return names_in_tables(scan.name, scan.grid.path, relative, list(scan.whose.values()))


def entries_of_pairs(record: Record, of: Counted, features: Sequence[str] = ()) -> Iterator[Entry]:
    """The changes between sessions of a patient as counts of scans."""
    calibration = None if record.settings is None else record.settings.calibrations.get(of)
    features = (*(() if calibration is None else calibration.weights), *features)
    for pair in record.pairs:
        session = record.sessions[pair.before if of == "gone" else pair.after].brief
        yield Entry(
            FORMAT_VERSION,
            scan=pair.name,
            status="ok",
            input=session.input,
            map=session.map,
            warnings=session.warnings,
            count=pair.counts[of].count,
            n_dropped=session.n_dropped,
            tables=(record.table(pair, of, *features),),
        )


def _by_members(calibration: Calibration, scan: Entry) -> list[CountDistribution]:
    """The count of a scan by each member of an ensemble, and by each calibration that counts are averaged over."""
    return [one.distribution(table) for one in calibration.members for table in scan.tables]

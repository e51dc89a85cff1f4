"""What tables say of a scan: numbers of a distribution, of the candidates, of an ensemble, each knowing its columns."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low
from typing import Self

import numpy as np
from msgspec import Struct

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.mixture import MixtureOfCounts
from lesioncount.folder.plain import UNKNOWN, cells, columns, flat, optional_columns, part, part_if_there
from lesioncount.results.scan_count import ScanCount

# Of the intervals in all tables.
CONFIDENCE = 0.9

# Members of an ensemble disagree when their means lie this far apart: a standard deviation of half a lesion between
# them, so that the count depends on which of them is asked. Besides, it must be more than what each of them is unsure
# of by itself. (That most likely counts differ is no sign: of two members that say 0.49 and 0.51, one counts none and
# one a lesion.)
MIN_BETWEEN_VARIANCE = 0.25

# Of columns that a calibration has corrected.
CALIBRATED = "_calibrated"


class CountNumbers(Struct, frozen=True, gc=False):
    """A distribution in numbers, by the names of their columns in ``counts.tsv``.

    Of the three ways to give it as one number, the median has the smallest error where errors are counted in lesions.
    """

    count_mode: int = UNKNOWN
    count_median: int = UNKNOWN
    count_mean: float = UNKNOWN
    count_sd: float = UNKNOWN
    interval90_low: int = UNKNOWN
    interval90_high: int = UNKNOWN
    entropy: float = UNKNOWN
    p_0: float = UNKNOWN
    p_1: float = UNKNOWN
    p_2: float = UNKNOWN
    p_3: float = UNKNOWN
    p_4plus: float = UNKNOWN

    @classmethod
    def of(cls, distribution: CountDistribution) -> Self:
        """The numbers of a distribution."""
        interval, bins = distribution.interval(CONFIDENCE), map(float, distribution.binned(4))
        middle = distribution.mode(), distribution.median(), distribution.mean()
        return cls(*middle, distribution.std(), *interval, distribution.entropy(), *bins)


class CandidateNumbers(Struct, frozen=True, gc=False):
    """How many candidates there are, how many components above 0.5, and their volume; None when that is unknown."""

    n_candidates: int = UNKNOWN
    cc_count: int = UNKNOWN
    total_volume_mm3: float | None = UNKNOWN

    @classmethod
    def of(cls, counts: Sequence[ScanCount]) -> Self:
        """Of one map; of several members of an ensemble, the median of each number (the lower one of two)."""
        volumes = [float(count.result.candidates.volume_mm3.sum()) for count in counts]
        return cls(
            median_low(len(count.result.candidates) for count in counts),
            median_low(count.component_count for count in counts),
            None if np.isnan(volumes).any() else float(np.median(volumes)),
        )


class EnsembleNumbers(Struct, frozen=True, gc=False):
    """How far the members of an ensemble agree."""

    n_members: int = UNKNOWN
    variance_within: float = UNKNOWN
    variance_between: float = UNKNOWN

    @property
    def disagrees(self) -> bool:
        """Whether members differ by more than they are unsure of themselves."""
        return self.variance_between >= MIN_BETWEEN_VARIANCE and self.variance_between > self.variance_within

    @classmethod
    def of(cls, mixture: MixtureOfCounts, n_members: int) -> Self:
        """Of the mixture of its members' counts."""
        return cls(n_members, mixture.within_variance, mixture.between_variance)


class _Correction(Struct, frozen=True, gc=False):
    """The fingerprint of a calibration, and the ends of the conformal interval, where it was asked for."""

    calibration: str | None = None
    interval90_low_conformal: int | None = None
    interval90_high_conformal: int | None = None


class AnotherReader(Struct, frozen=True, gc=False):
    """What readers have counted, such as "1 2", and what another one would count."""

    reads: str = ""
    count_median_another_reader: int = UNKNOWN
    count_mean_another_reader: float = UNKNOWN
    interval90_low_another_reader: int = UNKNOWN
    interval90_high_another_reader: int = UNKNOWN

    @classmethod
    def of(cls, reads: Sequence[int], distribution: CountDistribution) -> Self:
        """Of the distribution of the next reader's count."""
        interval = distribution.interval(CONFIDENCE)
        return cls(" ".join(map(str, reads)), distribution.median(), distribution.mean(), *interval)


class _Member(Struct, frozen=True, gc=False):
    """The number of a member of an ensemble, and its map."""

    member: int = 0
    path: str = ""


class MemberNumbers(flat(_Member, CandidateNumbers, CountNumbers)):  # type: ignore[misc]  # has the fields of all three
    """What one member of an ensemble counted: a row of ``members.tsv``."""

    @classmethod
    def of(cls, member: int, count: ScanCount) -> Self:
        """Of the count of its map."""
        numbers = cells(CandidateNumbers.of([count])) | cells(CountNumbers.of(count.result.distribution))
        return cls(member, str(count.source.path), **numbers)

    @property
    def candidates(self) -> CandidateNumbers:
        """How many there are, and their volume."""
        return part(self, CandidateNumbers)

    @property
    def raw(self) -> CountNumbers:
        """Its count, as its map has it."""
        return part(self, CountNumbers)


class ScanNumbers(
    flat(  # type: ignore[misc]  # has their fields
        CandidateNumbers,
        CountNumbers,
        (CountNumbers, CALIBRATED),
        (_Correction, ""),
        (EnsembleNumbers, ""),
        (AnotherReader, ""),
    )
):
    """The row of a scan in ``counts.tsv``; only those cells have a value that there is something to say in."""

    @classmethod
    def of(
        cls,
        candidates: CandidateNumbers,
        raw: CountNumbers,
        calibrated: CountNumbers | None = None,
        calibration: str | None = None,
        guaranteed: tuple[int, int] | None = None,
        ensemble: EnsembleNumbers | None = None,
        another: AnotherReader | None = None,
    ) -> Self:
        """Put together from its parts.

        Parameters
        ----------
        candidates : CandidateNumbers
        raw, calibrated : CountNumbers
            As the map has it, and corrected by a calibration where there was one.
        calibration : str, optional
            Fingerprint of the calibration.
        guaranteed : tuple of int, optional
            Ends of the conformal interval, where it was asked for.
        ensemble : EnsembleNumbers, optional
        another : AnotherReader, optional
            Where readers have counted the scan.
        """
        given = cells(candidates) | cells(raw) | cells(_Correction(calibration, *(guaranteed or ())))
        given |= {} if calibrated is None else cells(calibrated, suffix=CALIBRATED)
        given |= {} if another is None else cells(another)
        return cls(**given | ({} if ensemble is None else cells(ensemble)))

    @property
    def candidates(self) -> CandidateNumbers:
        """How many there are, and their volume."""
        return part(self, CandidateNumbers)

    @property
    def raw(self) -> CountNumbers:
        """The count as the map has it."""
        return part(self, CountNumbers)

    @property
    def calibrated(self) -> CountNumbers | None:
        """The count as a calibration has corrected it; None where there was none."""
        return part_if_there(self, CountNumbers, CALIBRATED)

    @property
    def best(self) -> CountNumbers:
        """The calibrated numbers, or the raw ones where there was no calibration."""
        return self.calibrated or self.raw

    @property
    def short(self) -> tuple[int, int, int]:
        """The count as one number, and its interval."""
        return self.best.count_median, *(self.guaranteed or (self.best.interval90_low, self.best.interval90_high))

    @property
    def guaranteed(self) -> tuple[int, int] | None:
        """Ends of the conformal interval; None where it was not asked for."""
        low, high = self.interval90_low_conformal, self.interval90_high_conformal
        return None if low is None or high is None else (low, high)

    @property
    def ensemble(self) -> EnsembleNumbers | None:
        """How far members agree; None unless it is an ensemble."""
        return part_if_there(self, EnsembleNumbers)

    @property
    def another(self) -> AnotherReader | None:
        """What another reader would count; None unless readers have counted it."""
        return part_if_there(self, AnotherReader)


# Whose scan it is, where that is known.
WHOSE_COLUMNS = ("participant_id", "session_id")
_COUNT, _OPTIONAL_NUMBERS = columns(CountNumbers), optional_columns(ScanNumbers)

# What most people look for, first: the median and its interval, calibrated and guaranteed where they are.
SHORT_COLUMNS = ("count", "from", "to")
OPTIONAL_COUNT_COLUMNS = (*WHOSE_COLUMNS, *_OPTIONAL_NUMBERS, "notes")
_NUMBERS = ("n_candidates", *_COUNT, "cc_count", "total_volume_mm3", *_OPTIONAL_NUMBERS)
COUNT_COLUMNS = (
    "scan", *SHORT_COLUMNS, *WHOSE_COLUMNS, "path", "status", "notes", "error",
    *sorted(_NUMBERS, key=lambda name: name.startswith("p_")),  # of counts of fifty these say nothing: last
)  # fmt: skip
MEMBER_COLUMNS = ("scan", *WHOSE_COLUMNS, *columns(MemberNumbers))

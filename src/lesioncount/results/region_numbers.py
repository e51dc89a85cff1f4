"""The count of a scan in each region → rows of ``regions.tsv``, and what its record has of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from statistics import median_low
from typing import Self

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.mixture import combined
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.folder.plain import UNKNOWN, cells, columns, flat, optional_columns, part, part_if_there
from lesioncount.results.scan_count import ScanCount
from lesioncount.results.scan_numbers import CALIBRATED, CONFIDENCE, WHOSE_COLUMNS
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.regional_count import RegionalCount

# Levels at which counts are read off a distribution: the ends of the interval leave as much on either side.
_LOW, _MEDIAN, _HIGH = (1 - CONFIDENCE) / 2, 0.5, 1 - (1 + CONFIDENCE) / 2


class RegionalNumbers(Struct, frozen=True, gc=False):
    """The distribution of the count in a region in numbers, by the names of their columns."""

    count_mode: int = UNKNOWN
    count_median: int = UNKNOWN
    count_mean: float = UNKNOWN
    count_sd: float = UNKNOWN
    interval90_low: int = UNKNOWN
    interval90_high: int = UNKNOWN
    p_1plus: float = UNKNOWN

    @classmethod
    def of(cls, distribution: CountDistribution) -> Self:
        """The numbers of a distribution, as its own methods give them.

        Of a few candidates, in a tenth of their time: an atlas has a hundred regions.
        """
        pmf = distribution.pmf().tolist()
        below, above = list(accumulate(pmf)), [0.0, *accumulate(reversed(pmf[1:]))][::-1]  # P(≤ k), P(> k)
        return cls(
            pmf.index(max(pmf)),
            _first(below, lambda p: p >= _MEDIAN),
            distribution.mean(),
            distribution.std(),
            _first(below, lambda p: p >= _LOW),
            _first(above, lambda p: p <= _HIGH),
            min(above[0], 1.0),
        )


def _first(values: Sequence[float], is_enough: Callable[[float], bool]) -> int:
    """The first count of which this is so; the last one, where rounding has left that of none."""
    return next((count for count, value in enumerate(values) if is_enough(value)), len(values) - 1)


class _Region(Struct, frozen=True, gc=False):
    """The name of a region, and its candidates: of an ensemble, the median over members (the lower one of two)."""

    region: str = ""
    n_candidates: int = UNKNOWN


class RegionRow(flat(_Region, RegionalNumbers, (RegionalNumbers, CALIBRATED))):  # type: ignore[misc]  # has their fields
    """A region of a scan: a row of ``regions.tsv`` and, in the record of the scan, its distributions.

    Attributes
    ----------
    pmf, pmf_calibrated : tuple of float
        Probabilities of the counts 0, 1, …
    """

    pmf: tuple[float, ...] = ()
    pmf_calibrated: tuple[float, ...] = ()

    @property
    def numbers(self) -> Self:
        """The same without distributions, as a run keeps it at hand."""
        return replace(self, pmf=(), pmf_calibrated=())

    @property
    def raw(self) -> RegionalNumbers:
        """The count as the map has it."""
        return part(self, RegionalNumbers)

    @property
    def calibrated(self) -> RegionalNumbers | None:
        """The count as a calibration has corrected it; None where there was none."""
        return part_if_there(self, RegionalNumbers, CALIBRATED)

    @property
    def best(self) -> RegionalNumbers:
        """The calibrated numbers, or the raw ones where there was no calibration."""
        return self.calibrated or self.raw

    @property
    def is_sound(self) -> bool:
        """Whether it has a distribution, and a calibrated one if it has calibrated numbers."""
        return bool(self.pmf) and bool(self.pmf_calibrated) == (self.calibrated is not None)


_NUMBERS = (name for name in columns(RegionRow) if not name.startswith("pmf"))
OPTIONAL_REGION_COLUMNS = (*WHOSE_COLUMNS, *(name for name in optional_columns(RegionRow) if "pmf" not in name))
REGION_COLUMNS = ("scan", *WHOSE_COLUMNS, *_NUMBERS)


def region_counts(counts: Sequence[ScanCount], calibration: Calibration | None) -> tuple[RegionRow, ...]:
    """The count in each region, of one map or of several members that are combined; none without regions."""
    places = counts[0].result.places
    if places is None:
        return ()
    raw = [regional_count(count, Calibration()) for count in counts]
    corrected = [] if calibration is None else [regional_count(count, calibration) for count in counts]
    return tuple(_region(name, raw, corrected) for name in places.members)


def regional_count(count: ScanCount, calibration: Calibration) -> RegionalCount:
    """The count of a map by region, as a calibration has it; without regions, there are none."""
    result = count.result
    members = {} if result.places is None else result.places.members
    return RegionalCount(calibration, result.candidates, members)


def _region(name: str, raw: Sequence[RegionalCount], corrected: Sequence[RegionalCount]) -> RegionRow:
    n_candidates = median_low(int(np.count_nonzero(one.members[name])) for one in raw)
    numbers, pmf = _numbers_of(name, raw)
    row = RegionRow(name, n_candidates, **cells(numbers), pmf=pmf)
    if not corrected:
        return row
    numbers, pmf = _numbers_of(name, corrected)
    return replace(row, **cells(numbers, suffix=CALIBRATED), pmf_calibrated=pmf)


def _numbers_of(name: str, of_maps: Sequence[RegionalCount]) -> tuple[RegionalNumbers, tuple[float, ...]]:
    if not any(one.may_hold_lesions(name) for one in of_maps):
        return _nothing()
    distribution = combined([one[name] for one in of_maps])
    return RegionalNumbers.of(distribution), tuple(distribution.pmf().tolist())


@cache
def _nothing() -> tuple[RegionalNumbers, tuple[float, ...]]:
    """Of a region without candidates: an atlas has a hundred of them, and they take no time nor room."""
    nothing = PoissonBinomial([])
    return RegionalNumbers.of(nothing), tuple(nothing.pmf().tolist())

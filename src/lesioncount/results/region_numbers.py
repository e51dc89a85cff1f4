"""The count of a scan in each region → rows of ``regions.tsv``, and what its record has of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import accumulate
from statistics import median_low
from typing import Any, Self

import numpy as np

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.mixture import combined
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.folder.plain import typed
from lesioncount.results.scan_count import ScanCount
from lesioncount.results.scan_numbers import CONFIDENCE, WHOSE_COLUMNS
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.regional_count import RegionalCount

_CALIBRATED = "_calibrated"

# Levels at which counts are read off a distribution: the ends of the interval leave as much on either side.
_LOW, _MEDIAN, _HIGH = (1 - CONFIDENCE) / 2, 0.5, 1 - (1 + CONFIDENCE) / 2


@dataclass(frozen=True, slots=True)
class RegionalNumbers:
    """The distribution of the count in a region in numbers, by the names of their columns."""

    count_mode: int
    count_median: int
    count_mean: float
    count_sd: float
    interval90_low: int
    interval90_high: int
    p_1plus: float

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

    def row(self, suffix: str = "") -> dict[str, Any]:
        """The cells of a table, whose columns may have a suffix."""
        return {f"{name}{suffix}": getattr(self, name) for name in _NUMBERS}


def _first(values: Sequence[float], is_enough: Callable[[float], bool]) -> int:
    """The first count of which this is so; the last one, where rounding has left that of none."""
    return next((count for count, value in enumerate(values) if is_enough(value)), len(values) - 1)


_NUMBERS = tuple(one.name for one in fields(RegionalNumbers))
_OPTIONAL = tuple(f"{name}{_CALIBRATED}" for name in _NUMBERS)
OPTIONAL_REGION_COLUMNS = (*WHOSE_COLUMNS, *_OPTIONAL)
REGION_COLUMNS = ("scan", *WHOSE_COLUMNS, "region", "n_candidates", *_NUMBERS, *_OPTIONAL)


@dataclass(frozen=True, slots=True)
class RegionNumbers:
    """A region of a scan: a row of ``regions.tsv``.

    Attributes
    ----------
    region : str
    n_candidates : int
        Of an ensemble, the median over its members (the lower one of two).
    raw, calibrated : RegionalNumbers
        As the map has it, and corrected by a calibration where there was one.
    """

    region: str
    n_candidates: int
    raw: RegionalNumbers
    calibrated: RegionalNumbers | None = None

    @property
    def best(self) -> RegionalNumbers:
        """The calibrated numbers, or the raw ones where there was no calibration."""
        return self.raw if self.calibrated is None else self.calibrated

    def row(self) -> dict[str, Any]:
        """The cells of its row."""
        corrected = {} if self.calibrated is None else self.calibrated.row(_CALIBRATED)
        return {"region": self.region, "n_candidates": self.n_candidates, **self.raw.row(), **corrected}


@dataclass(frozen=True, slots=True)
class RegionCount:
    """A region of a scan with its distributions: what its record has.

    Attributes
    ----------
    numbers : RegionNumbers
    pmf, pmf_calibrated : tuple of float
        Probabilities of the counts 0, 1, …
    """

    numbers: RegionNumbers
    pmf: tuple[float, ...]
    pmf_calibrated: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        corrected = {"pmf_calibrated": self.pmf_calibrated} if self.pmf_calibrated else {}
        return {**self.numbers.row(), "pmf": self.pmf, **corrected}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """What a record has of a region, as it is written: read back at once, as there may be a hundred of them."""

    region: str
    n_candidates: int
    count_mode: int
    count_median: int
    count_mean: float
    count_sd: float
    interval90_low: int
    interval90_high: int
    p_1plus: float
    pmf: tuple[float, ...]
    count_mode_calibrated: int | None = None
    count_median_calibrated: int | None = None
    count_mean_calibrated: float | None = None
    count_sd_calibrated: float | None = None
    interval90_low_calibrated: int | None = None
    interval90_high_calibrated: int | None = None
    p_1plus_calibrated: float | None = None
    pmf_calibrated: tuple[float, ...] = ()

    def count(self) -> RegionCount:
        """With its numbers as they belong together; ValueError if some are missing."""
        raw, corrected = ([getattr(self, f"{name}{end}") for name in _NUMBERS] for end in ("", _CALIBRATED))
        if not self.pmf or any((value is None) == bool(self.pmf_calibrated) for value in corrected):
            raise ValueError("expected a distribution for each region, and a calibrated one or none")
        calibrated = RegionalNumbers(*corrected) if self.pmf_calibrated else None
        numbers = RegionNumbers(self.region, self.n_candidates, RegionalNumbers(*raw), calibrated)
        return RegionCount(numbers, self.pmf, self.pmf_calibrated)


def read_region_counts(content: Any) -> tuple[RegionCount, ...]:
    """What a record has of regions, from plain values; ValueError if they are none."""
    return tuple(row.count() for row in typed(content, tuple[_Row, ...]))


def region_counts(counts: Sequence[ScanCount], calibration: Calibration | None) -> tuple[RegionCount, ...]:
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


def _region(name: str, raw: Sequence[RegionalCount], corrected: Sequence[RegionalCount]) -> RegionCount:
    n_candidates = median_low(int(np.count_nonzero(one.members[name])) for one in raw)
    numbers, pmf = _numbers_of(name, raw)
    if not corrected:
        return RegionCount(RegionNumbers(name, n_candidates, numbers), pmf)
    numbers_corrected, pmf_corrected = _numbers_of(name, corrected)
    return RegionCount(RegionNumbers(name, n_candidates, numbers, numbers_corrected), pmf, pmf_corrected)


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

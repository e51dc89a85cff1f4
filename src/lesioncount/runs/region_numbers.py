"""The count of a scan in each region → rows of ``regions.tsv``, and what its record has of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from statistics import median_low
from typing import Any, Self

import numpy as np

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.mixture import combined
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.runs.file_counts import ScanCount
from lesioncount.runs.plain import typed
from lesioncount.runs.scan_numbers import CONFIDENCE, WHOSE_COLUMNS
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.regional_count import RegionalCount

_CALIBRATED = "_calibrated"


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
        """The numbers of a distribution."""
        middle = distribution.mode(), distribution.median(), distribution.mean(), distribution.std()
        return cls(*middle, *distribution.interval(CONFIDENCE), float(distribution.sf(0)))

    def row(self, suffix: str = "") -> dict[str, Any]:
        """The cells of a table, whose columns may have a suffix."""
        return {f"{name}{suffix}": getattr(self, name) for name in _NUMBERS}


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

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """From plain values; ValueError, KeyError or TypeError if they are none."""
        pmf, corrected = (typed(content.get(f"pmf{end}", ()), tuple[float, ...]) for end in ("", _CALIBRATED))
        if not pmf or (f"count_mode{_CALIBRATED}" in content) != bool(corrected):
            raise ValueError("expected a distribution for each region, and a calibrated one or none")
        return cls(
            RegionNumbers(
                typed(content["region"], str),
                typed(content["n_candidates"], int),
                _numbers(content, ""),
                _numbers(content, _CALIBRATED) if corrected else None,
            ),
            pmf,
            corrected,
        )


def _numbers(content: Mapping[str, Any], suffix: str) -> RegionalNumbers:
    return typed({name: content[f"{name}{suffix}"] for name in _NUMBERS}, RegionalNumbers)


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
    return RegionalCount(calibration, result.candidates.peak_probability, result.candidates.saddle_probability, members)


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

"""Counts by region and answers → what the page shows of them: the fullest regions first, the others folded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from lesioncount.regions import Within
from lesioncount.results.answers import Answer
from lesioncount.results.record import Entry
from lesioncount.results.recorded import Recorded
from lesioncount.results.region_numbers import RegionRow

# Regions that are seen at once: an atlas has a hundred, and most of them are empty.
FIRST = 12

Row = TypeVar("Row")


@dataclass(frozen=True)
class RegionTable(Generic[Row]):
    """The regions of a scan, or of all scans.

    Attributes
    ----------
    first, others : list
        Regions by distance, which somebody has asked for, and those with candidates, the fullest first.
    empty : list of str
        The names of those without.
    near : frozenset of str
        Names of regions by distance.
    """

    first: list[Row]
    others: list[Row]
    empty: list[str]
    near: frozenset[str]

    @property
    def n_filled(self) -> int:
        """Regions of the label map with candidates."""
        return len(self.first) + len(self.others) - len(self.near)

    @property
    def n_regions(self) -> int:
        """All regions of the label map."""
        return self.n_filled + len(self.empty)


def regions_of_scan(scan: Entry, counted_with: Recorded) -> RegionTable[RegionRow] | None:
    """The regions of a scan; None where there are none."""
    if not scan.regions:
        return None
    return _table({one.region: (one.best.count_mean, one) for one in scan.regions}, _near(counted_with))


def _table(regions: Mapping[str, tuple[float, Row]], near: frozenset[str]) -> RegionTable[Row]:
    """From the expected number of lesions in each region, and its row."""
    by_distance = [row for name, (_, row) in regions.items() if name in near]
    filled = [one for name, one in regions.items() if name not in near and one[0] > 0]
    rows = [row for _, row in sorted(filled, key=lambda one: -one[0])]
    empty = [name for name, (expected, _) in regions.items() if name not in near and expected == 0]
    return RegionTable(by_distance + rows[:FIRST], rows[FIRST:], empty, near)


def regions_of_cohort(scans: Sequence[Entry], counted_with: Recorded) -> RegionTable[list[RegionRow]] | None:
    """The regions of all scans, each with its rows of all; None where there are none."""
    found: dict[str, list[RegionRow]] = {}
    for scan in scans:
        for region in scan.regions:
            found.setdefault(region.region, []).append(region)
    if not found:
        return None
    expected = {name: sum(one.best.count_mean for one in rows) for name, rows in found.items()}
    return _table({name: (expected[name], rows) for name, rows in found.items()}, _near(counted_with))


def questions_of_cohort(scans: Sequence[Entry]) -> list[list[Answer]]:
    """What was asked of all scans: the answers to each question."""
    found: dict[tuple[str | None, str], list[Answer]] = {}
    for scan in scans:
        for answer in scan.answers:
            found.setdefault((answer.name, answer.question), []).append(answer)
    return list(found.values())


def _near(counted_with: Recorded) -> frozenset[str]:
    texts = () if counted_with.regions is None else counted_with.regions.within
    return frozenset(Within.parse(text).name for text in texts)

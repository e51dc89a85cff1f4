"""Counts and changes → the figures of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.report.bars import BarChart, Bars
from lesioncount.report.drawing import COLOURS, INK, MARK, MARKERS, USUAL, figure_of, name_rows, whole_numbers
from lesioncount.results.record import Entry
from lesioncount.results.scan_numbers import CountNumbers, ScanNumbers

# Bars lower than this part of the highest are not visible at the height of the figure.
_VISIBLE = 0.004

_LONGEST_NAME = 26


# Distance of the lines of one scan, where the next scan is at 1.
_LINE = 0.27


@dataclass(frozen=True, eq=False)
class _Series:
    """The bars of a distribution, and where each begins and ends beside its count."""

    method: str
    pmf: NDArray[np.float64]
    numbers: CountNumbers
    edges: tuple[float, float]

    @property
    def words(self) -> str:
        name = f"{self.method} " if self.method == "calibrated" else ""
        low, high = self.numbers.interval90_low, self.numbers.interval90_high
        return f"{name}most likely {self.numbers.count_mode}, 90 % interval {low} to {high}"


def overview(scans: Sequence[Entry], anchors: Mapping[str, str]) -> str:
    """The count of each scan: 90 % interval, most likely count, mean, and the usual count beside it."""
    found = {name: [getattr(scan.counted, name) for scan in scans] for name in ("raw", "calibrated", "guaranteed")}
    lines = {name: numbers for name, numbers in found.items() if None not in numbers}
    places = (np.arange(len(lines)) - (len(lines) - 1) / 2) * _LINE

    def draw(axes: Any) -> None:
        for (name, numbers), place in zip(lines.items(), places, strict=True):
            _draw_line(axes, name, numbers, place, is_alone=len(lines) == 1)
        _draw_members(axes, scans, places[0])
        usual = [scan.counted.candidates.cc_count for scan in scans]
        axes.plot(
            usual, range(len(scans)), "D", color=USUAL, markersize=7, markeredgewidth=1.5, fillstyle="none",
            label="CC > 0.5",
        )  # fmt: skip
        axes.set(xlabel="number of lesions")
        name_rows(axes, [_shortened(scan.shown) + " ≠" * scan.disagrees for scan in scans])
        for text, scan in zip(axes.get_yticklabels(), scans, strict=True):
            text.set_url(f"#{anchors[scan.name]}")
        longest = max(1, *usual, *(int(_ends(numbers)[1].max()) for numbers in lines.values()))
        axes.set_xlim(-0.04 * longest, 1.04 * longest)
        whole_numbers(axes.xaxis)
        axes.grid(axis="y", color=USUAL, alpha=0.25, linewidth=0.5)
        axes.figure.legend(loc="outside upper left", ncols=4, frameon=False, handletextpad=0.4, columnspacing=1.2)

    label = (
        f"Counts with their 90 % intervals of {len(scans)} scans, the most uncertain first; numbers are in the table."
    )
    height = 0.9 + (0.12 + 0.12 * len(lines)) * len(scans)
    return figure_of("overview", label, draw, height_inch=height).element


def histogram(scans: Sequence[Entry]) -> str:
    """How many scans have how many lesions expected."""
    expected = [scan.counted.raw.count_mean for scan in scans]
    calibrated = [one.count_mean for scan in scans if (one := scan.counted.calibrated) is not None]
    edges = np.histogram_bin_edges(expected + calibrated, bins=min(30, max(5, len(expected) // 4)))
    bars = [Bars(COLOURS["raw"], _binned(expected, edges), "raw" if calibrated else None)]
    if calibrated:
        bars.append(Bars(COLOURS["calibrated"], _binned(calibrated, edges), "calibrated", is_outline=True))
    label = f"Histogram of the expected counts of {len(scans)} scans."
    ends = float(edges[0]), float(edges[-1])
    return BarChart(label, bars, ends, "expected number of lesions", "scans", is_whole=True).svg()


def _binned(values: Sequence[float], edges: NDArray[np.float64]) -> list[tuple[float, float, float]]:
    heights = np.histogram(values, edges)[0]
    return [(a, b, float(n)) for a, b, n in zip(edges[:-1].tolist(), edges[1:].tolist(), heights, strict=True) if n]


def distribution(
    numbers: ScanNumbers, pmf: Sequence[float], pmf_calibrated: Sequence[float], what: str = "number of lesions"
) -> str:
    """The probability of each count, also calibrated; counts outside the 90 % interval are pale."""
    series = _series_of(numbers, pmf, pmf_calibrated)
    visible = [np.flatnonzero(one.pmf >= _VISIBLE * one.pmf.max()) for one in series]
    first, last = min(int(part[0]) for part in visible), max(int(part[-1]) for part in visible)
    usual = numbers.candidates.cc_count
    bars = [part for one in series for part in _bars(one, first, last, is_alone=len(series) == 1)]
    label = f"Probability of each {what}: " + "; ".join(one.words for one in series) + "."
    ends = min(first, usual) - 0.7, max(last, usual) + 0.7
    line = (float(usual), USUAL, f"CC > 0.5: {usual}")
    return BarChart(label, bars, ends, what, "probability", line).svg()


def _series_of(numbers: ScanNumbers, pmf: Sequence[float], pmf_calibrated: Sequence[float]) -> list[_Series]:
    raw = _Series("raw", np.array(pmf), numbers.raw, (-0.4, 0.4))
    if numbers.calibrated is None:
        return [raw]
    # Side by side: the raw bar left of its number, the calibrated one right of it.
    calibrated = _Series("calibrated", np.array(pmf_calibrated), numbers.calibrated, (0.02, 0.42))
    return [replace(raw, edges=(-0.42, -0.02)), calibrated]


def _bars(one: _Series, first: int, last: int, *, is_alone: bool) -> list[Bars]:
    left, right = one.edges
    names = ("90 % interval", "outside of it") if is_alone else (one.method, None)
    spans: tuple[list[tuple[float, float, float]], ...] = ([], [])
    for count in range(first, min(last + 1, len(one.pmf))):
        is_outside = not one.numbers.interval90_low <= count <= one.numbers.interval90_high
        spans[is_outside].append((count + left, count + right, float(one.pmf[count])))
    return [
        Bars(COLOURS[one.method], part, name, opacity)
        for part, name, opacity in zip(spans, names, (1.0, 0.35), strict=True)
        if part
    ]


def _ends(numbers: Sequence[CountNumbers | tuple[int, int]]) -> NDArray[np.int64]:
    """The 90 % intervals of all scans; a guaranteed one is nothing else."""
    ends = [one if isinstance(one, tuple) else (one.interval90_low, one.interval90_high) for one in numbers]
    return np.array(ends).T


def _draw_line(axes: Any, name: str, numbers: Sequence[Any], place: float, *, is_alone: bool) -> None:
    """A line of each scan: the numbers of one method; of the guaranteed line, an interval only."""
    rows, ends = np.arange(len(numbers)) + place, _ends(numbers)
    if name == "guaranteed":
        axes.hlines(rows, *ends, color=INK, linewidth=1, label="conformal")
        axes.plot(ends, [rows, rows], "|", color=INK, markersize=5, markeredgewidth=1)
        return
    colour = COLOURS[name]
    names = ("90 % interval", "most likely", "mean") if is_alone else (name, None, None)
    axes.hlines(rows, *ends, color=colour, linewidth=4, alpha=0.4, label=names[0])
    size = 6 if is_alone else 5
    modes, means = [one.count_mode for one in numbers], [one.count_mean for one in numbers]
    axes.plot(modes, rows, MARKERS[name], color=colour, markersize=size, label=names[1])
    tick = {"color": MARK if is_alone else colour, "markersize": 2 * size, "markeredgewidth": 2}
    axes.plot(means, rows, "|", **tick, label=names[2])


def _draw_members(axes: Any, scans: Sequence[Entry], place: float) -> None:
    """What each member of an ensemble expects, above the count of all."""
    points = [(one.raw.count_mean, row) for row, scan in enumerate(scans) for one in scan.members]
    if points:
        mean, row = np.array(points).T
        style = {"color": INK, "markersize": 3.5, "markeredgewidth": 0.8, "fillstyle": "none"}
        axes.plot(mean, row + place, "o", **style, label="means of members")


def _shortened(name: str) -> str:
    """The name with its middle left out when it is long: scans of a cohort differ at the beginning or at the end."""
    half = _LONGEST_NAME // 2
    return name if len(name) <= _LONGEST_NAME else f"{name[:half]}…{name[-half + 1 :]}"

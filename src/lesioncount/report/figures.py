"""Counts → the figures of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.optional import optional
from lesioncount.report.drawing import COLOURS, INK, MARK, MARKERS, OURS, USUAL, drawn, whole_numbers
from lesioncount.runs.records import ScanRecord, ScanSummary
from lesioncount.runs.scan_numbers import CountNumbers

# Bars lower than this part of the highest are not visible at the height of the figure.
_VISIBLE = 0.004

_LONGEST_NAME = 26


@dataclass(frozen=True)
class _Line:
    """A line of the overview: the method whose numbers it shows; of the guaranteed line, an interval only."""

    name: str

    def numbers(self, scan: ScanSummary) -> CountNumbers | None:
        return scan.counted.raw if self.name == "raw" else scan.counted.calibrated

    def interval(self, scan: ScanSummary) -> tuple[int, int] | None:
        if self.name == "guaranteed":
            return scan.counted.guaranteed
        numbers = self.numbers(scan)
        return None if numbers is None else (numbers.interval90_low, numbers.interval90_high)


_LINES = (_Line("raw"), _Line("calibrated"), _Line("guaranteed"))

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


def overview(scans: Sequence[ScanSummary], anchors: Mapping[str, str], key: str) -> str:
    """The count of each scan: 90 % interval, most likely count, mean, and the usual count beside it."""
    lines = [line for line in _LINES if all(line.interval(scan) is not None for scan in scans)]
    places = (np.arange(len(lines)) - (len(lines) - 1) / 2) * _LINE

    def draw(axes: Any) -> None:
        for line, place in zip(lines, places, strict=True):
            _draw_line(axes, scans, line, place, is_alone=len(lines) == 1)
        _draw_members(axes, scans, places[0])
        usual = [scan.counted.candidates.cc_count for scan in scans]
        axes.plot(
            usual, range(len(scans)), "D", color=USUAL, markersize=7, markeredgewidth=1.5, fillstyle="none",
            label="CC > 0.5",
        )  # fmt: skip
        axes.set(xlabel="number of lesions", ylim=(len(scans) - 0.5, -0.5))
        _name_rows(axes, scans, anchors)
        longest = max(1, *usual, *((line.interval(scan) or (0, 0))[1] for line in lines for scan in scans))
        axes.set_xlim(-0.04 * longest, 1.04 * longest)
        whole_numbers(axes)
        axes.grid(axis="y", color=USUAL, alpha=0.25, linewidth=0.5)
        axes.figure.legend(loc="outside upper left", ncols=4, frameon=False, handletextpad=0.4, columnspacing=1.2)

    label = (
        f"Counts with their 90 % intervals of {len(scans)} scans, the most uncertain first; numbers are in the table."
    )
    return drawn(draw, height_inch=0.9 + (0.12 + 0.12 * len(lines)) * len(scans), label=label, key=key)


def histogram(scans: Sequence[ScanSummary], key: str) -> str:
    """How many scans have how many lesions expected."""

    def draw(axes: Any) -> None:
        expected = [scan.counted.raw.count_mean for scan in scans]
        calibrated = [one.count_mean for scan in scans if (one := scan.counted.calibrated) is not None]
        bins = np.histogram_bin_edges(expected + calibrated, bins=min(30, max(5, len(expected) // 4)))
        axes.hist(expected, bins=bins, color=OURS, label="raw")
        if calibrated:
            axes.hist(
                calibrated, bins=bins, histtype="step", color=COLOURS["calibrated"], linewidth=2, label="calibrated"
            )
            axes.figure.legend(loc="outside upper left", ncols=2, frameon=False)
        axes.set(xlabel="expected number of lesions", ylabel="scans")
        whole_numbers(axes, y=True)

    return drawn(draw, height_inch=2.2, label=f"Histogram of the expected counts of {len(scans)} scans.", key=key)


def distribution(record: ScanRecord, key: str) -> str:
    """The probability of each number of lesions, also calibrated; counts outside the 90 % interval are pale."""
    series = _series_of(record)
    highest = max(one.pmf.max() for one in series)
    visible = [np.flatnonzero(one.pmf >= _VISIBLE * one.pmf.max()) for one in series]
    first, last = min(part[0] for part in visible), max(part[-1] for part in visible)
    usual = record.summary.counted.candidates.cc_count

    def draw(axes: Any) -> None:
        for one in series:
            _draw_bars(axes, one, np.arange(first, min(last + 1, len(one.pmf))), is_alone=len(series) == 1)
        axes.axvline(usual, color=USUAL, linewidth=2, linestyle=(0, (3, 2)), label=f"CC > 0.5: {usual}")
        axes.set(xlabel="number of lesions", ylabel="probability", ylim=(0, 1.05 * highest))
        axes.set_xlim(min(first, usual) - 0.7, max(last, usual) + 0.7)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.3g}")
        whole_numbers(axes)
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, borderaxespad=0.2, handlelength=1.5
        )

    label = "Probability of each number of lesions: " + "; ".join(one.words for one in series) + "."
    # There is one such figure per scan: margins that are known beforehand take half of the time of a layout.
    margins = {"left": 0.13, "right": 0.98, "bottom": 0.21, "top": 0.88}
    return drawn(draw, height_inch=2.3, label=label, key=key, margins=margins)


def _series_of(record: ScanRecord) -> list[_Series]:
    numbers = record.summary.counted
    raw = _Series("raw", np.array(record.pmf), numbers.raw, (-0.4, 0.4))
    if numbers.calibrated is None:
        return [raw]
    # Side by side: the raw bar left of its number, the calibrated one right of it.
    calibrated = _Series("calibrated", np.array(record.pmf_calibrated), numbers.calibrated, (0.02, 0.42))
    return [replace(raw, edges=(-0.42, -0.02)), calibrated]


def _draw_bars(axes: Any, one: _Series, counts: NDArray[Any], *, is_alone: bool) -> None:
    inside = (counts >= one.numbers.interval90_low) & (counts <= one.numbers.interval90_high)
    names = ("90 % interval", "outside of it") if is_alone else (one.method, None)
    for part, alpha, name in ((inside, 1.0, names[0]), (~inside, 0.35, names[1])):
        if part.any():
            style = {"color": COLOURS[one.method], "alpha": alpha, "linewidth": 0, "label": name}
            _bars(axes, counts[part], one.pmf[counts[part]], one.edges, **style)


def _draw_line(axes: Any, scans: Sequence[ScanSummary], line: _Line, place: float, *, is_alone: bool) -> None:
    rows = np.arange(len(scans)) + place
    ends = np.array([line.interval(scan) for scan in scans]).T
    if line.name == "guaranteed":
        axes.hlines(rows, *ends, color=INK, linewidth=1, label=line.name)
        axes.plot(ends, [rows, rows], "|", color=INK, markersize=5, markeredgewidth=1)
        return
    numbers = [one for scan in scans if (one := line.numbers(scan)) is not None]
    colour = COLOURS[line.name]
    names = ("90 % interval", "most likely", "mean") if is_alone else (line.name, None, None)
    axes.hlines(rows, *ends, color=colour, linewidth=4, alpha=0.4, label=names[0])
    size = 6 if is_alone else 5
    modes, means = [one.count_mode for one in numbers], [one.count_mean for one in numbers]
    axes.plot(modes, rows, MARKERS[line.name], color=colour, markersize=size, label=names[1])
    tick = {"color": MARK if is_alone else colour, "markersize": 2 * size, "markeredgewidth": 2}
    axes.plot(means, rows, "|", **tick, label=names[2])


def _draw_members(axes: Any, scans: Sequence[ScanSummary], place: float) -> None:
    """What each member of an ensemble expects, above the count of all."""
    points = [(one.raw.count_mean, row) for row, scan in enumerate(scans) for one in scan.members]
    if points:
        mean, row = np.array(points).T
        style = {"color": INK, "markersize": 3.5, "markeredgewidth": 0.8, "fillstyle": "none"}
        axes.plot(mean, row + place, "o", **style, label="means of members")


def _bars(axes: Any, positions: NDArray[Any], heights: NDArray[Any], edges: tuple[float, float], **style: Any) -> None:
    """All bars as one shape: ten times as fast as ``axes.bar``, which makes a shape of each."""
    left, right = edges
    x = positions[:, None] + np.array((left, left, right, right, left))
    y = heights[:, None] * np.array((0, 1, 1, 0, 0))
    paths, patches = (optional(f"matplotlib.{name}", "report", "Writing the report") for name in ("path", "patches"))
    kinds = (paths.Path.MOVETO, *(paths.Path.LINETO,) * 3, paths.Path.CLOSEPOLY)
    outline = paths.Path(np.stack([x, y], axis=-1).reshape(-1, 2), np.tile(kinds, len(positions)))
    axes.add_patch(patches.PathPatch(outline, **style))


def _name_rows(axes: Any, scans: Sequence[ScanSummary], anchors: Mapping[str, str]) -> None:
    axes.set_yticks(range(len(scans)), [_shortened(scan.name) + " ≠" * scan.disagrees for scan in scans])
    axes.tick_params(axis="y", length=0)
    for text, scan in zip(axes.get_yticklabels(), scans, strict=True):
        text.set_url(f"#{anchors[scan.name]}")


def _shortened(name: str) -> str:
    """The name with its middle left out when it is long: scans of a cohort differ at the beginning or at the end."""
    half = _LONGEST_NAME // 2
    return name if len(name) <= _LONGEST_NAME else f"{name[:half]}…{name[-half + 1 :]}"

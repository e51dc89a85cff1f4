"""Numbers → a chart on given axes, for every page: confusion, reliability, certainty, agreement, coverage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.report.drawing import COLOURS, DASHES, INK, MARKERS, USUAL, count_axis, ratio_axis
from lesioncount.trust.scores.agreement import BlandAltman
from lesioncount.trust.scores.pit import CoverageCurve, PitHistogram
from lesioncount.trust.scores.reliability import Reliability, ReliabilityBins

# Fewer predictions than this say next to nothing: points that stand for them are hollow, lines pale.
THIN = 10

# The strongest colour of a cell that still leaves its number legible, on light and on dark pages.
_STRONGEST = 0.55

# The low and the high ends of intervals.
Band = tuple[ArrayLike, ArrayLike]

# 95 % of the normal distribution, for the intervals of single bins.
_Z = 1.96


@dataclass(frozen=True)
class Look:
    """How a method looks: colour, marker and dashes say the same, for prints in black."""

    label: str
    colour: str
    marker: str = "o"
    dashes: Any = "-"

    @classmethod
    def of(cls, key: str, label: str) -> Look:
        """The look of a method of a report."""
        return cls(label, COLOURS[key], MARKERS.get(key, "o"), DASHES.get(key, "-"))

    @property
    def line(self) -> dict[str, Any]:
        """Options of a line for matplotlib, without the label."""
        return {"color": self.colour, "linestyle": self.dashes}


def draw_confusion(
    axes: Any,
    matrix: NDArray[Any],
    colour: str,
    *,
    font_size: float | None = None,
    names: Sequence[str] = (),
) -> None:
    """Draw true counts as rows and predicted counts as columns; colour is the share of the row."""
    names = names or [*map(str, range(len(matrix) - 1)), f"{len(matrix) - 1}+"]
    share = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    for (row, column), n in np.ndenumerate(matrix):
        axes.barh(row, 1, 1, column - 0.5, color=colour, alpha=_STRONGEST * share[row, column], linewidth=0)
        weight = "bold" if row == column else None
        axes.text(column, row, f"{n:.0f}", ha="center", va="center", fontsize=font_size, fontweight=weight)
    axes.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(names) - 0.5, -0.5), aspect="equal")
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0)


def draw_reliability(
    axes: Any, curves: Sequence[tuple[Look, Reliability | ReliabilityBins]], *, intervals: bool = False
) -> None:
    """Draw how often predictions came true by their confidence, beside the diagonal, which is perfect.

    Parameters
    ----------
    axes : Axes
    curves : sequence of (Look, Reliability or ReliabilityBins)
    intervals : bool, default False
        Draw Wilson's 95 % interval of each bin, for predictions that are independent.
    """
    axes.plot([0, 1], [0, 1], color=USUAL, linewidth=1, linestyle=(0, (2, 2)), label="perfect")
    for number, (look, of) in enumerate(curves):
        # Intervals of several curves would hide each other.
        shift = 0.012 * (number - (len(curves) - 1) / 2) if intervals else 0.0
        filled = of.n > 0
        n, x, y = of.n[filled], of.confidence[filled] + shift, of.hit_rate[filled]
        if intervals:
            axes.vlines(x, *_wilson(y, n), color=look.colour, linewidth=1.2, alpha=0.7)
        axes.plot(x, y, **look.line, linewidth=1.2, alpha=0.6)
        for part, face in ((n >= THIN, look.colour), (n < THIN, "none")):
            axes.plot(x[part], y[part], look.marker, color=look.colour, markersize=6.5, markerfacecolor=face)
        axes.plot([], [], look.marker, **look.line, markersize=6.5, label=look.label)


def draw_certainty(
    axes: Any,
    shares: ArrayLike,
    accuracy: ArrayLike,
    look: Look,
    *,
    n_scans: int | None = None,
    band: Band | None = None,
) -> None:
    """Draw the accuracy among the most certain scans, by the share of scans that are kept.

    Parameters
    ----------
    axes : Axes
    shares, accuracy : array_like of float, shape (n,)
    look : Look
    n_scans : int, optional
        Of all scans: the line is pale where it stands for fewer than `THIN` of them.
    band : pair of array_like, optional
        Ends of the 95 % interval of the accuracy.
    """
    x, y = np.asarray(shares, dtype=np.float64), np.asarray(accuracy, dtype=np.float64)
    n_thin = 0 if n_scans is None else min(int((x * n_scans < THIN).sum()), len(x) - 1)
    if n_thin:
        axes.plot(x[: n_thin + 1], y[: n_thin + 1], **look.line, linewidth=1, alpha=0.45)
    axes.plot(x[n_thin:], y[n_thin:], **look.line, linewidth=2, label=look.label)
    if band is not None:
        draw_band(axes, x, band, look)


def draw_band(axes: Any, x: ArrayLike, band: Band, look: Look) -> None:
    """Draw an interval around a line."""
    axes.fill_between(x, *band, color=look.colour, alpha=0.15, linewidth=0)


def draw_scatter(
    axes: Any,
    truth: NDArray[np.float64],
    predicted: NDArray[np.float64],
    interval: tuple[NDArray[np.float64], NDArray[np.float64]],
    look: Look,
    *,
    is_log: bool,
) -> None:
    """Draw predicted counts with intervals by the true ones; hollow where the interval does not hold the truth."""
    low, high = interval
    last = max(truth.max(), predicted.max(), high.max(), 1.0) * (1.3 if is_log else 1.04)
    first = -0.25 if is_log else -0.5
    axes.plot([0, last], [0, last], color=USUAL, linewidth=1, linestyle=(0, (2, 2)))
    x = truth if is_log else truth + _spread(truth)
    axes.vlines(x, low, high, color=look.colour, linewidth=0.8, alpha=0.45)
    holds = (low <= truth) & (truth <= high)
    for part, face in ((holds, look.colour), (~holds, "none")):
        axes.plot(x[part], predicted[part], "o", color=look.colour, markersize=4, markerfacecolor=face)
    axes.set(xlim=(first, last), ylim=(first, last))
    for name in ("x", "y"):
        count_axis(axes, name, is_log=is_log)


def draw_differences(
    axes: Any, middle: NDArray[np.float64], difference: NDArray[np.float64], found: BlandAltman, look: Look
) -> None:
    """Draw differences by the mean of both, with their mean, its interval, and the limits of agreement."""
    axes.axhline(0, color=USUAL, linewidth=1, linestyle=(0, (2, 2)))
    x = middle if found.is_log else middle + _spread(middle)
    axes.plot(x, difference, "o", color=look.colour, markersize=4, markerfacecolor="none")
    named = {"mean": found.mean.value, "upper limit": found.high, "lower limit": found.low}
    for name, at in named.items():
        if np.isfinite(at):
            axes.axhline(at, color=look.colour, linewidth=1.6 if name == "mean" else 1)
            _name_line(axes, f"{name} {_difference(at, is_log=found.is_log)}", at)
    if found.mean.has_interval:
        axes.axhspan(found.mean.low, found.mean.high, color=look.colour, alpha=0.2, linewidth=0)
    ends = [0.0, *difference, *(at for at in named.values() if np.isfinite(at))]
    room = 0.12 * max(max(ends) - min(ends), 0.5)
    axes.set_ylim(min(ends) - room, max(ends) + room)
    axes.set_xlim(-0.25 if found.is_log else -0.5, max(middle.max(), 1.0) * (1.3 if found.is_log else 1.04) + 0.5)
    count_axis(axes, "x", is_log=found.is_log)
    if found.is_log:
        ratio_axis(axes.yaxis)


def draw_pit(axes: Any, found: Sequence[tuple[Look, PitHistogram]]) -> None:
    """Draw how many scans have their truth in each part of its distribution, over the band of honest ones."""
    _, first = found[0]
    n_bins = len(first.n)
    axes.axhspan(first.low, first.high, color=USUAL, alpha=0.3, linewidth=0, label="95 % of the bars, if honest")
    axes.axhline(sum(first.n) / n_bins, color=USUAL, linewidth=1, linestyle=(0, (2, 2)))
    for number, (look, of) in enumerate(found):
        width = 0.9 / len(of.n) / len(found)
        centres = (np.arange(len(of.n)) + 0.5) / len(of.n) + width * (number - (len(found) - 1) / 2)
        axes.bar(centres, of.n, width=0.92 * width, color=look.colour, alpha=0.85, label=look.label)
    axes.set(xlim=(0, 1), xticks=np.linspace(0, 1, 6))
    count_axis(axes, "y", is_log=False)


def draw_coverage(axes: Any, found: Sequence[tuple[Look, CoverageCurve]]) -> None:
    """Draw how often intervals hold the truth by how often they should, beside the diagonal and its band."""
    _, first = found[0]
    axes.plot([0, 1], [0, 1], color=USUAL, linewidth=1, linestyle=(0, (2, 2)))
    words = "95 % of the points, if honest"
    axes.fill_between(first.nominal, first.low, first.high, color=USUAL, alpha=0.3, linewidth=0, label=words)
    for look, of in found:
        axes.plot(of.nominal, of.actual, look.marker, **look.line, linewidth=1.5, markersize=4, label=look.label)


def _spread(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shifts by less than half a lesion, so that scans with the same count stand side by side."""
    shift = np.zeros(len(counts))
    for value in np.unique(counts):
        same = np.flatnonzero(counts == value)
        shift[same] = np.linspace(-0.3, 0.3, len(same)) if len(same) > 1 else 0.0
    return shift


def _name_line(axes: Any, words: str, at: float) -> None:
    """Limits above and below their lines on the right, the mean on the left: they may lie close together."""
    is_lower, is_mean = words.startswith("lower"), words.startswith("mean")
    place = {"ha": "left" if is_mean else "right", "va": "top" if is_lower else "bottom", "fontsize": 8.5, "color": INK}
    where = (0.02 if is_mean else 1, at)
    shift = (0, -3 if is_lower else 2)
    axes.annotate(words, where, shift, xycoords=("axes fraction", "data"), textcoords="offset points", **place)


def _difference(at: float, *, is_log: bool) -> str:
    return f"×{np.exp(min(at, 700.0)):.3g}" if is_log else f"{at:+.3g}".replace("-", "−")


def _wilson(share: NDArray[np.float64], n: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's interval of a share of n."""
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return middle - half, middle + half

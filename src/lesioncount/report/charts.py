"""Numbers → a chart on given axes, for every page: confusion, reliability, certainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.report.drawing import COLOURS, DASHES, DOTTED, MARKERS
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
    axes.plot([0, 1], [0, 1], **DOTTED, label="perfect")
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


def _wilson(share: NDArray[np.float64], n: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's interval of a share of n."""
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return middle - half, middle + half

"""Counts → the figures of the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.io.optional import optional
from lesioncount.report.cohort import ScanSummary
from lesioncount.report.drawing import MARK, OURS, USUAL, drawn, whole_numbers

# Bars lower than this part of the highest are not visible at the height of the figure.
_VISIBLE = 0.004

_LONGEST_NAME = 26


def overview(scans: Sequence[ScanSummary], key: str) -> str:
    """The count of each scan: 90 % interval, most likely count, mean, and the usual count beside it."""

    def draw(axes: Any) -> None:
        counts = [scan.count for scan in scans if scan.count is not None]
        rows = range(len(counts))

        def column(name: str) -> list[float]:
            return [count[name] for count in counts]

        low, high = column("interval90_low"), column("interval90_high")
        axes.hlines(rows, low, high, color=OURS, linewidth=4, alpha=0.4, label="90 % interval")
        axes.plot(column("count_mode"), rows, "o", color=OURS, markersize=6, label="most likely")
        axes.plot(column("count_mean"), rows, "|", color=MARK, markersize=12, markeredgewidth=2, label="mean")
        axes.plot(
            column("cc_count"), rows, "D", color=USUAL, markersize=7, markeredgewidth=1.5, fillstyle="none",
            label="CC > 0.5",
        )  # fmt: skip
        axes.set(xlabel="number of lesions", ylim=(len(counts) - 0.5, -0.5))
        _name_rows(axes, scans)
        longest = max(1, *high, *column("cc_count"))
        axes.set_xlim(-0.04 * longest, 1.04 * longest)
        whole_numbers(axes)
        axes.grid(axis="y", color=USUAL, alpha=0.25, linewidth=0.5)
        axes.figure.legend(loc="outside upper left", ncols=4, frameon=False, handletextpad=0.4, columnspacing=1.2)

    label = (
        f"Counts with their 90 % intervals of {len(scans)} scans, the most uncertain first; numbers are in the table."
    )
    return drawn(draw, height_inch=0.9 + 0.24 * len(scans), label=label, key=key)


def histogram(scans: Sequence[ScanSummary], key: str) -> str:
    """How many scans have how many lesions expected."""

    def draw(axes: Any) -> None:
        expected = [scan.count["count_mean"] for scan in scans if scan.count is not None]
        axes.hist(expected, bins=min(30, max(5, len(expected) // 4)), color=OURS)
        axes.set(xlabel="expected number of lesions", ylabel="scans")
        whole_numbers(axes, y=True)

    return drawn(draw, height_inch=2.2, label=f"Histogram of the expected counts of {len(scans)} scans.", key=key)


def distribution(pmf: Sequence[float], count: dict[str, Any], key: str) -> str:
    """The probability of each number of lesions; counts outside the 90 % interval are pale."""
    probability = np.asarray(pmf, dtype=np.float64)
    visible = np.flatnonzero(probability >= _VISIBLE * probability.max())
    counts = np.arange(visible[0], visible[-1] + 1)
    low, high, usual = count["interval90_low"], count["interval90_high"], count["cc_count"]

    def draw(axes: Any) -> None:
        inside = (counts >= low) & (counts <= high)
        for part, alpha, name in ((inside, 1.0, "90 % interval"), (~inside, 0.35, "outside of it")):
            if part.any():
                _bars(axes, counts[part], probability[counts[part]], color=OURS, alpha=alpha, linewidth=0, label=name)
        axes.axvline(usual, color=USUAL, linewidth=2, linestyle=(0, (3, 2)), label=f"CC > 0.5: {usual}")
        axes.set(xlabel="number of lesions", ylabel="probability", ylim=(0, 1.05 * probability.max()))
        axes.set_xlim(min(counts[0], usual) - 0.7, max(counts[-1], usual) + 0.7)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.3g}")
        whole_numbers(axes)
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, borderaxespad=0.2, handlelength=1.5
        )

    label = f"Probability of each number of lesions: most likely {count['count_mode']}, 90 % interval {low} to {high}."
    # There is one such figure per scan: margins that are known beforehand take half of the time of a layout.
    margins = {"left": 0.13, "right": 0.98, "bottom": 0.21, "top": 0.88}
    return drawn(draw, height_inch=2.3, label=label, key=key, margins=margins)


def _bars(axes: Any, positions: NDArray[Any], heights: NDArray[Any], **style: Any) -> None:
    """All bars as one shape: ten times as fast as ``axes.bar``, which makes a shape of each."""
    x = positions[:, None] + np.array((-0.4, -0.4, 0.4, 0.4, -0.4))
    y = heights[:, None] * np.array((0, 1, 1, 0, 0))
    paths, patches = (optional(f"matplotlib.{name}", "report", "Writing the report") for name in ("path", "patches"))
    kinds = (paths.Path.MOVETO, *(paths.Path.LINETO,) * 3, paths.Path.CLOSEPOLY)
    outline = paths.Path(np.stack([x, y], axis=-1).reshape(-1, 2), np.tile(kinds, len(positions)))
    axes.add_patch(patches.PathPatch(outline, **style))


def _name_rows(axes: Any, scans: Sequence[ScanSummary]) -> None:
    axes.set_yticks(range(len(scans)), [_shortened(scan.name) for scan in scans])
    axes.tick_params(axis="y", length=0)
    for text, scan in zip(axes.get_yticklabels(), scans, strict=True):
        text.set_url(f"#{scan.anchor}")


def _shortened(name: str) -> str:
    """The name with its middle left out when it is long: scans of a cohort differ at the beginning or at the end."""
    half = _LONGEST_NAME // 2
    return name if len(name) <= _LONGEST_NAME else f"{name[:half]}…{name[-half + 1 :]}"

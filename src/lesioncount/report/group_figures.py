"""Groups of patients → figures: their means, their rate ratios, and the total of each."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

import numpy as np

from lesioncount.assess.groups import TrialSummary
from lesioncount.assess.groups.group_row import GroupRow, RatioRow
from lesioncount.distributions.plotting import grouped
from lesioncount.report.drawing import (
    DOTTED,
    MARK,
    OURS,
    USUAL,
    Figure,
    count_axis,
    figure_of,
    legend,
    name_rows,
    ratio_axis,
    some_of,
    whole_numbers,
)

# Letters of the name of a group that fit beside its row, and its rows.
_LINE, _MOST_LINES = 18, 2

# Means further apart than this factor, or patients with more lesions, are shown by their logarithms.
_MANY_LESIONS = 30

# Points of patients, which lie above and below each other where there are many.
_SPREAD = 0.32
_MOST_POINTS = 300

_MOST_BARS = 60
_PALE = 0.35


def figures_of(summary: TrialSummary) -> dict[str, Figure]:
    """All figures that have something to show, by name."""
    drawn = [_means(summary), _ratios(summary)]
    drawn += [_total(summary, number, group) for number, group in enumerate(summary.groups, start=1)]
    return {figure.name: figure for figure in drawn if figure is not None}


def _means(summary: TrialSummary) -> Figure:
    """Each group in a row: its patients as points, and the mean per scan with its interval."""
    groups, what = summary.groups, f"{summary.lesions} per {summary.unit}"
    largest = max(max(group.expected, default=0.0) for group in groups)

    def draw(axes: Any) -> None:
        for row, group in enumerate(groups):
            points = some_of(group.expected, _MOST_POINTS)
            label = f"a patient: expected {what}" if row == 0 else None
            axes.plot(points, row + _scattered(len(points)), "o", color=USUAL, markersize=3.5, alpha=0.7, label=label)
            _draw_mean(axes, row, group, f"mean per {summary.unit}, with its 95 % interval" if row == 0 else None)
        axes.set(xlabel=what, xlim=(-0.04 * max(largest, 1.0), 1.05 * max(largest, 1.0)))
        count_axis(axes, "x", is_log=largest > _MANY_LESIONS)
        name_rows(axes, _folded(group.name for group in groups))
        legend(axes.figure)

    label = f"{what.capitalize()} of the patients of each group, and the mean of each with its 95 % interval."
    return figure_of("group-means", label, draw, height_inch=1.5 + 0.55 * len(groups))


def _draw_mean(axes: Any, row: int, group: GroupRow, label: str | None) -> None:
    mean = group.per_scan.estimate
    if mean.has_interval:
        axes.hlines([row], mean.low, mean.high, color=OURS, linewidth=4, alpha=0.6)
    axes.plot([mean.value], [row], "D", color=OURS, markersize=7, label=label)


def _ratios(summary: TrialSummary) -> Figure | None:
    """The ratio of each group to the reference with its interval, on a scale where a half and twice are as far."""
    known = [ratio for ratio in summary.ratios if ratio.is_known]
    if not known:
        return None

    def draw(axes: Any) -> None:
        axes.axvline(0, **DOTTED)
        for row, ratio in enumerate(known):
            _draw_ratio(axes, row, ratio)
        low, high = axes.get_xlim()
        axes.set_xlim(min(low, -np.log(2.2)), max(high, np.log(2.2)))
        ratio_axis(axes.xaxis)
        axes.set_xlabel(f"rate, as a multiple of that of {summary.reference.name[:40]}")
        name_rows(axes, _folded(ratio.name for ratio in known))

    label = "Rate ratios to the reference with their 95 % intervals; at ×1 there is no difference."
    return figure_of("group-ratios", label, draw, height_inch=1.0 + 0.45 * len(known))


def _draw_ratio(axes: Any, row: int, ratio: RatioRow) -> None:
    is_clear = not ratio.ratio.low <= 1 <= ratio.ratio.high
    value, low, high = np.log([ratio.ratio.value, ratio.ratio.low, ratio.ratio.high])
    axes.hlines([row], low, high, color=OURS, linewidth=2)
    axes.plot([value], [row], "D", color=OURS, markersize=8, markerfacecolor=OURS if is_clear else "none")


def _total(summary: TrialSummary, number: int, group: GroupRow) -> Figure:
    """How probable each total is; paler outside of the 95 % interval."""
    edges, p = grouped(group.total, _MOST_BARS)
    low, high = group.total_interval
    width = int(edges[1] - edges[0])

    def draw(axes: Any) -> None:
        bars = axes.bar(edges[:-1] + (width - 1) / 2, p, width=0.9 * width, color=OURS)
        for begin, bar in zip(edges[:-1].tolist(), bars, strict=True):
            bar.set_alpha(1.0 if begin + width > low and begin <= high else _PALE)
        axes.axvline(group.total.mean(), color=MARK, linewidth=1.5)
        axes.set(xlabel=f"{summary.lesions} in its {group.n_scans} {summary.unit}s together", ylabel="probability")
        axes.set_title(textwrap.shorten(group.name, 40, placeholder=" …"), fontsize=10, loc="left")
        whole_numbers(axes.xaxis)

    what = f"How many {summary.lesions} all {summary.unit}s"
    label = f"{what} of {group.name} have together, and how probable each total is."
    return figure_of(f"group-total-{number}", label, draw, height_inch=2.4, width_inch=3.6)


def _folded(names: Iterable[str]) -> list[str]:
    return [textwrap.fill(name, _LINE, max_lines=_MOST_LINES, placeholder=" …") for name in names]


def _scattered(n: int) -> Any:
    """Shifts up and down that keep points apart, the same every time: by the golden section, no two are close."""
    return _SPREAD * (2 * ((np.arange(n) * 0.618034) % 1) - 1)

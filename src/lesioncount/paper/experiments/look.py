"""How each method looks in all figures: colour, marker and dashes tell the same, for prints in black."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lesioncount.report.drawing import COLOURS as REPORT_COLOURS
from lesioncount.report.drawing import in_percent
from lesioncount.trust.scores.estimate import Estimate

# Okabe and Ito's palette, and a brown; those of the report where the method is the same.
COLOURS = {
    "ours_post_hoc": REPORT_COLOURS["raw"],
    "ours": REPORT_COLOURS["raw"],
    "ours_unweighted": "#56b4e9",
    "ours_fitted": REPORT_COLOURS["calibrated"],
    "cc": REPORT_COLOURS["cc"],
    "cc_dropout": REPORT_COLOURS["cc"],
    "cc_tuned": REPORT_COLOURS["cc_tuned"],
    "all_zero": REPORT_COLOURS["all_zero"],
    "bottleneck": "#009e73",
    "multihead": "#a6761d",
    "downstream": "#7570b3",
}
MARKERS = {
    "ours_post_hoc": "o", "ours": "D", "ours_unweighted": "v", "ours_fitted": "s", "cc": "x", "cc_dropout": "x",
    "cc_tuned": "+", "all_zero": "|", "bottleneck": "^", "multihead": "<", "downstream": ">",
}  # fmt: skip
DASHES: dict[str, Any] = {
    "ours_post_hoc": "-", "ours": (0, (6, 1)), "ours_unweighted": (0, (3, 1)), "ours_fitted": (0, (5, 2)),
    "cc": (0, (1, 1.5)), "cc_dropout": (0, (1, 1.5)),
}  # fmt: skip

# Names in figures, where there is little room.
SHORT = {
    "ours_post_hoc": "ours, post hoc",
    "ours_unweighted": "ours, weight undone",
    "ours_fitted": "ours, fitted calibration",
    "ours": "ours, multi-task",
    "cc": "connected components",
    "cc_dropout": "CC with MC dropout",
    "cc_tuned": "CC, τ from validation",
    "all_zero": "no lesion anywhere",
    "bottleneck": "bottleneck",
    "multihead": "multi-head",
    "downstream": "downstream",
}


def style(method: str) -> dict[str, Any]:
    """Of a line."""
    return {"color": COLOURS[method], "linestyle": DASHES.get(method, "-"), "label": SHORT[method], "linewidth": 1.8}


def with_band(axes: Any, x: Sequence[float], estimates: Sequence[Estimate], method: str) -> None:
    """A line with its 95 % interval."""
    look = style(method)
    axes.plot(x, [one.value for one in estimates], marker=MARKERS[method], markersize=5, **look)
    low, high = [one.low for one in estimates], [one.high for one in estimates]
    axes.fill_between(x, low, high, color=look["color"], alpha=0.15, linewidth=0)


def percent_up(axes: Any, *, bottom: float = 0.0) -> None:
    """An axis of shares upwards."""
    axes.set_ylim(bottom, 1.02)
    in_percent(axes.yaxis)

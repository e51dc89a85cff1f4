"""How each method looks in the figures of the experiments; methods of the report look as they do there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lesioncount.report.charts import Look, draw_band
from lesioncount.report.drawing import in_percent
from lesioncount.trust.scores.estimate import Estimate

# Names in figures, where there is little room.
SHORT = {
    "ours_post_hoc": "ours, post hoc",
    "ours_unweighted": "ours, weight undone",
    "ours_fitted": "ours, fitted calibration",
    "ours": "ours, multi-task",
    "ours_peaks": "ours, multi-task, peaks",
    "cc": "connected components",
    "cc_dropout": "CC with MC dropout",
    "cc_tuned": "CC, τ from validation",
    "all_zero": "no lesion anywhere",
    "bottleneck": "bottleneck",
    "multihead": "multi-head",
    "downstream": "downstream",
}

# What a method is in the report, where it is there.
_IN_REPORT = {
    "ours_post_hoc": "raw", "ours_fitted": "calibrated", "cc": "cc", "cc_dropout": "cc", "cc_tuned": "cc_tuned",
    "all_zero": "all_zero",
}  # fmt: skip

# Others: more of Okabe and Ito's palette, a brown and a violet.
_ONLY_HERE: dict[str, tuple[str, str, Any]] = {
    "ours": ("#0072b2", "D", (0, (6, 1))),
    "ours_peaks": ("#cc79a7", "d", (0, (6, 1))),
    "ours_unweighted": ("#56b4e9", "v", (0, (3, 1))),
    "bottleneck": ("#009e73", "^", "-"),
    "multihead": ("#a6761d", "<", "-"),
    "downstream": ("#7570b3", ">", "-"),
}

LOOKS = {
    method: Look.of(_IN_REPORT[method], name) if method in _IN_REPORT else Look(name, *_ONLY_HERE[method])
    for method, name in SHORT.items()
}


def with_band(axes: Any, x: Sequence[float], estimates: Sequence[Estimate], method: str) -> None:
    """A line with its 95 % interval."""
    look = LOOKS[method]
    values = [one.value for one in estimates]
    axes.plot(x, values, marker=look.marker, markersize=5, **look.line, linewidth=1.8, label=look.label)
    draw_band(axes, x, ([one.low for one in estimates], [one.high for one in estimates]), look)


def percent_up(axes: Any, *, bottom: float = 0.0) -> None:
    """A vertical axis of shares."""
    axes.set_ylim(bottom, 1.02)
    in_percent(axes.yaxis)

"""All methods side by side: an estimate, its interval, and each seed."""

from __future__ import annotations

from typing import Any

from lesioncount.report.drawing import Figure, svg
from lesioncount.trust.scores.estimate import Estimate
from lesioncount_reproduction.experiments.look import LOOKS, SHORT

# Scores: what their axis is called, by what they are multiplied, and which way is better.
_AXES = {
    "accuracy": ("count accuracy, %", 100.0, "→ better"),
    "rps": ("RPS of the count", 1.0, "better ←"),
    "voxel_f1": ("voxel F1, %", 100.0, "→ better"),
    "voxel_ece": ("voxel ECE, 1e-5", 1e5, "better ←"),
}


def comparison_figure(scores: dict[str, dict[str, Estimate]], name: str) -> Figure:
    """A panel per score, a line per method."""
    names = list(scores)
    lines = [len(scores[names[0]]), len(scores[names[2]])]

    def draw(figure: Any) -> None:
        grid = figure.subplots(2, 2, sharey="row", height_ratios=lines)
        for axes, score in zip(grid.flat, names, strict=True):
            label, factor, better = _AXES[score]
            for row, (method, estimate) in enumerate(scores[score].items()):
                _line(axes, row, estimate, factor, method)
            axes.set(xlabel=f"{label}  ({better})", ylim=(len(scores[score]) - 0.4, -0.5))
            axes.set_yticks(range(len(scores[score])), [_name(method, score) for method in scores[score]])
            axes.tick_params(axis="y", length=0)
            axes.grid(axis="x", linewidth=0.3, alpha=0.5)

    label = "Scores of all methods: mean over seeds, 95 % interval over patients, and small marks for single seeds."
    return Figure(name, label, svg(draw, height_inch=1.6 + 0.25 * sum(lines), width_inch=6.4))


def _name(method: str, score: str) -> str:
    """A map that learned segmentation only belongs to no way to count."""
    return "segmentation only" if method == "ours_post_hoc" and score.startswith("voxel") else SHORT[method]


def _line(axes: Any, row: int, estimate: Estimate, factor: float, method: str) -> None:
    colour = LOOKS[method].colour
    axes.plot([estimate.low * factor, estimate.high * factor], [row, row], color=colour, linewidth=1.8)
    axes.plot(estimate.value * factor, row, LOOKS[method].marker, color=colour, markersize=7)
    if len(estimate.seeds) > 1:
        seeds = [value * factor for value in estimate.seeds]
        axes.plot(seeds, [row + 0.28] * len(seeds), ".", color=colour, markersize=4, alpha=0.8)

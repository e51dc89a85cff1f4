"""Confidence and hits: of counts, and of single candidates."""

from __future__ import annotations

from typing import Any

from lesioncount.report.charts import draw_reliability
from lesioncount.report.drawing import Figure, in_percent, legend, svg
from lesioncount.trust.scores.reliability import Reliability
from lesioncount_reproduction.experiments.look import LOOKS, SHORT

# What a line of letters takes up, on the axis of shares.
_LABEL_HEIGHT = 0.05


def reliability_figure(curves: dict[str, Reliability], components: dict[float, float]) -> Figure:
    """Of the most probable count; connected components are always sure, and have one point each."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        draw_reliability(axes, [(LOOKS[method], of) for method, of in curves.items()])
        for i, accuracy in enumerate(components.values()):
            look, label = LOOKS["cc"], SHORT["cc"] if i == 0 else None
            axes.plot(1, accuracy, look.marker, color=look.colour, markersize=7, clip_on=False, label=label)
        for accuracy, thresholds in _apart(components).items():
            text = "τ = " + ", ".join(f"{at:g}" for at in thresholds)
            axes.annotate(text, (1, accuracy), (8, -3), textcoords="offset points", fontsize=8, annotation_clip=False)
        _decorate(figure, axes, "probability of the most probable count", "share of scans where it was right")

    label = "How often the most probable count was right, by its probability; the diagonal is perfect calibration."
    return Figure("reliability", label, svg(draw, height_inch=3.9, width_inch=4.4))


def _apart(components: dict[float, float]) -> dict[float, list[float]]:
    """Heights at which there is room for a label, and the thresholds whose points are there."""
    found: dict[float, list[float]] = {}
    for at, accuracy in sorted(components.items(), key=lambda one: one[1]):
        near = next((height for height in found if accuracy - height < _LABEL_HEIGHT), accuracy)
        found.setdefault(near, []).append(at)
    return {height: sorted(thresholds) for height, thresholds in found.items()}


def existence_figure(curves: dict[str, Reliability]) -> Figure:
    """Of single candidates."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        draw_reliability(axes, [(LOOKS[method], of) for method, of in curves.items()])
        _decorate(figure, axes, "existence probability of a candidate", "share that has a true lesion")

    label = "How often a candidate had a true lesion for itself, by its existence probability."
    return Figure("existence", label, svg(draw, height_inch=3.7, width_inch=4.4))


def _decorate(figure: Any, axes: Any, x: str, y: str) -> None:
    axes.set(xlabel=x, ylabel=y, xlim=(0, 1.02), ylim=(0, 1.02))
    in_percent(axes.xaxis, axes.yaxis)
    legend(figure)

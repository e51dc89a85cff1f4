"""Whether distributions of any size are honest: where the truth lies in them, and how often intervals hold it."""

from __future__ import annotations

from typing import Any

from lesioncount.assess.evaluation.evaluation import Evaluation
from lesioncount.report.charts import Look, draw_coverage, draw_pit
from lesioncount.report.drawing import Figure, in_percent, legend, svg
from lesioncount.report.reliability_figures import WIDTH_INCH


def pit(evaluation: Evaluation) -> Figure | None:
    """How many scans have their truth in each tenth of its distribution."""
    ours = [method for method in evaluation.methods.values() if method.is_ours]
    found = [(Look.of(one.key, one.name), one.pit) for one in ours if one.pit is not None]
    if not found:
        return None

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        draw_pit(axes, found)
        axes.set(xlabel="where the truth lies in its distribution", ylabel="scans")
        in_percent(axes.xaxis)
        legend(figure)

    label = "Histogram of where the true count lies in its distribution: even if the distributions are honest."
    return Figure("pit", label, svg(draw, height_inch=3.4, width_inch=WIDTH_INCH))


def coverage(evaluation: Evaluation) -> Figure | None:
    """How often intervals hold the truth, by how often they should."""
    ours = [method for method in evaluation.methods.values() if method.is_ours]
    found = [(Look.of(one.key, one.name), one.coverage) for one in ours if one.coverage is not None]
    if not found:
        return None

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        draw_coverage(axes, found)
        axes.set(xlabel="intervals should hold the truth in", ylabel="they hold it in", xlim=(0, 1), ylim=(-0.02, 1.02))
        in_percent(axes.xaxis, axes.yaxis)
        legend(figure)

    label = "Share of intervals that hold the true count, by the share that should; honest ones lie on the diagonal."
    return Figure("coverage", label, svg(draw, height_inch=3.4, width_inch=WIDTH_INCH))

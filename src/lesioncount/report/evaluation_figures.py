"""An evaluation → all its figures. One method has one colour in all."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from lesioncount.assess.evaluation.evaluation import Evaluation
from lesioncount.assess.evaluation.method import EvaluatedMethod
from lesioncount.report.agreement_figures import bland_altman, scatter
from lesioncount.report.charts import Look, draw_certainty, draw_confusion
from lesioncount.report.coverage_figures import coverage, pit
from lesioncount.report.drawing import Figure, in_percent, legend, svg
from lesioncount.report.reliability_figures import WIDTH_INCH, existence, reliability
from lesioncount.trust.scores.classification import Confusion

# Letters of a name that fit over a matrix.
_TITLE_LINE = 36


def figures_of(evaluation: Evaluation) -> dict[str, Figure]:
    """All figures that have something to show, by name."""
    drawn = [scatter(evaluation), bland_altman(evaluation), pit(evaluation), coverage(evaluation)]
    drawn += [reliability(evaluation), existence(evaluation), _certainty(evaluation), _threshold(evaluation)]
    drawn += [
        _confusion(method, method.confusion)
        for method in evaluation.methods.values()
        if method.confusion is not None and method.key in ("raw", "calibrated", "cc")
    ]
    return {figure.name: figure for figure in drawn if figure is not None}


def _confusion(method: EvaluatedMethod, of: Confusion) -> Figure:
    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        draw_confusion(axes, of.matrix, Look.of(method.key, method.name).colour)
        for row, n in enumerate(of.matrix.sum(axis=1)):
            axes.text(len(of.matrix) - 0.4, row, f"of {n}", va="center", fontsize=8.5)
        axes.set(xlabel="predicted number of lesions", ylabel="true number of lesions")
        axes.set_title(textwrap.fill(method.name, _TITLE_LINE), fontsize=10, loc="left")

    label = f"Confusion matrix of {method.name}: rows are true counts, columns predicted ones."
    return Figure(f"confusion-{method.key}", label, svg(draw, height_inch=3.3, width_inch=3.5))


def _certainty(evaluation: Evaluation) -> Figure | None:
    ours = [method for method in evaluation.methods.values() if method.is_ours]
    curves = [(Look.of(one.key, one.name), one.certainty) for one in ours if one.certainty is not None]
    if not curves:
        return None

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        _level(axes, evaluation.methods.get("cc"), "accuracy")
        for look, curve in curves:
            draw_certainty(axes, curve.share, curve.accuracy, look, n_scans=evaluation.n_scans)
        axes.set(xlabel="share of scans kept, the most certain first", ylabel="count accuracy among them", xlim=(0, 1))
        _accuracy_axis(figure, axes)
        in_percent(axes.xaxis)

    label = "Count accuracy among the most certain scans, from a few of them to all."
    return Figure("certainty", label, svg(draw, height_inch=3.4, width_inch=WIDTH_INCH))


def _threshold(evaluation: Evaluation) -> Figure | None:
    curve = evaluation.threshold_curve
    if curve is None:
        return None
    look = Look.of("cc", "connected components above τ")
    tau, error = np.array(curve.threshold), np.array(curve.cc_mae)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for method in evaluation.methods.values():
            if method.is_ours:
                _level(axes, method, "mae")
        axes.plot(tau, error, color=look.colour, linewidth=2, marker=".", label=look.label)
        at = int(np.abs(tau - 0.5).argmin())
        axes.plot(tau[at], error[at], "D", color=look.colour, markersize=8, fillstyle="none", markeredgewidth=1.5)
        axes.annotate(f"{tau[at]:g}", (tau[at], error[at]), (0, -16), textcoords="offset points", ha="center")
        axes.set(xlabel="threshold τ (probability)", ylabel="mean absolute error, in lesions", xlim=(0, 1))
        axes.set_ylim(bottom=0)
        legend(figure)

    label = "Mean error of connected components by threshold, beside our counts, for which none must be chosen."
    return Figure("threshold", label, svg(draw, height_inch=3.4, width_inch=WIDTH_INCH))


def _level(axes: Any, method: EvaluatedMethod | None, name: str) -> None:
    """A score of a method over all scans as a line, with its interval as a band."""
    if method is None or not method.score(name).is_defined:
        return
    score, look = method.score(name), Look.of(method.key, method.name)
    axes.axhline(score.value, **look.line, linewidth=1.5, label=look.label)
    if score.has_interval and method.is_ours:
        axes.axhspan(score.low, score.high, color=look.colour, alpha=0.15, linewidth=0)


def _accuracy_axis(figure: Any, axes: Any) -> None:
    axes.set_ylim(0, 1.03)
    in_percent(axes.yaxis)
    legend(figure)

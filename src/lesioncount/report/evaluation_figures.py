"""An evaluation → its figures: reliability, confusion, certainty, threshold. One method has one colour in all."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from lesioncount.report.drawing import COLOURS, DASHES, Figure, in_percent, legend, svg
from lesioncount.report.evaluation_content import Evaluation, Method
from lesioncount.report.reliability_figures import THIN, WIDTH_INCH, existence, reliability

# Above it, letters are no longer legible on the colour of a cell, on light and on dark pages.
_STRONGEST = 0.55

# Letters of a name that fit over a matrix.
_TITLE_LINE = 36


def figures_of(evaluation: Evaluation) -> dict[str, Figure]:
    """All figures that there is something to show in, by name."""
    methods = list(evaluation.methods.values())
    drawn = [reliability(evaluation), existence(evaluation), _certainty(evaluation), _threshold(evaluation)]
    drawn += [
        _confusion(method) for method in methods if method.confusion and method.key in ("raw", "calibrated", "cc")
    ]
    return {figure.name: figure for figure in drawn if figure is not None}


def _confusion(method: Method) -> Figure:
    matrix = np.array(method.confusion)
    names = [*map(str, range(len(matrix) - 1)), f"{len(matrix) - 1}+"]
    share = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for (row, column), n in np.ndenumerate(matrix):
            alpha = _STRONGEST * share[row, column]
            axes.barh(row, 1, 1, column - 0.5, color=COLOURS[method.key], alpha=alpha, linewidth=0)
            axes.text(column, row, f"{n}", ha="center", va="center", fontweight="bold" if row == column else None)
        for row, n in enumerate(matrix.sum(axis=1)):
            axes.text(len(names) - 0.4, row, f"of {n}", va="center", fontsize=8.5)
        axes.set(xlabel="predicted number of lesions", ylabel="true number of lesions", aspect="equal")
        axes.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(names) - 0.5, -0.5))
        axes.set_xticks(range(len(names)), names)
        axes.set_yticks(range(len(names)), names)
        axes.tick_params(length=0)
        axes.set_title(textwrap.fill(method.name, _TITLE_LINE), fontsize=10, loc="left")

    label = f"Confusion matrix of {method.name}: rows are true counts, columns predicted ones."
    return Figure(f"confusion-{method.key}", label, svg(draw, height_inch=3.3, width_inch=3.5))


def _certainty(evaluation: Evaluation) -> Figure | None:
    methods = [method for method in evaluation.methods.values() if method.certainty]
    if not methods:
        return None

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        _level(axes, evaluation, "cc")
        for method in methods:
            curve = method.certainty or {}
            share, accuracy = (np.array(curve[name], dtype=float) for name in ("share", "accuracy"))
            style: dict[str, Any] = {"color": COLOURS[method.key], "linestyle": DASHES[method.key], "linewidth": 2}
            is_thin = share * evaluation.content["n_scans"] < THIN
            first = min(int(is_thin.sum()), len(share) - 1)
            axes.plot(share[: first + 1], accuracy[: first + 1], **style | {"linewidth": 1}, alpha=0.45)
            axes.plot(share[first:], accuracy[first:], **style, label=method.name)
        axes.set(xlabel="share of scans kept, the most certain first", ylabel="count accuracy among them", xlim=(0, 1))
        _accuracy_axis(figure, axes)

    label = "Count accuracy among the most certain scans, from a few of them to all."
    return Figure("certainty", label, svg(draw, height_inch=3.4, width_inch=WIDTH_INCH))


def _threshold(evaluation: Evaluation) -> Figure | None:
    curve = evaluation.content.get("threshold_curve")
    if not curve:
        return None

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for method in evaluation.methods.values():
            if method.is_ours:
                _level(axes, evaluation, method.key)
        tau, accuracy = (np.array(curve[name], dtype=float) for name in ("threshold", "cc_accuracy"))
        axes.plot(tau, accuracy, color=COLOURS["cc"], linewidth=2, marker=".", label="connected components above τ")
        at = int(np.abs(tau - 0.5).argmin())
        axes.plot(tau[at], accuracy[at], "D", color=COLOURS["cc"], markersize=8, fillstyle="none", markeredgewidth=1.5)
        axes.annotate(f"{tau[at]:g}", (tau[at], accuracy[at]), (0, -16), textcoords="offset points", ha="center")
        axes.set(xlabel="threshold τ (probability)", ylabel="count accuracy", xlim=(0, 1))
        _accuracy_axis(figure, axes, percent_x=False)

    label = "Count accuracy of connected components by their threshold, beside ours, which needs none to be chosen."
    return Figure("threshold", label, svg(draw, height_inch=3.4, width_inch=WIDTH_INCH))


def _level(axes: Any, evaluation: Evaluation, key: str) -> None:
    """The accuracy of a method over all scans as a line, with its interval as a band."""
    method = evaluation.methods.get(key)
    accuracy = None if method is None else method.score("accuracy")
    if method is None or accuracy is None or accuracy.estimate is None:
        return
    axes.axhline(accuracy.estimate, color=COLOURS[key], linestyle=DASHES[key], linewidth=1.5, label=method.name)
    if accuracy.has_interval and method.is_ours:
        axes.axhspan(accuracy.low, accuracy.high, color=COLOURS[key], alpha=0.15, linewidth=0)


def _accuracy_axis(figure: Any, axes: Any, *, percent_x: bool = True) -> None:
    axes.set_ylim(0, 1.03)
    in_percent(axes.yaxis, *([axes.xaxis] if percent_x else []))
    legend(figure)

"""An evaluation → all its figures. One method has one colour in all."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.evaluation.evaluation import Evaluation
from lesioncount.assess.evaluation.method import EvaluatedMethod
from lesioncount.assess.evaluation.scan_row import ScanRow
from lesioncount.report.charts import (
    Look,
    draw_certainty,
    draw_confusion,
    draw_coverage,
    draw_differences,
    draw_pit,
    draw_reliability,
    draw_scatter,
)
from lesioncount.report.drawing import Figure, in_percent, legend, svg
from lesioncount.trust.scores.agreement import BlandAltman
from lesioncount.trust.scores.reliability import ReliabilityBins

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


def _confusion(method: EvaluatedMethod, of: NDArray[np.int64]) -> Figure:
    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        draw_confusion(axes, of, Look.of(method.key, method.name).colour)
        for row, n in enumerate(of.sum(axis=1)):
            axes.text(len(of) - 0.4, row, f"of {n}", va="center", fontsize=8.5)
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


# More points than this hide each other, and make the page large.
MOST_POINTS = 600

_SIZE_INCH = 4.2


def scatter(evaluation: Evaluation) -> Figure | None:
    """The median of each scan with its 90 % interval, by the true count."""
    if evaluation.agreement is None or not evaluation.scans:
        return None
    scans, is_log = shown_scans(evaluation), evaluation.agreement.bland_altman.is_log
    look = Look.of(evaluation.ours.key, evaluation.ours.name)
    truth, median, low, high = _columns(scans, "truth", "median", "interval90_low", "interval90_high")

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        draw_scatter(axes, truth, median, (low, high), look, is_log=is_log)
        axes.set(xlabel="true number of lesions", ylabel="predicted number (median)")

    label = "Predicted number of lesions with its 90 % interval by the true number; right counts lie on the diagonal."
    return Figure("agreement", label, svg(draw, height_inch=_SIZE_INCH, width_inch=_SIZE_INCH))


def bland_altman(evaluation: Evaluation) -> Figure | None:
    """Differences between predicted and true counts, by their mean."""
    if evaluation.agreement is None or not evaluation.scans:
        return None
    found, look = evaluation.agreement.bland_altman, Look.of(evaluation.ours.key, evaluation.ours.name)
    truth, median = _columns(shown_scans(evaluation), "truth", "median")
    difference = BlandAltman.differences(median, truth, is_log=found.is_log)
    middle = np.expm1((np.log1p(median) + np.log1p(truth)) / 2) if found.is_log else (median + truth) / 2

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        draw_differences(axes, middle, difference, found, look)
        ratio, plain = "predicted / true (both plus 1)", "predicted minus true number"
        axes.set(xlabel="mean of predicted and true number", ylabel=ratio if found.is_log else plain)

    label = "Bland-Altman plot: how predicted and true numbers differ, by their mean, with limits of agreement."
    return Figure("bland-altman", label, svg(draw, height_inch=_SIZE_INCH, width_inch=_SIZE_INCH))


def shown_scans(evaluation: Evaluation) -> Sequence[ScanRow]:
    """All scans or, of very many, some from all over the list."""
    n = len(evaluation.scans)
    if n <= MOST_POINTS:
        return evaluation.scans
    return [evaluation.scans[i] for i in np.linspace(0, n - 1, MOST_POINTS).astype(int)]


def _columns(scans: Sequence[ScanRow], *names: str) -> list[NDArray[np.float64]]:
    """Counts of all scans; a file may say anything, and no count is below 0."""
    return [np.maximum([getattr(scan, name) for scan in scans], 0).astype(np.float64) for name in names]


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


# Narrower than figures of the report: these have more to read on a phone.
WIDTH_INCH = 4.2

# Digits side by side that fit over the bars; longer numbers are turned.
_DIGITS_IN_LINE = 4

_Curves = list[tuple[Look, ReliabilityBins]]


def reliability(evaluation: Evaluation) -> Figure | None:
    """How often the most probable count was right, by its probability."""
    ours = [method for method in evaluation.methods.values() if method.is_ours]
    curves = [(Look.of(one.key, one.name), one.reliability) for one in ours if one.reliability is not None]
    label = "Reliability: how often the most probable count was right, by its probability, and scans per bin."
    x, y = "probability of the most probable count", "share of scans\nwhere it was right"
    return _figure("reliability", label, curves, x=x, y=y, n="scans")


def existence(evaluation: Evaluation) -> Figure | None:
    """How often a candidate is a lesion, by its existence probability."""
    bins = None if evaluation.lesions is None else evaluation.lesions.reliability
    curves = [] if bins is None else [(Look.of("raw", "candidates"), bins)]
    label = "Reliability of existence probabilities: how often candidates are true lesions, and candidates per bin."
    x, y = "existence probability of a candidate", "share of candidates\nthat are lesions"
    return _figure("existence", label, curves, x=x, y=y, n="candidates")


def _figure(name: str, label: str, curves: _Curves, *, x: str, y: str, n: str) -> Figure | None:
    """Hit rates above, and below them how many predictions they stand on; None if there are none."""
    if not any(of.n.any() for _, of in curves):
        return None

    def draw(figure: Any) -> None:
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        draw_reliability(top, curves, intervals=True)
        for number, (look, of) in enumerate(curves):
            _sizes(bottom, look, of, number, len(curves))
        top.set(ylabel=y, xlim=(-0.02, 1.02), ylim=(-0.04, 1.04))
        in_percent(top.yaxis, bottom.xaxis)
        bottom.set(xlabel=x, ylabel=n, xticks=np.linspace(0, 1, 6), yticks=[])
        legend(figure)

    return Figure(name, label, svg(draw, height_inch=4.6, width_inch=WIDTH_INCH))


def _sizes(axes: Any, look: Look, of: ReliabilityBins, number: int, n_curves: int) -> None:
    width = 0.9 / len(of.n) / n_curves
    centres = (np.arange(len(of.n)) + 0.5) / len(of.n) + width * (number - (n_curves - 1) / 2)
    is_turned = n_curves * len(str(of.n.max())) > _DIGITS_IN_LINE
    axes.bar(centres, of.n, width=0.92 * width, color=look.colour)
    for x, n in zip(centres, of.n, strict=True):
        if n:
            style = {"ha": "center", "fontsize": 8, "rotation": 90 if is_turned else 0}
            axes.annotate(f"{n}", (x, n), (0, 2), textcoords="offset points", **style)
    axes.set_ylim(0, max(axes.get_ylim()[1], (1.9 if is_turned else 1.35) * of.n.max()))

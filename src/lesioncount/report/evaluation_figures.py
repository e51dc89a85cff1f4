"""An evaluation → all its figures. One method has one colour in all."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.evaluation.evaluation import Evaluation, ScanRow
from lesioncount.assess.evaluation.method import EvaluatedMethod
from lesioncount.report.charts import Look, draw_certainty, draw_confusion, draw_reliability
from lesioncount.report.drawing import (
    DOTTED,
    INK,
    USUAL,
    Figure,
    count_axis,
    figure_of,
    in_percent,
    legend,
    ratio_axis,
    some_of,
    svg,
)
from lesioncount.trust.scores.agreement import BlandAltman
from lesioncount.trust.scores.reliability import ReliabilityBins

# Letters of a name that fit over a matrix.
_TITLE_LINE = 36

# More points than this hide each other, and make the page large.
MOST_POINTS = 600

# Narrower than figures of the report: these have more to read on a phone.
_WIDTH_INCH = 4.2

# Digits side by side that fit over the bars; longer numbers are turned.
_DIGITS_IN_LINE = 4


def figures_of(evaluation: Evaluation) -> dict[str, Figure]:
    """All figures that have something to show, by name."""
    drawn = [_scatter(evaluation), _bland_altman(evaluation), _pit(evaluation), _coverage(evaluation)]
    drawn += [_reliability(evaluation), _existence(evaluation), _certainty(evaluation), _threshold(evaluation)]
    drawn += [
        _confusion(method, method.confusion)
        for method in evaluation.methods.values()
        if method.confusion is not None and method.key in ("raw", "calibrated", "cc")
    ]
    return {figure.name: figure for figure in drawn if figure is not None}


def _look(method: EvaluatedMethod) -> Look:
    return Look.of(method.key, method.name)


def _curves(evaluation: Evaluation, name: str) -> list[tuple[Look, Any]]:
    """A curve or histogram of each of our methods that has it."""
    ours = (method for method in evaluation.methods.values() if method.is_ours)
    return [(_look(method), of) for method in ours if (of := getattr(method, name)) is not None]


def _confusion(method: EvaluatedMethod, of: NDArray[np.int64]) -> Figure:
    def draw(axes: Any) -> None:
        draw_confusion(axes, of, _look(method).colour)
        for row, n in enumerate(of.sum(axis=1)):
            axes.text(len(of) - 0.4, row, f"of {n}", va="center", fontsize=8.5)
        axes.set(xlabel="predicted number of lesions", ylabel="true number of lesions")
        axes.set_title(textwrap.fill(method.name, _TITLE_LINE), fontsize=10, loc="left")

    label = f"Confusion matrix of {method.name}: rows are true counts, columns predicted ones."
    return figure_of(f"confusion-{method.key}", label, draw, height_inch=3.3, width_inch=3.5)


def _certainty(evaluation: Evaluation) -> Figure | None:
    curves = _curves(evaluation, "certainty")
    if not curves:
        return None

    def draw(axes: Any) -> None:
        _level(axes, evaluation.methods.get("cc"), "accuracy")
        for look, curve in curves:
            draw_certainty(axes, curve.share, curve.accuracy, look, n_scans=evaluation.n_scans)
        axes.set(xlabel="share of scans kept, the most certain first", ylabel="count accuracy among them", xlim=(0, 1))
        axes.set_ylim(0, 1.03)
        in_percent(axes.xaxis, axes.yaxis)
        legend(axes.figure)

    label = "Count accuracy among the most certain scans, from a few of them to all."
    return figure_of("certainty", label, draw, height_inch=3.4, width_inch=_WIDTH_INCH)


def _threshold(evaluation: Evaluation) -> Figure | None:
    curve = evaluation.threshold_curve
    if curve is None:
        return None
    look = Look.of("cc", "connected components above τ")
    tau, error = np.array(curve.threshold), np.array(curve.cc_mae)

    def draw(axes: Any) -> None:
        for method in evaluation.methods.values():
            if method.is_ours:
                _level(axes, method, "mae")
        axes.plot(tau, error, color=look.colour, linewidth=2, marker=".", label=look.label)
        at = int(np.abs(tau - 0.5).argmin())
        axes.plot(tau[at], error[at], "D", color=look.colour, markersize=8, fillstyle="none", markeredgewidth=1.5)
        axes.annotate(f"{tau[at]:g}", (tau[at], error[at]), (0, -16), textcoords="offset points", ha="center")
        axes.set(xlabel="threshold τ (probability)", ylabel="mean absolute error, in lesions", xlim=(0, 1))
        axes.set_ylim(bottom=0)
        legend(axes.figure)

    label = "Mean error of connected components by threshold, beside our counts, for which none must be chosen."
    return figure_of("threshold", label, draw, height_inch=3.4, width_inch=_WIDTH_INCH)


def _level(axes: Any, method: EvaluatedMethod | None, name: str) -> None:
    """A score of a method over all scans as a line, with its interval as a band."""
    if method is None or not method.score(name).is_defined:
        return
    score, look = method.score(name), _look(method)
    axes.axhline(score.value, **look.line, linewidth=1.5, label=look.label)
    if score.has_interval and method.is_ours:
        axes.axhspan(score.low, score.high, color=look.colour, alpha=0.15, linewidth=0)


def _scatter(evaluation: Evaluation) -> Figure | None:
    """The median of each scan with its 90 % interval, by the true count; hollow where that does not hold the truth."""
    if evaluation.agreement is None or not evaluation.scans:
        return None
    scans, is_log = shown_scans(evaluation), evaluation.agreement.bland_altman.is_log
    colour = _look(evaluation.ours).colour
    truth, median, low, high = _columns(scans, "truth", "median", "interval90_low", "interval90_high")

    def draw(axes: Any) -> None:
        first, last = _ends(max(truth.max(), median.max(), high.max(), 1.0), is_log=is_log)
        axes.plot([0, last], [0, last], **DOTTED)
        x = truth if is_log else truth + _spread(truth)
        axes.vlines(x, low, high, color=colour, linewidth=0.8, alpha=0.45)
        holds = (low <= truth) & (truth <= high)
        for part, face in ((holds, colour), (~holds, "none")):
            axes.plot(x[part], median[part], "o", color=colour, markersize=4, markerfacecolor=face)
        axes.set(xlim=(first, last), ylim=(first, last))
        for name in ("x", "y"):
            count_axis(axes, name, is_log=is_log)
        axes.set(xlabel="true number of lesions", ylabel="predicted number (median)")

    label = "Predicted number of lesions with its 90 % interval by the true number; right counts lie on the diagonal."
    return figure_of("agreement", label, draw, height_inch=_WIDTH_INCH, width_inch=_WIDTH_INCH)


def _bland_altman(evaluation: Evaluation) -> Figure | None:
    """Differences between predicted and true counts by their mean, with their mean, its interval, and the limits."""
    if evaluation.agreement is None or not evaluation.scans:
        return None
    found, colour = evaluation.agreement.bland_altman, _look(evaluation.ours).colour
    truth, median = _columns(shown_scans(evaluation), "truth", "median")
    difference = BlandAltman.differences(median, truth, is_log=found.is_log)
    middle = np.expm1((np.log1p(median) + np.log1p(truth)) / 2) if found.is_log else (median + truth) / 2

    def draw(axes: Any) -> None:
        axes.axhline(0, **DOTTED)
        x = middle if found.is_log else middle + _spread(middle)
        axes.plot(x, difference, "o", color=colour, markersize=4, markerfacecolor="none")
        _draw_limits(axes, found, difference, colour)
        first, last = _ends(max(middle.max(), 1.0), is_log=found.is_log)
        axes.set_xlim(first, last + 0.5)
        count_axis(axes, "x", is_log=found.is_log)
        if found.is_log:
            ratio_axis(axes.yaxis)
        ratio, plain = "predicted / true (both plus 1)", "predicted minus true number"
        axes.set(xlabel="mean of predicted and true number", ylabel=ratio if found.is_log else plain)

    label = "Bland-Altman plot: how predicted and true numbers differ, by their mean, with limits of agreement."
    return figure_of("bland-altman", label, draw, height_inch=_WIDTH_INCH, width_inch=_WIDTH_INCH)


def _draw_limits(axes: Any, found: BlandAltman, difference: NDArray[np.float64], colour: str) -> None:
    lines = {"mean": found.mean.value, "upper limit": found.high, "lower limit": found.low}
    known = {name: at for name, at in lines.items() if np.isfinite(at)}
    for name, at in known.items():
        axes.axhline(at, color=colour, linewidth=1.6 if name == "mean" else 1)
        words = f"×{np.exp(min(at, 700.0)):.3g}" if found.is_log else f"{at:+.3g}".replace("-", "−")
        _name_line(axes, f"{name} {words}", at)
    if found.mean.has_interval:
        axes.axhspan(found.mean.low, found.mean.high, color=colour, alpha=0.2, linewidth=0)
    ends = [0.0, *difference, *known.values()]
    room = 0.12 * max(max(ends) - min(ends), 0.5)
    axes.set_ylim(min(ends) - room, max(ends) + room)


def _name_line(axes: Any, words: str, at: float) -> None:
    """Limits above and below their lines on the right, the mean on the left: they may lie close together."""
    is_lower, is_mean = words.startswith("lower"), words.startswith("mean")
    place = {"ha": "left" if is_mean else "right", "va": "top" if is_lower else "bottom", "fontsize": 8.5, "color": INK}
    where = (0.02 if is_mean else 1, at)
    shift = (0, -3 if is_lower else 2)
    axes.annotate(words, where, shift, xycoords=("axes fraction", "data"), textcoords="offset points", **place)


def _ends(largest: float, *, is_log: bool) -> tuple[float, float]:
    """Of an axis of counts up to this one."""
    return (-0.25, 1.3 * largest) if is_log else (-0.5, 1.04 * largest)


def shown_scans(evaluation: Evaluation) -> Sequence[ScanRow]:
    """All scans or, of very many, some from all over the list."""
    return some_of(evaluation.scans, MOST_POINTS)


def _columns(scans: Sequence[ScanRow], *names: str) -> list[NDArray[np.float64]]:
    """Counts of all scans; a file may say anything, and no count is below 0."""
    return [np.maximum([getattr(scan, name) for scan in scans], 0).astype(np.float64) for name in names]


def _spread(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shifts by less than half a lesion, so that scans with the same count stand side by side."""
    shift = np.zeros(len(counts))
    for value in np.unique(counts):
        same = np.flatnonzero(counts == value)
        shift[same] = np.linspace(-0.3, 0.3, len(same)) if len(same) > 1 else 0.0
    return shift


def _pit(evaluation: Evaluation) -> Figure | None:
    """How many scans have their truth in each tenth of its distribution, over the band of honest ones."""
    found = _curves(evaluation, "pit")
    if not found:
        return None

    def draw(axes: Any) -> None:
        _, first = found[0]
        axes.axhspan(first.low, first.high, color=USUAL, alpha=0.3, linewidth=0, label="95 % of the bars, if honest")
        axes.axhline(sum(first.n) / len(first.n), **DOTTED)
        for number, (look, of) in enumerate(found):
            centres, width = _side_by_side(len(of.n), number, len(found))
            axes.bar(centres, of.n, width=0.92 * width, color=look.colour, alpha=0.85, label=look.label)
        axes.set(xlim=(0, 1), xticks=np.linspace(0, 1, 6))
        count_axis(axes, "y", is_log=False)
        axes.set(xlabel="where the truth lies in its distribution", ylabel="scans")
        in_percent(axes.xaxis)
        legend(axes.figure)

    label = "Histogram of where the true count lies in its distribution: even if the distributions are honest."
    return figure_of("pit", label, draw, height_inch=3.4, width_inch=_WIDTH_INCH)


def _side_by_side(n_bins: int, number: int, n_series: int) -> tuple[NDArray[np.float64], float]:
    """Where the bars of one of several series stand in bins between 0 and 1, and how wide they are."""
    width = 0.9 / n_bins / n_series
    return (np.arange(n_bins) + 0.5) / n_bins + width * (number - (n_series - 1) / 2), width


def _coverage(evaluation: Evaluation) -> Figure | None:
    """How often intervals hold the truth, by how often they should, beside the diagonal and its band."""
    found = _curves(evaluation, "coverage")
    if not found:
        return None

    def draw(axes: Any) -> None:
        _, first = found[0]
        axes.plot([0, 1], [0, 1], **DOTTED)
        words = "95 % of the points, if honest"
        axes.fill_between(first.nominal, first.low, first.high, color=USUAL, alpha=0.3, linewidth=0, label=words)
        for look, of in found:
            axes.plot(of.nominal, of.actual, look.marker, **look.line, linewidth=1.5, markersize=4, label=look.label)
        axes.set(xlabel="intervals should hold the truth in", ylabel="they hold it in", xlim=(0, 1), ylim=(-0.02, 1.02))
        in_percent(axes.xaxis, axes.yaxis)
        legend(axes.figure)

    label = "Share of intervals that hold the true count, by the share that should; honest ones lie on the diagonal."
    return figure_of("coverage", label, draw, height_inch=3.4, width_inch=_WIDTH_INCH)


def _reliability(evaluation: Evaluation) -> Figure | None:
    """How often the most probable count was right, by its probability."""
    curves = _curves(evaluation, "reliability")
    label = "Reliability: how often the most probable count was right, by its probability, and scans per bin."
    x, y = "probability of the most probable count", "share of scans\nwhere it was right"
    return _hit_rates("reliability", label, curves, x=x, y=y, n="scans")


def _existence(evaluation: Evaluation) -> Figure | None:
    """How often a candidate is a lesion, by its existence probability."""
    bins = None if evaluation.lesions is None else evaluation.lesions.reliability
    curves = [] if bins is None else [(Look.of("raw", "candidates"), bins)]
    label = "Reliability of existence probabilities: how often candidates are true lesions, and candidates per bin."
    x, y = "existence probability of a candidate", "share of candidates\nthat are lesions"
    return _hit_rates("existence", label, curves, x=x, y=y, n="candidates")


def _hit_rates(
    name: str, label: str, curves: list[tuple[Look, ReliabilityBins]], *, x: str, y: str, n: str
) -> Figure | None:
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

    return Figure(name, label, svg(draw, height_inch=4.6, width_inch=_WIDTH_INCH))


def _sizes(axes: Any, look: Look, of: ReliabilityBins, number: int, n_curves: int) -> None:
    centres, width = _side_by_side(len(of.n), number, n_curves)
    is_turned = n_curves * len(str(of.n.max())) > _DIGITS_IN_LINE
    axes.bar(centres, of.n, width=0.92 * width, color=look.colour)
    for x, n in zip(centres, of.n, strict=True):
        if n:
            style = {"ha": "center", "fontsize": 8, "rotation": 90 if is_turned else 0}
            axes.annotate(f"{n}", (x, n), (0, 2), textcoords="offset points", **style)
    axes.set_ylim(0, max(axes.get_ylim()[1], (1.9 if is_turned else 1.35) * of.n.max()))

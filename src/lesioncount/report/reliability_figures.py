"""Reliability of counts and of candidates: how often they came true, and how many predictions that stands on."""

from __future__ import annotations

from typing import Any

import numpy as np

from lesioncount.assess.evaluation.evaluation import Evaluation
from lesioncount.report.charts import Look, draw_reliability
from lesioncount.report.drawing import Figure, in_percent, legend, svg
from lesioncount.trust.scores.reliability import Reliability

# Narrower than figures of the report: these have more to read on a phone.
WIDTH_INCH = 4.2

# Digits side by side that fit over the bars; longer numbers are turned.
_DIGITS_IN_LINE = 4

_Curves = list[tuple[Look, Reliability]]


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


def _sizes(axes: Any, look: Look, of: Reliability, number: int, n_curves: int) -> None:
    width = 0.9 / len(of.n) / n_curves
    centres = (np.arange(len(of.n)) + 0.5) / len(of.n) + width * (number - (n_curves - 1) / 2)
    is_turned = n_curves * len(str(of.n.max())) > _DIGITS_IN_LINE
    axes.bar(centres, of.n, width=0.92 * width, color=look.colour)
    for x, n in zip(centres, of.n, strict=True):
        if n:
            style = {"ha": "center", "fontsize": 8, "rotation": 90 if is_turned else 0}
            axes.annotate(f"{n}", (x, n), (0, 2), textcoords="offset points", **style)
    axes.set_ylim(0, max(axes.get_ylim()[1], (1.9 if is_turned else 1.35) * of.n.max()))

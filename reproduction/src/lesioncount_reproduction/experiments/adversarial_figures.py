"""Attacks: how often they succeed, and what they change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.report.drawing import Figure, in_percent, legend, svg
from lesioncount.trust.scores.estimate import Estimate
from lesioncount_reproduction.experiments.look import LOOKS, SHORT, with_band

# Channels of the synthetic images whose difference shows lesions: after and before the contrast agent.
_AFTER, _BEFORE = 1, 0


def success_figure(
    rates: dict[str, list[Estimate]], weights: Sequence[float], adaptive: dict[str, Estimate], adaptive_weight: float
) -> Figure:
    """Success rate by λ; with one of them, a line for each method."""
    if len(weights) == 1:
        alone = {LOOKS[method].label: (of[0], method) for method, of in rates.items()}
        alone |= {f"{SHORT[method]}, adaptive attack too": (one, method) for method, one in adaptive.items()}
        return _rates_figure(alone, weights[0])

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for method, estimates in rates.items():
            with_band(axes, weights, estimates, method)
        for i, (method, estimate) in enumerate(adaptive.items()):
            axes.errorbar(
                adaptive_weight + 0.03 * (i + 1), estimate.value,
                [[max(estimate.value - estimate.low, 0)], [max(estimate.high - estimate.value, 0)]],
                marker=LOOKS[method].marker, color=LOOKS[method].colour, markerfacecolor="none", markersize=8,
                capsize=3, linewidth=1, label=f"{SHORT[method]}, adaptive attack too",
            )  # fmt: skip
        axes.set(
            xlabel="λ, the weight of a change of the map", ylabel="attacks that changed the count", ylim=(-0.02, 1.02)
        )
        axes.set_xticks(weights)
        in_percent(axes.yaxis)
        legend(figure)

    label = "Share of attacks that changed the count, by λ, with 95 % intervals over patients."
    return Figure("success", label, svg(draw, height_inch=4.4, width_inch=4.4))


def _rates_figure(rates: dict[str, tuple[Estimate, str]], weight: float) -> Figure:
    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for row, (one, method) in enumerate(rates.values()):
            colour = LOOKS[method].colour
            axes.plot([one.low, one.high], [row, row], color=colour, linewidth=1.8)
            axes.plot(one.value, row, LOOKS[method].marker, color=colour, markersize=7)
        axes.set_yticks(range(len(rates)), list(rates))
        axes.set(
            xlabel=f"attacks that changed the count, λ = {weight:g}", xlim=(-0.02, 1.02), ylim=(len(rates) - 0.5, -0.5)
        )
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", linewidth=0.3, alpha=0.5)
        in_percent(axes.xaxis)

    label = f"Share of attacks that changed the count, λ = {weight:g}, with 95 % intervals over patients."
    return Figure("success", label, svg(draw, height_inch=1.2 + 0.3 * len(rates), width_inch=6.0))


def example_figure(examples: dict[str, dict[str, NDArray[Any]]]) -> Figure:
    """The least visible success against each method: image and map before and after, in the slice that changed."""

    def draw(figure: Any) -> None:
        grid = figure.subplots(len(examples), 5, squeeze=False)
        for row, (method, example) in enumerate(examples.items()):
            _row(grid[row], example, method, is_first=row == 0)

    label = "Attacks that changed the count with the least change of the map: image and map before and after."
    return Figure("examples", label, svg(draw, height_inch=1.45 * len(examples) + 0.4, width_inch=6.4))


def _row(line: Any, example: dict[str, NDArray[Any]], method: str, *, is_first: bool) -> None:
    z, y, x = (int(value) for value in example["voxel"])
    image, noise = example["image"], example["noise"]
    before, after = example["map_before"][z], example["map_after"][z]
    contrast = [(of[_AFTER] - of[_BEFORE])[z] for of in (image, image + noise)]
    top = float(np.abs(contrast[0]).max())
    largest = float(np.abs(noise).max())
    pictures = (
        ("image", contrast[0], "gray", -top, top),
        ("image, attacked", contrast[1], "gray", -top, top),
        ("change of the image", noise[_AFTER, z], "PuOr", -largest, largest),
        ("map", before, "viridis", 0, 1),
        ("map, attacked", after, "viridis", 0, 1),
    )
    for axes, (title, values, colours, low, high) in zip(line, pictures, strict=True):
        axes.imshow(values, cmap=colours, vmin=low, vmax=high, interpolation="nearest")
        axes.set_xticks([])
        axes.set_yticks([])
        if is_first:
            axes.set_title(title, fontsize=8)
    line[0].set_ylabel(SHORT[method], fontsize=8)
    line[2].set_xlabel(f"at most {largest:.3f} SD", fontsize=7.5)
    for axes, values in ((line[3], before), (line[4], after)):
        axes.plot(x, y, "s", markersize=7, markerfacecolor="none", markeredgecolor="#d55e00")
        axes.set_xlabel(f"{values[y, x]:.2f} in the square", fontsize=7.5)

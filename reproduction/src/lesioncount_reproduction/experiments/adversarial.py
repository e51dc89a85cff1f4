"""How easily an invisible change of the image changes the count (appendix C.5)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ExperimentError
from lesioncount.report.drawing import Figure, in_percent, legend, svg
from lesioncount.trust.scores.estimate import Estimate
from lesioncount_reproduction.experiments import published
from lesioncount_reproduction.experiments.arms import HEADS, OURS, OURS_PEAKS, SEGMENTATION
from lesioncount_reproduction.experiments.claims import Evidence
from lesioncount_reproduction.experiments.estimates import Resampling, Samples, estimate_of, estimates_of
from lesioncount_reproduction.experiments.look import LOOKS, SHORT, with_band
from lesioncount_reproduction.experiments.numerals import written
from lesioncount_reproduction.experiments.presets import AttackSettings
from lesioncount_reproduction.experiments.result import Column, Result, Row, Table
from lesioncount_reproduction.experiments.scheduling import Job
from lesioncount_reproduction.experiments.scored import Withstood
from lesioncount_reproduction.experiments.study import UNDONE, Study
from lesioncount_reproduction.experiments.trained import learned_heads, trained_heads, untrained_in_words
from lesioncount_reproduction.experiments.ways_to_count import NAMES, way_of

# That of the paper's table 1.
TABLE_1_WEIGHT = 0.5

# Candidates that an adaptive attack sees: those of our method are above 0.1, and where there are none, it is blind.
ADAPTIVE_THRESHOLD = 0.001
_ADAPTIVE = (OURS, SEGMENTATION, OURS_PEAKS, UNDONE)

# Attacks on a scan, by the candidates that their gradients see.
_PAPERS: tuple[float | None, ...] = (None,)
_BOTH: tuple[float | None, ...] = (None, ADAPTIVE_THRESHOLD)

# The methods of the paper that count as a task of the network, and post hoc counting beside them.
_MULTITASK = (*HEADS, OURS)
ATTACKED = (SEGMENTATION, *_MULTITASK)

# What peaks and a calibration change: attacked with the weight of the paper's table 1.
_ALSO = (OURS_PEAKS, UNDONE)

# How far the noise has gone, as shares of how far it can go in all steps.
_DISTANCES = (0.1, 0.2, 0.4, 0.6, 1.0)

_COLUMNS = {
    "accuracy_before": Column("accuracy before, %", "percent"),
    "accuracy_after": Column("accuracy after, %", "percent"),
    "accuracy_drop": Column("drop, %", "percent"),
    "success_rate": Column("success rate, %", "percent"),
    "blind": Column("without gradient, %", "percent"),
}


def needs(study: Study) -> Iterator[Job]:
    """What must be trained and attacked."""
    for head in HEADS:
        yield from study.trainings(head)
    for weight in sorted(settings_of(study).weights, key=lambda weight: weight != TABLE_1_WEIGHT):
        for method in ATTACKED:
            yield from study.attacks(method, weight)
        if weight == TABLE_1_WEIGHT:
            for method in _ALSO:
                yield from study.attacks(method, weight)
            for method in _ADAPTIVE:
                yield from study.attacks(method, weight, ADAPTIVE_THRESHOLD)


def run(study: Study) -> Result:
    """Attack all methods, and ours again with an attack that sees what the first is blind to."""
    found = {
        (method, weight): withstood(study, method, weight)
        for weight in settings_of(study).weights
        for method in ATTACKED
    }
    found |= {(method, TABLE_1_WEIGHT): withstood(study, method, TABLE_1_WEIGHT) for method in _ALSO}
    adaptive = {method: withstood(study, method, TABLE_1_WEIGHT, _BOTH) for method in _ADAPTIVE}
    tables, figures = (_table(study, found, adaptive), _by_distance(study)), tuple(_figures(study, found, adaptive))
    result = study.result("adversarial", attacked_patients(study), tables, figures)
    evidence, remark = _evidence(study, found, adaptive), _remark(study, found, adaptive)
    return result.with_claims(result.claim(9, *evidence, remark=remark))


def withstood(
    study: Study,
    method: str,
    weight: float,
    gradient_thresholds: Sequence[float | None] = _PAPERS,
    within: float = math.inf,
) -> dict[str, Samples]:
    """Samples of the scores of attacks on a method.

    Of several attacks on a scan, one must succeed, with no voxel of the image changed by more than ``within``.
    """
    seeds = []
    for seed in study.seeds:
        tries = [_outcomes(study, method, weight, threshold, seed) for threshold in gradient_thresholds]
        right = tries[0]["before"] == tries[0]["labels"]
        near = [(one["after"] != one["labels"]) & (one["input_change"] <= within) for one in tries]
        fooled = right & np.any(near, axis=0)
        blind = right & np.all([one["blind"] for one in tries], axis=0)
        seeds.append(Withstood(right, fooled, blind, tries[0]["patients"].tolist()))
    return Resampling.of(seeds).samples(seeds)


def _outcomes(
    study: Study, method: str, weight: float, gradient_threshold: float | None, seed: int
) -> dict[str, NDArray[Any]]:
    """What became of each attack with a seed, all folds together."""
    jobs = study.attacks_of_seed(method, seed, weight, gradient_threshold)
    outcomes = [job.load(study.cache) for job in jobs]
    names = ("labels", "before", "after", "blind", "patients", "input_change", "map_change")
    return {name: np.concatenate([getattr(one, name) for one in outcomes]) for name in names}


def settings_of(study: Study) -> AttackSettings:
    """How hard attacks try, where there are any."""
    if study.recipe.attack is None:
        raise ExperimentError(f"There are no attacks on {study.data_set}: its scans have too many lesions.")
    return study.recipe.attack


def _median_changes(
    study: Study, method: str, weight: float, gradient_threshold: float | None = None
) -> tuple[float | None, float | None]:
    """Largest change of a voxel, of the image and of the map, medians of the attacks that succeeded."""
    found: dict[str, list[float]] = {"input_change": [], "map_change": []}
    for seed in study.seeds:
        of = _outcomes(study, method, weight, gradient_threshold, seed)
        fooled = (of["before"] == of["labels"]) & (of["after"] != of["labels"])
        for name, values in found.items():
            values.extend(of[name][fooled].tolist())
    image, map_ = (float(np.median(values)) if values else None for values in found.values())
    return image, map_


_Found = dict[tuple[str, float], dict[str, Samples]]
_Adaptive = dict[str, dict[str, Samples]]


def attacked_patients(study: Study) -> list[str]:
    """The patient of each attacked scan; with every seed, others are attacked."""
    outcomes = [job.load(study.cache) for job in study.attacks("ours", TABLE_1_WEIGHT)]
    return [patient for one in outcomes for patient in one.patients.tolist()]


def _table(study: Study, found: _Found, adaptive: _Adaptive) -> Table:
    rows: list[Row] = []
    for weight in settings_of(study).weights:
        for method in (*_MULTITASK, SEGMENTATION, *(_ALSO if weight == TABLE_1_WEIGHT else ())):
            numbers = published.ADVERSARIAL[weight].get(method, ("", "", ""))
            scores, changes = estimates_of(found[method, weight], _COLUMNS), _median_changes(study, method, weight)
            rows.append((weight, NAMES[way_of(method)], *scores, *changes, *(f"{number}" for number in numbers)))
    for method, of in adaptive.items():
        name = f"{NAMES[way_of(method)]}, this or the adaptive attack"
        changes = _median_changes(study, method, TABLE_1_WEIGHT, ADAPTIVE_THRESHOLD)
        rows.append((TABLE_1_WEIGHT, name, *estimates_of(of, _COLUMNS), *changes, "", "", ""))
    columns = (
        Column("λ", "number"), Column("method"), *_COLUMNS.values(), Column("change of the image", "score"),
        Column("change of the map", "score"),
        Column("paper: after"), Column("paper: drop"), Column("paper: success"),
    )  # fmt: skip
    return Table("adversarial", "Attacks on the count", columns, tuple(rows), _note(study))


def _by_distance(study: Study) -> Table:
    """How many counts an attack has changed before it has gone far."""
    settings = settings_of(study)
    reach = [share * settings.rate * settings.max_steps for share in _DISTANCES]
    rows: list[Row] = []
    for method in (*_MULTITASK, SEGMENTATION, *_ALSO):
        for how in (_PAPERS, _BOTH) if method in _ADAPTIVE else (_PAPERS,):
            more = ", this or the adaptive attack" if how == _BOTH else ""
            found = (withstood(study, method, TABLE_1_WEIGHT, how, one)["success_rate"] for one in (*reach, math.inf))
            rows.append((f"{NAMES[way_of(method)]}{more}", *map(estimate_of, found)))
    columns = (Column("method"), *(Column(f"≤ {one:.3g}, %", "percent") for one in reach), Column("any, %", "percent"))
    note = (
        f"Success rate at λ = {TABLE_1_WEIGHT:g}, if no voxel of the image may change by more than this (in its own "
        "units; an attack stops as soon as the count changes, and its noise grows with every step)."
    )
    return Table("distance", "Attacks by how far the noise has gone", columns, tuple(rows), note)


def _note(study: Study) -> str:
    settings = settings_of(study)
    per_seed = len(attacked_patients(study)) // len(study.seeds)
    return (
        f"{per_seed} scans with at most four lesions for each seed. Scans that are counted wrong to begin with are not "
        "attacked, and the success rate is the share among the others. The attack minimises log P(true count) + λ · ℓ2 "
        f"norm (not squared) of the change of the probability map; noise with SD {settings.noise:g}, Adam with rate "
        f"{settings.rate:g}, at most {settings.max_steps} steps (the paper: 1e-4 and 500, on other data: compare "
        "patterns). Change of the image (in its own units) and of the map: the largest change of any voxel, median "
        "over successful attacks; in the rows of the adaptive attack, over those of that attack. The adaptive attack "
        f"sees candidates above {ADAPTIVE_THRESHOLD:g}, and a scan counts as fooled if either attack succeeded. "
        "Without gradient: attacks that found nothing to change. A method that gives every scan the same count cannot "
        "be fooled."
    )


def _evidence(study: Study, found: _Found, adaptive: _Adaptive) -> Iterator[Evidence]:
    ours = {"the paper's attack": found["ours", TABLE_1_WEIGHT], "that or an adaptive attack": adaptive["ours"]}
    rates = {head: found[head, TABLE_1_WEIGHT]["success_rate"] for head in trained_heads(study)}
    if not rates:
        return
    best = min(rates, key=lambda head: float(np.nan_to_num(rates[head].seeds, nan=1.0).mean()))
    for how, samples in ours.items():
        yield Evidence(
            f"success rate at λ = {TABLE_1_WEIGHT:g}, ours under {how} minus the most robust trained head "
            f"({NAMES[best]})",
            estimate_of(samples["success_rate"] - rates[best]),
            "points",
            "below",
        )


def _remark(study: Study, found: _Found, adaptive: _Adaptive) -> str:
    blind = written(estimate_of(found["ours", TABLE_1_WEIGHT]["blind"]), "percent", unit=True)
    seen = written(estimate_of(adaptive["ours"]["success_rate"]), "percent", unit=True)
    untrained = untrained_in_words(learned_heads(study))
    return (
        f"Share of scans on which the paper's attack has no gradient: {blind}; that or the adaptive attack succeeds "
        f"on {seen}. {untrained}"
    ).strip()


def _figures(study: Study, found: _Found, adaptive: _Adaptive) -> Iterator[Figure]:
    rates = {
        way_of(method): [estimate_of(found[method, weight]["success_rate"]) for weight in settings_of(study).weights]
        for method in (*_MULTITASK, SEGMENTATION)
    }
    if len(settings_of(study).weights) == 1:
        rates |= {method: [estimate_of(found[method, TABLE_1_WEIGHT]["success_rate"])] for method in _ALSO}
    seen = {way_of(method): estimate_of(of["success_rate"]) for method, of in adaptive.items()}
    yield success_figure(rates, settings_of(study).weights, seen, TABLE_1_WEIGHT)
    if study.data_set != "synthetic":
        return  # photographs of others are not ours to show
    examples = {method: _example(study, method) for method in _MULTITASK}
    shown = {method: example for method, example in examples.items() if example}
    if shown:
        yield example_figure(shown)


def _example(study: Study, method: str) -> dict[str, NDArray[Any]]:
    """The success with the least change of the map, as in the paper; of ours also those of the adaptive attack."""
    jobs = list(study.attacks(method, TABLE_1_WEIGHT))
    if method == "ours":
        jobs += list(study.attacks(method, TABLE_1_WEIGHT, ADAPTIVE_THRESHOLD))
    found = [job.load(study.cache).example for job in jobs]
    least = [(float(np.abs(one["map_after"] - one["map_before"]).max()), i) for i, one in enumerate(found) if one]
    return found[min(least)[1]] if least else {}


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

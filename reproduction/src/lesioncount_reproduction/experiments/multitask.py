"""Counting as a task of the network: ours beside three parametric heads (section 4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lesioncount.report.drawing import Figure, svg
from lesioncount.trust.scores.estimate import Estimate
from lesioncount_reproduction.experiments import published
from lesioncount_reproduction.experiments.arms import HEADS, OURS, OURS_PEAKS, SEGMENTATION
from lesioncount_reproduction.experiments.claims import EQUAL, Evidence
from lesioncount_reproduction.experiments.estimates import Resampling, Samples, estimate_of, estimates_of
from lesioncount_reproduction.experiments.look import LOOKS, SHORT
from lesioncount_reproduction.experiments.numerals import written
from lesioncount_reproduction.experiments.result import Column, Result, Row, Table
from lesioncount_reproduction.experiments.scheduling import Job
from lesioncount_reproduction.experiments.study import EVERY_METHOD, MULTITASK, Study
from lesioncount_reproduction.experiments.trained import Learned, learned_heads, learned_table, untrained_in_words
from lesioncount_reproduction.experiments.ways_to_count import NAMES, learned, post_hoc, segmented, way_of

COUNT_COLUMNS = {
    "accuracy": Column("accuracy, %", "percent"),
    "f1": Column("F1, %", "percent"),
    "rps": Column("RPS", "score"),
    "ece": Column("count ECE", "score"),
}
VOXEL_COLUMNS = {
    "voxel_f1": Column("voxel F1, %", "percent"),
    "voxel_ece": Column("voxel ECE, 1e-5", "1e-5"),
    "voxel_mce": Column("voxel MCE", "score"),
    "false_positives_above_half": Column("false positives per scan", "number"),
}
_CONTROLS = ("ours_post_hoc", "ours_unweighted", "ours_fitted", "cc", "cc_tuned", "all_zero")

_BySamples = dict[str, dict[str, Samples]]


def needs(study: Study) -> Iterator[Job]:
    """What must be trained and predicted."""
    for method in EVERY_METHOD:
        yield from study.trainings(method)


def run(study: Study) -> Result:
    """Compare count and map of all methods."""
    counts, maps, patients = compared(study)
    heads = learned_heads(study)
    title = "Multi-task methods, and counting from the map of segmentation alone"
    tables = (
        comparison_table(counts, maps, "multitask", title, untrained_in_words(heads)),
        learned_table({NAMES[head]: of for head, of in heads.items()}),
        paper_table("The paper's table 1, whose attacks have λ = 0.5", published.MULTITASK),
        _epochs_table(study, counts, maps),
        differences_table(counts),
    )
    result = study.result("multitask", patients, tables, (comparison_figure(estimates(counts, maps), "multitask"),))
    only = "Only ours and segmentation alone differ in nothing but the count loss."
    against = f"{_against_post_hoc(counts)} {untrained_in_words(heads)}".strip()
    return result.with_claims(
        result.claim(6, *_accuracy_evidence(counts, heads), remark=against),
        result.claim(7, *_calibration_evidence(study, maps, heads), remark=only),
    )


def compared(study: Study, *, share: float = 1.0) -> tuple[_BySamples, _BySamples, Sequence[str]]:
    """Samples of the scores of counts and of maps, by method; and the patient of each test scan."""
    counted = post_hoc(study, share=share)
    resampling = Resampling.of(counted["cc"])
    counts = {name: resampling.samples(counted[name]) for name in _CONTROLS}
    counts |= {method: resampling.samples(learned(study, method, share=share)) for method in MULTITASK}
    maps = {method: resampling.samples(segmented(study, method, share=share)) for method in EVERY_METHOD}
    return counts, maps, counted["cc"][0].groups


def comparison_table(counts: _BySamples, maps: _BySamples, name: str, title: str, more: str = "") -> Table:
    """All methods and controls; the scores of a map stand beside the method that it belongs to."""
    rows: list[Row] = []
    for method in (*MULTITASK, *_CONTROLS):
        of_map = maps.get(SEGMENTATION if method == "ours_post_hoc" else method, {})
        rows.append(
            (
                NAMES[method],
                *estimates_of(counts[method], COUNT_COLUMNS),
                *(estimates_of(of_map, VOXEL_COLUMNS) if of_map else [None] * len(VOXEL_COLUMNS)),
            )
        )
    note = (
        "All networks start from the same pre-trained segmentation and then train at the same rates, for the same "
        "number of epochs on masks; but the bottleneck head, which teaches the UNet what it reads, for longer. The "
        "other heads are warmed up first, on a UNet that is frozen. Only networks of ours differ from segmentation "
        "only in nothing but the count loss. Voxel F1 is taken at the threshold that is best on validation; false "
        "positives are candidates above 0.5 that touch no lesion. Post hoc methods and connected components count "
        "from the map of the network trained on segmentation only. "
        f"{more}"
    ).strip()
    columns = (Column("method"), *COUNT_COLUMNS.values(), *VOXEL_COLUMNS.values())
    return Table(name, title, columns, tuple(rows), note)


# Of the paper's tables 1 and C.2.
_PAPER_COLUMNS = (
    "accuracy, %", "F1, %", "voxel F1, %", "voxel ECE, 1e-5", "voxel MCE", "success rate of attacks, %", "drop, %",
)  # fmt: skip


def paper_table(title: str, published: Mapping[str, Sequence[float | str]]) -> Table:
    """What the paper says of the same methods."""
    rows: list[Row] = [(NAMES[method], *(f"{number}" for number in numbers)) for method, numbers in published.items()]
    columns = (Column(head) for head in ("method", *_PAPER_COLUMNS[: len(rows[0]) - 1]))
    return Table("paper", title, tuple(columns), tuple(rows))


def _epochs_table(study: Study, counts: _BySamples, maps: _BySamples) -> Table:
    """Selected by the voxel F1 of validation scans, and the last epoch, at whose end the learning rate is about 0."""
    columns = [Column("method")]
    for epoch in ("selected", "last"):
        columns += [
            Column(f"accuracy, {epoch}, %", "percent"),
            Column(f"RPS, {epoch}", "score"),
            Column(f"voxel ECE, {epoch}, 1e-5", "1e-5"),
        ]
    rows: list[Row] = []
    for method in (*MULTITASK, SEGMENTATION):
        last_map = segmented(study, method, epoch="last")
        resampling = Resampling.of(last_map)
        last = resampling.samples(learned(study, method, epoch="last")) | resampling.samples(last_map)
        name = way_of(method)
        selected = counts[name] | maps[method]
        scores = ("accuracy", "rps", "voxel_ece")
        rows.append((NAMES[name], *estimates_of(selected, scores), *estimates_of(last, scores)))
    return Table("epochs", "The selected and the last epoch", tuple(columns), tuple(rows))


def differences_table(counts: _BySamples) -> Table:
    """What counting as a task gains over counting from the map of segmentation alone, paired."""
    columns = (
        Column("ours, multi-task, minus"),
        Column("accuracy, points", "percent"),
        Column("RPS", "score"),
        Column("count ECE", "score"),
    )
    rows: tuple[Row, ...] = tuple(
        (NAMES[other], *(estimate_of(counts["ours"][s] - counts[other][s]) for s in ("accuracy", "rps", "ece")))
        for other in ("ours_post_hoc", "ours_unweighted", "ours_fitted", "cc_tuned", OURS_PEAKS, *HEADS)
    )
    note = "Differences below 0 in RPS and ECE, and above 0 in accuracy, favour ours, multi-task."
    return Table("differences", "What count training gains, paired differences", columns, rows, note)


def best_head(counts: Mapping[str, Mapping[str, Samples]], heads: dict[str, Learned]) -> str | None:
    """Of the trained heads, the one that counts best on the test scans: the choice favours the heads."""
    trained = [head for head, of in heads.items() if of.is_trained]
    return max(trained, key=lambda head: estimate_of(counts[head]["accuracy"]).value) if trained else None


def _against_post_hoc(counts: _BySamples) -> str:
    against = {
        name: written(estimate_of(counts["ours"]["accuracy"] - counts[name]["accuracy"]), "points", unit=True)
        for name in ("ours_post_hoc", "ours_unweighted")
    }
    return (
        f"Accuracy of ours multi-task minus that of post hoc: {against['ours_post_hoc']}; minus that of post hoc with "
        f"the positive weight undone: {against['ours_unweighted']}."
    )


def _accuracy_evidence(counts: _BySamples, heads: dict[str, Learned]) -> Iterator[Evidence]:
    best = best_head(counts, heads)
    if best is not None:
        difference = estimate_of(counts["ours"]["accuracy"] - counts[best]["accuracy"])
        measured = f"accuracy, ours multi-task minus the best trained head ({NAMES[best]})"
        yield Evidence(measured, difference, "points", "above", -EQUAL)


def _calibration_evidence(study: Study, maps: _BySamples, heads: dict[str, Learned]) -> Iterator[Evidence]:
    """A map gets sharper with every epoch: one whose UNet learned for longer is named, and not compared."""
    for other in (SEGMENTATION, *HEADS):
        why_not = [heads[other].why_not] if other in heads and not heads[other].is_trained else []
        ours, theirs = (next(study.arms(method)).segmentation_epochs for method in (OURS, other))
        if ours != theirs:
            why_not.append(f"its UNet learned from masks for {theirs} epochs, that of ours for {ours}")
        yield Evidence(
            f"voxel ECE, ours multi-task minus {NAMES[other]}",
            estimate_of(maps["ours"]["voxel_ece"] - maps[other]["voxel_ece"]),
            "1e-5",
            "below",
            untested=", and ".join(why_not),
        )


def estimates(counts: _BySamples, maps: _BySamples) -> dict[str, dict[str, Estimate]]:
    """Scores by name and method, for a figure."""
    found: dict[str, dict[str, Estimate]] = {
        score: {method: estimate_of(counts[method][score]) for method in (*MULTITASK, *_CONTROLS)}
        for score in ("accuracy", "rps")
    }
    for score in ("voxel_f1", "voxel_ece"):
        found[score] = {way_of(method): estimate_of(maps[method][score]) for method in (*MULTITASK, SEGMENTATION)}
    return found


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

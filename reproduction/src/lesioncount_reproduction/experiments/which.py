"""Which count to use: every way to count in one table, in lesions and not in classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.optional import optional
from lesioncount.report.drawing import MARK, USUAL, Figure, svg
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.scores.estimate import Estimate
from lesioncount.trust.scores.predictions import Predictions
from lesioncount_reproduction.experiments.arms import HEADS, LOSS, OURS, OURS_PEAKS, SEGMENTATION, Arm
from lesioncount_reproduction.experiments.classes import CountClasses
from lesioncount_reproduction.experiments.estimates import Resampling, Samples, estimate_of, estimates_of
from lesioncount_reproduction.experiments.jobs import Trained
from lesioncount_reproduction.experiments.out_of_fold import (
    N_PARTS,
    THRESHOLDS,
    KnownScans,
    components_tuned,
    counted_as_they_are,
    counted_by_forest,
    counted_by_head,
    counted_calibrated,
)
from lesioncount_reproduction.experiments.result import Column, Result, Row, Table
from lesioncount_reproduction.experiments.scheduling import Job
from lesioncount_reproduction.experiments.stats import ScanStats
from lesioncount_reproduction.experiments.study import EVERY_METHOD, Study
from lesioncount_reproduction.lidc import read_lidc

TUNED = "cc_tuned"

_COLUMNS = {
    "rps": Column("RPS", "score"),
    "mae": Column("mean error", "score"),
    "exact": Column("exact, %", "percent"),
    "binned": Column("right class, %", "percent"),
    "coverage90": Column("in 90 % interval, %", "percent"),
    "width90": Column("its width", "number"),
    "auroc": Column("AUROC(entropy → error)", "score"),
}

# Names, and what is needed besides a trained segmentation.
WAYS = {
    "cc": ("connected components (τ = 0.5)", "nothing"),
    "cc_tuned": ("connected components, τ tuned", "known counts"),
    "forest": ("regression on components and volumes", "known counts"),
    "regions": ("regions, as in the paper", "nothing"),
    "regions_undone": ("regions, positive weight undone", "the weight"),
    "regions_calibrated": ("regions, calibrated", "known counts"),
    "peaks": ("peaks", "nothing"),
    "peaks_undone": ("peaks, positive weight undone", "the weight"),
    "peaks_calibrated": ("peaks, calibrated", "known counts"),
    OURS: ("multi-task, regions", "training with counts"),
    OURS_PEAKS: ("multi-task, peaks", "training with counts"),
    "ours_peaks_calibrated": ("multi-task, peaks, calibrated", "training with counts, and known counts"),
    "bottleneck": ("bottleneck head", "training with counts"),
    "multihead": ("multi-head", "training with counts"),
    "downstream": ("downstream head", "training with counts"),
    "scores": ("candidates with their scores", "nothing"),
    "scores_forest": ("regression on components", "known counts"),
    "scores_calibrated": ("calibrated candidates", "known counts"),
}


@dataclass(frozen=True, eq=False)
class InLesions:
    """A way to count, scored in lesions; and beside that in classes."""

    exact: Predictions
    classes: Predictions
    groups: Sequence[str]

    @property
    def shares(self) -> Mapping[str, float]:
        """Of all scans."""
        return dict.fromkeys(("exact", "binned", "coverage90"), 1.0)

    def scores(self, weights: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """All columns of the table."""
        exact, classes = self.exact.scores(weights), self.classes.scores(weights)
        same = {name: exact[name] for name in ("rps", "mae", "coverage90", "width90")}
        # A number without a distribution has no interval, and no entropy that would rank its errors.
        if self.exact.entropy is None:
            same |= {name: np.full(len(weights), np.nan) for name in ("coverage90", "width90")}
        return same | {"exact": exact["accuracy"], "binned": classes["accuracy"], "auroc": classes["auroc"]}


def needs(study: Study) -> Iterator[Job]:
    """What must be trained and predicted."""
    for method in EVERY_METHOD if _has_maps(study) else ():
        yield from study.trainings(method)


def _has_maps(study: Study) -> bool:
    """Or only a detector's candidates, to which fewer ways apply."""
    return study.recipe.data.source != "lidc"


def run(study: Study) -> Result:
    """Count in every way, and compare each with calibrated peaks, or calibrated candidates of a detector."""
    found, best = counted(study), "peaks_calibrated" if _has_maps(study) else "scores_calibrated"
    resampling = Resampling.of(found[TUNED])
    samples = {name: resampling.samples(seeds) for name, seeds in found.items()}
    estimates = {name: {score: estimate_of(of[score]) for score in ("rps", "mae")} for name, of in samples.items()}
    tables = (_table(study, samples), _differences(samples, best))
    labels = {name: WAYS[name][0] for name in estimates}
    figures = (ways_figure(estimates, labels, best=best),)
    trained = study if _has_maps(study) else replace(study, seeds=())
    return trained.result("which", found[TUNED][0].groups, tables, figures)


def counted(study: Study) -> dict[str, list[InLesions]]:
    """Every way to count, for each seed."""
    if not _has_maps(study):
        known = KnownScans.of_detections(read_lidc(Path(study.recipe.data.path)))
        return {name: [one] for name, one in _of_scores(known, study.classes)}
    found: dict[str, list[InLesions]] = {}
    stats = {method: study.stats(method) for method in EVERY_METHOD}
    for i in range(len(study.seeds)):
        of_seed = {method: of[i] for method, of in stats.items()}
        for name, one in _of_seed(of_seed, study.classes):
            found.setdefault(name, []).append(one)
    return found


def _of_scores(known: KnownScans, classes: CountClasses) -> Iterator[tuple[str, InLesions]]:
    yield from _of_components(known, classes)
    yield from _of_ways(
        known,
        classes,
        {
            "scores_forest": lambda: counted_by_forest(known),
            "scores": lambda: counted_as_they_are(known.peaks()),
            "scores_calibrated": lambda: counted_calibrated(known, known.peaks()),
        },
    )


_Ways = dict[str, Callable[[], list[CountDistribution]]]


def _of_seed(stats: Mapping[str, ScanStats], classes: CountClasses) -> Iterator[tuple[str, InLesions]]:
    known = KnownScans(stats[SEGMENTATION])
    undone = Calibration.for_positive_weight(LOSS.positive_weight)
    yield from _of_components(known, classes)
    of_peaks = KnownScans(stats[OURS_PEAKS])
    ways: _Ways = {
        "forest": lambda: counted_by_forest(known),
        "regions": lambda: counted_as_they_are(known.regions()),
        "regions_undone": lambda: counted_as_they_are(known.regions(), undone),
        "regions_calibrated": lambda: counted_calibrated(known, known.regions()),
        "peaks": lambda: counted_as_they_are(known.peaks()),
        "peaks_undone": lambda: counted_as_they_are(known.peaks(), undone),
        "peaks_calibrated": lambda: counted_calibrated(known, known.peaks()),
        OURS: lambda: counted_as_they_are(KnownScans(stats[OURS]).regions()),
        OURS_PEAKS: lambda: counted_as_they_are(of_peaks.peaks()),
        "ours_peaks_calibrated": lambda: counted_calibrated(of_peaks, of_peaks.peaks()),
        **{head: lambda head=head: counted_by_head(KnownScans(stats[head]), classes) for head in HEADS},  # type: ignore[misc]  # a name of its own for each
    }
    yield from _of_ways(known, classes, ways)


def _of_components(known: KnownScans, classes: CountClasses) -> Iterator[tuple[str, InLesions]]:
    """One number a scan: what is above a threshold."""
    numbers: dict[str, NDArray[np.int64]] = {
        "cc": known.components[:, int(np.argmin(np.abs(np.array(THRESHOLDS) - 0.5)))],
        TUNED: components_tuned(known),
    }
    for name, given in numbers.items():
        exact, of_class = Predictions.of_counts(given, known.counts), classes.of_counts(given, known.counts)
        yield name, InLesions(exact, of_class, known.stats.patients)


def _of_ways(known: KnownScans, classes: CountClasses, ways: _Ways) -> Iterator[tuple[str, InLesions]]:
    """A distribution a scan."""
    for name, count in ways.items():
        distributions = count()
        exact = Predictions.of_distributions(distributions, known.counts)
        of_class = classes.of_distributions(distributions, known.counts)
        yield name, InLesions(exact, of_class, known.stats.patients)


def _table(study: Study, samples: Mapping[str, Mapping[str, Samples]]) -> Table:
    has_maps = _has_maps(study)
    rows: list[Row] = [
        (
            WAYS[name][0],
            *estimates_of(of, _COLUMNS),
            WAYS[name][1],
            *((_minutes(study, name),) if has_maps else ()),
        )
        for name, of in samples.items()
    ]
    minutes = (Column("minutes to train", "number"),) if has_maps else ()
    columns = (Column("way to count"), *_COLUMNS.values(), Column("needs"), *minutes)
    classes = ", ".join(study.classes.names)
    note = (
        "In lesions: RPS, the ranked probability score, is the mean absolute error of a method that gives one number; "
        "mean error is that of the median; exact: the most probable count is right; the 90 % interval should hold "
        f"90 %. Right class and AUROC are about the classes {classes}. What learns from known counts is fitted to "
        f"scans of other patients, in {N_PARTS} parts, the same for all. {_OF_MAPS if has_maps else _OF_SCORES}"
    )
    return Table("which", "Which count should I use?", columns, tuple(rows), note)


_OF_MAPS = (
    f"The regression is a quantile forest on components above {len(THRESHOLDS)} thresholds and on four volumes. Heads "
    "tell classes apart; within a class, counts are taken as frequent as among other patients. Minutes: of one network "
    "on one core, with its pre-training."
)
_OF_SCORES = (
    "Components are the candidates with a score above a threshold; the regression is a quantile forest on their "
    f"numbers above {len(THRESHOLDS)} thresholds."
)


def _minutes(study: Study, name: str) -> float:
    """How long one network takes: the mean over seeds and folds."""
    method = name.removesuffix("_calibrated")
    method = method if method in EVERY_METHOD else SEGMENTATION
    return float(np.mean([_of_training(study, arm) for arm in study.arms(method)]))


def _of_training(study: Study, arm: Arm) -> float:
    before = 0.0 if arm.before is None else _of_training(study, arm.before)
    return before + Trained(arm).minutes(study.cache)


def _differences(samples: Mapping[str, Mapping[str, Samples]], best: str) -> Table:
    scores = ("rps", "mae", "exact", "binned")
    rows: list[Row] = [
        (WAYS[name][0], *(estimate_of(samples[best][score] - of[score]) for score in scores))
        for name, of in samples.items()
        if name != best
    ]
    which = WAYS[best][0]
    columns = (Column(f"{which}, minus"), *(_COLUMNS[score] for score in scores))
    note = f"Paired differences. Below 0 in RPS and mean error, and above 0 in the shares, favour {which}."
    return Table("differences", f"{which.capitalize()} against every other way", columns, tuple(rows), note)


_AXES = {"rps": "RPS, in lesions  (better ←)", "mae": "mean error, in lesions  (better ←)"}


def ways_figure(ways: Mapping[str, Mapping[str, Estimate]], labels: Mapping[str, str], *, best: str) -> Figure:
    """A panel per score, a line per way to count; the one that others are compared with stands out."""

    def draw(figure: Any) -> None:
        ticker: Any = optional("matplotlib.ticker", "report", "Drawing figures")
        grid = figure.subplots(1, 2, sharey=True)
        for axes, (score, title) in zip(grid, _AXES.items(), strict=True):
            for row, (name, of) in enumerate(ways.items()):
                colour, one = MARK if name == best else USUAL, of[score]
                axes.plot([one.low, one.high], [row, row], color=colour, linewidth=1.8)
                axes.plot(one.value, row, "D" if name == best else "o", color=colour, markersize=6)
            axes.axvline(ways[best][score].value, color=MARK, linewidth=0.8, linestyle=(0, (2, 2)))
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter(ticker.NullFormatter())
            axes.set(xlabel=title, ylim=(len(ways) - 0.5, -0.5))
            axes.grid(axis="x", linewidth=0.3, alpha=0.5)
            axes.tick_params(axis="y", length=0)
        grid[0].set_yticks(range(len(ways)), [labels[name] for name in ways])

    label = "Ranked probability score and mean error of every way to count, with 95 % intervals over patients."
    return Figure("ways", label, svg(draw, height_inch=1.2 + 0.26 * len(ways), width_inch=8.0))

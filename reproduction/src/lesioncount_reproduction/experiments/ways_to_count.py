"""Ways to count, by their names in all tables and figures, and what they said of the test scans of each seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.errors import CalibrationError
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting import KnownTruth, fit_calibration
from lesioncount.trust.scores.predictions import Predictions
from lesioncount_reproduction.experiments.arms import LOSS, SEGMENTATION
from lesioncount_reproduction.experiments.classes import CountClasses
from lesioncount_reproduction.experiments.jobs import Trained
from lesioncount_reproduction.experiments.scored import Counted, Segmented, best_voxel_threshold
from lesioncount_reproduction.experiments.stats import THRESHOLDS, ScanStats
from lesioncount_reproduction.experiments.study import Study

# The threshold of candidates, and that of connected components, of the paper.
OURS_AT, CC_AT = 0.1, 0.5

NAMES = {
    "ours_post_hoc": "ours, post hoc (τ = 0.1)",
    "ours_unweighted": "ours, post hoc, positive weight undone",
    "ours_fitted": "ours, post hoc, calibration fitted on validation",
    "cc": "connected components (τ = 0.5)",
    "cc_tuned": "connected components, τ chosen on validation",
    "cc_dropout": "connected components, Monte Carlo dropout",
    "all_zero": "no lesion anywhere",
    "bottleneck": "bottleneck",
    "multihead": "multi-head",
    "downstream": "downstream",
    "ours": "ours, multi-task",
    "ours_peaks": "ours, multi-task with peaks",
    "segmentation": "segmentation only",
}

_Distributions = list[CountDistribution]


def way_of(method: str) -> str:
    """How the networks of a method count: those that learned segmentation only do it post hoc."""
    return "ours_post_hoc" if method == SEGMENTATION else method


def post_hoc(study: Study, *, share: float = 1.0) -> dict[str, list[Counted]]:
    """Counts from the maps of networks that learned segmentation only, and the controls, for each seed."""
    found: dict[str, list[Counted]] = {}
    for seed in study.seeds:
        folds = [fold_stats(study, SEGMENTATION, seed, fold, share) for fold in study.folds]
        tests = ScanStats.joined([test for _, test in folds])
        numbers = {
            "cc": [test.components(CC_AT) for _, test in folds],
            "cc_tuned": [test.components(tuned_threshold(val, study.classes)) for val, test in folds],
            "all_zero": [np.zeros(len(test), dtype=np.int64) for _, test in folds],
        }
        predictions = {
            name: study.classes.of_distributions(
                [one for test, calibration in parts for one in _counted(test, calibration)], tests.counts
            )
            for name, parts in calibrated(folds).items()
        }
        predictions |= {
            name: study.classes.of_counts(np.concatenate(counts), tests.counts) for name, counts in numbers.items()
        }
        for name, of in predictions.items():
            found.setdefault(name, []).append(Counted(of, tests.patients))
    return found


def calibrated(folds: Sequence[tuple[ScanStats, ScanStats]]) -> dict[str, list[tuple[ScanStats, Calibration]]]:
    """Test scans of each fold with what corrects their candidates: nothing, the weight undone, or a fit."""
    return {
        "ours_post_hoc": [(test, Calibration()) for _, test in folds],
        "ours_unweighted": [(test, undone()) for _, test in folds],
        "ours_fitted": [(test, fitted(val)) for val, test in folds],
    }


def learned(study: Study, method: str, *, epoch: str = "best", share: float = 1.0) -> list[Counted]:
    """Counts of networks that learned to count, as their own method has it, for each seed."""
    return [
        Counted(counted_bins(study, stats), stats.patients) for stats in study.stats(method, epoch=epoch, share=share)
    ]


def counted_bins(study: Study, stats: ScanStats) -> Predictions:
    """Counts of a network by its own method: heads know classes, and what follows from the map knows counts."""
    found = np.exp(stats.log_probs)
    table = found if found.shape[1] == study.classes.n else study.classes.binned(found)
    return Predictions.of_bins(table, study.classes.of(stats.counts))


def constant_seeds(study: Study, head: str, *, share: float = 1.0) -> list[int]:
    """Seeds with which a head learned nothing more than to give every test scan the same count."""
    return [
        seed
        for seed, one in zip(study.seeds, learned(study, head, share=share), strict=True)
        if len(np.unique(one.predictions.predicted)) == 1
    ]


def segmented(study: Study, method: str, *, epoch: str = "best", share: float = 1.0) -> list[Segmented]:
    """Maps of networks, each with the threshold of voxels that is best on its validation scans, for each seed.

    For both epochs that is the threshold of the best one.
    """
    found = []
    for seed in study.seeds:
        folds = [fold_stats(study, method, seed, fold, share, epoch) for fold in study.folds]
        thresholds = np.concatenate([np.full(len(test), best_voxel_threshold(val)) for val, test in folds])
        found.append(Segmented(ScanStats.joined([test for _, test in folds]), thresholds))
    return found


def at_thresholds(
    study: Study, predictions: Callable[[Study, ScanStats, float], Predictions]
) -> dict[float, list[Counted]]:
    """Post hoc counts at each threshold, for each seed."""
    stats = study.stats(SEGMENTATION)
    return {
        threshold: [Counted(predictions(study, one, threshold), one.patients) for one in stats]
        for threshold in THRESHOLDS
    }


def ours_at(study: Study, stats: ScanStats, threshold: float) -> Predictions:
    """Our counts, of candidates above a threshold."""
    return study.classes.of_distributions(_counted(stats, Calibration(), threshold), stats.counts)


def components_at(study: Study, stats: ScanStats, threshold: float) -> Predictions:
    """Counts of connected components above a threshold."""
    return study.classes.of_counts(stats.components(threshold), stats.counts)


def tuned_threshold(validation: ScanStats, classes: CountClasses) -> float:
    """The threshold at which connected components are right most often on validation scans."""
    truth = classes.of(validation.counts)
    right = np.array([(classes.of(validation.components(t)) == truth).mean() for t in THRESHOLDS])
    best = np.flatnonzero(right == right.max())
    return THRESHOLDS[int(best[len(best) // 2])]  # of equally good ones the middle one


def fitted(validation: ScanStats) -> Calibration:
    """The calibration fitted on the counts of validation scans; none where they are too few."""
    known = KnownTruth.of(validation.existence(OURS_AT), validation.counts, groups=validation.patients)
    try:
        return fit_calibration(known)
    except CalibrationError:
        return Calibration()


def n_unfitted(study: Study) -> int:
    """Networks whose validation scans were too few for a calibration: their counts are those of the map as it is."""
    folds = ((seed, fold) for seed in study.seeds for fold in study.folds)
    return sum(fitted(fold_stats(study, SEGMENTATION, *one)[0]) == Calibration() for one in folds)


def undone() -> Calibration:
    """The correction of the positive weight that the networks were trained with; nothing is fitted."""
    return Calibration.for_positive_weight(LOSS.positive_weight)


def sampled(counts: NDArray[np.int64], truth: NDArray[np.int64], classes: CountClasses) -> Predictions:
    """Predictions from repeated counts of each scan, shape (n, samples): how often each class came out."""
    bins = (classes.of(counts)[:, :, None] == np.arange(classes.n)).mean(axis=1)
    return Predictions.of_bins(bins, classes.of(truth))


def fold_stats(
    study: Study, method: str, seed: int, fold: int, share: float = 1.0, epoch: str = "best"
) -> tuple[ScanStats, ScanStats]:
    """What a network predicted for the validation and the test scans of its fold."""
    trained = Trained(list(study.arms_of_seed(method, seed, share=share))[fold])
    return trained.stats(study.cache, "val"), trained.stats(study.cache, "test", epoch)


def _counted(stats: ScanStats, calibration: Calibration, threshold: float = OURS_AT) -> _Distributions:
    return [calibration.distribution(peaks) for peaks in stats.existence(threshold)]

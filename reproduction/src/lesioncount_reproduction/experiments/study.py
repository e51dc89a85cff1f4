"""A data set, how networks are trained on it, and with which seeds: what every experiment is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lesioncount.report.drawing import Figure
from lesioncount_reproduction.experiments.arms import HEADS, LOSS, OURS, OURS_PEAKS, SEGMENTATION, Arm, arm
from lesioncount_reproduction.experiments.classes import CountClasses
from lesioncount_reproduction.experiments.jobs import Attacked, DropoutCounted, Trained
from lesioncount_reproduction.experiments.presets import Recipe
from lesioncount_reproduction.experiments.result import Result, Table
from lesioncount_reproduction.experiments.stats import ScanStats

# Post hoc counts with the positive weight of the loss undone.
UNDONE = "ours_unweighted"

MULTITASK = (*HEADS, OURS, OURS_PEAKS)
EVERY_METHOD = (SEGMENTATION, *MULTITASK)


@dataclass(frozen=True)
class Study:
    """What is trained and tested.

    Attributes
    ----------
    data_set : str
        "synthetic", "leaf" or "nuclei".
    preset : str
    recipe : Recipe
    seeds : tuple of int
        Of trainings.
    cache : Path
        Folder of what was trained and predicted.
    """

    data_set: str
    preset: str
    recipe: Recipe
    seeds: tuple[int, ...]
    cache: Path

    @property
    def folds(self) -> range:
        """Of the cross-validation, or the only part."""
        return range(max(self.recipe.data.folds, 1))

    @property
    def classes(self) -> CountClasses:
        """Of counts, that heads tell apart and that accuracy is about."""
        return CountClasses(self.recipe.bins)

    def arms(self, method: str, *, share: float = 1.0) -> Iterator[Arm]:
        """The trainings of a method: all seeds and folds."""
        for seed in self.seeds:
            yield from self.arms_of_seed(method, seed, share=share)

    def arms_of_seed(self, method: str, seed: int, *, share: float = 1.0) -> Iterator[Arm]:
        """The trainings of a method with a seed: all folds."""
        for fold in self.folds:
            yield arm(self.recipe, method, seed=seed, fold=fold, share=share)

    def trainings(self, method: str, *, share: float = 1.0) -> Iterator[Trained]:
        """Jobs that train the networks of a method."""
        return (Trained(one) for one in self.arms(method, share=share))

    def dropout(self) -> Iterator[DropoutCounted]:
        """Jobs that count with Monte Carlo dropout."""
        return (DropoutCounted(one, self.recipe.mc_samples) for one in self.arms(SEGMENTATION))

    def attacks(self, method: str, weight: float, gradient_threshold: float | None = None) -> Iterator[Attacked]:
        """Jobs that attack the networks of a method."""
        for seed in self.seeds:
            yield from self.attacks_of_seed(method, seed, weight, gradient_threshold)

    def attacks_of_seed(
        self, method: str, seed: int, weight: float, gradient_threshold: float | None = None
    ) -> Iterator[Attacked]:
        """The same of one seed: all folds. `UNDONE` attacks what networks that learned segmentation count post hoc."""
        if self.recipe.attack is None:
            return
        trained, undone = (SEGMENTATION, LOSS.positive_weight) if method == UNDONE else (method, 1.0)
        for one in self.arms_of_seed(trained, seed):
            yield Attacked(one, self.recipe.attack, weight, gradient_threshold, undone)

    def stats(self, method: str, *, epoch: str = "best", share: float = 1.0) -> list[ScanStats]:
        """What the networks of a method said of the test scans: for each seed, all folds together."""
        return [
            ScanStats.joined(
                [Trained(one).stats(self.cache, "test", epoch) for one in self.arms_of_seed(method, seed, share=share)]
            )
            for seed in self.seeds
        ]

    def result(
        self, experiment: str, patients: Sequence[str], tables: tuple[Table, ...], figures: tuple[Figure, ...]
    ) -> Result:
        """What an experiment found, on scans of these patients."""
        n_patients = len(set(patients))
        return Result(experiment, self.data_set, self.preset, len(patients), n_patients, self.seeds, tables, figures)

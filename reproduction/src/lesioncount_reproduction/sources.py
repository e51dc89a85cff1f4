"""The data of the paper's experiments, as something to learn from: synthetic scans, leaves, and nuclei."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lesioncount.errors import ConfigError
from lesioncount.learning import sources
from lesioncount.learning.config import DataConfig, TrainingConfig
from lesioncount.learning.scans import MANY, LearningScan, ScanSource, TrainingData
from lesioncount.learning.split import SPLITS
from lesioncount_reproduction.cohort import SEQUENCES, Cohort
from lesioncount_reproduction.leaves import Leaf, read_leaves
from lesioncount_reproduction.nuclei import Nuclei, read_nuclei
from lesioncount_reproduction.synthetic import GadCohort


def data_of(config: TrainingConfig, /) -> TrainingData:
    """The data of a configuration: those of the paper also where their entry points are not installed."""
    data = config.data
    if data.source == "synthetic":
        return SyntheticData(data)
    if data.source == "leaf":
        return LeafData(data)
    return NucleiData(data) if data.source == "nuclei" else sources.data_of(config)


def sources_of(config: TrainingConfig, whole: dict[str, ScanSource] | None = None, /) -> dict[str, ScanSource]:
    """The scans of each part, made anew or a share of all scans of these data where they are there already."""
    return sources.sources_of(config, sources.whole_parts(config, data_of(config)) if whole is None else whole)


class PaperData(TrainingData):
    """Data of the experiments, made or read when they are asked for.

    Parameters
    ----------
    data : DataConfig
    """

    def __init__(self, data: DataConfig) -> None:
        self.data = data


class SyntheticData(PaperData):
    """Synthetic scans, whose images are standardised inside the brain, each sequence in a file of its own."""

    def completed(self, config: TrainingConfig) -> TrainingConfig:
        """With the names of the sequences, by which images to predict are found."""
        channels = tuple(f"_{sequence}" for sequence in SEQUENCES)
        return replace(config, data=replace(config.data, channels=channels, nonzero=True))

    def sources(self) -> dict[str, ScanSource]:
        """A cohort for each part. They number their patients alike, which folds must not take for the same."""
        cohorts = enumerate(synthetic_cohorts(self.data).items())
        return {part: CohortScans(cohort, f"{i} " if self.data.folds else "") for i, (part, cohort) in cohorts}


def synthetic_cohorts(data: DataConfig) -> dict[str, GadCohort]:
    """The synthetic cohort of each part."""
    if len(data.patients) != len(SPLITS) or len(data.shape) != 3:
        raise ConfigError(
            "Expected patients of training, validation and test, and three axes, but got "
            f"{list(data.patients)} and {list(data.shape)}."
        )
    # Each part is a cohort of its own, so that none changes with the size of another.
    return {
        part: GadCohort(n, seed=data.seed * len(SPLITS) + i, shape=data.shape)
        for i, (part, n) in enumerate(zip(SPLITS, data.patients, strict=True))
    }


class CohortScans:
    """The scans of a cohort with masks, in the form that a network learns from.

    Parameters
    ----------
    cohort : Cohort
    prefix : str
        Of the names of patients.
    """

    def __init__(self, cohort: Cohort, prefix: str = "") -> None:
        self._cohort, self._prefix = cohort, prefix

    def __len__(self) -> int:
        return len(self._cohort)

    def __getitem__(self, index: int) -> LearningScan:
        scan = self._cohort[index]
        assert scan.lesions is not None  # noqa: S101 - for the type checker: these cohorts have masks
        assert scan.count is not None  # noqa: S101 - and counts
        patient, mask = f"{self._prefix}{scan.patient}", scan.lesions.astype(np.uint8)
        return LearningScan(scan.name, patient, scan.images, mask, scan.count, scan.count)


class LeafData(PaperData):
    """Photographs of leaves, brought to one size, with values from 0 to 1."""

    def completed(self, config: TrainingConfig) -> TrainingConfig:
        """With what is done to photographs."""
        return replace(config, data=replace(config.data, resize=config.data.shape, normalize=False))

    def sources(self) -> dict[str, ScanSource]:
        """The parts of the authors of the data."""
        if len(self.data.shape) != 2:
            raise ConfigError(f"Expected height and width of photographs, but got {list(self.data.shape)}.")
        leaves = read_leaves(Path(self.data.path), size=(self.data.shape[0], self.data.shape[1]))
        return {part: LeafScans(leaves.split(part)) for part in SPLITS}


class LeafScans:
    """Photographs of leaves, each a patient of its own."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._leaves = leaves

    def __len__(self) -> int:
        return len(self._leaves)

    def __getitem__(self, index: int) -> LearningScan:
        leaf = self._leaves[index]
        return LearningScan(leaf.name, leaf.name, leaf.images, leaf.lesions.astype(np.uint8), leaf.count, leaf.count)


class NucleiData(PaperData):
    """Images of nuclei, with values from 0 to 1. Some have hundreds of nuclei, and folds tell all counts apart."""

    alike = MANY

    def completed(self, config: TrainingConfig) -> TrainingConfig:
        """With what is done to values."""
        return replace(config, data=replace(config.data, normalize=False))

    def sources(self) -> dict[str, ScanSource]:
        """All of them in one part: there are no given parts, and folds divide them anew."""
        images = read_nuclei(self.data.path)
        if not self.data.folds:
            raise ConfigError("Expected folds in [data] of at least 2: images of nuclei are not divided into parts.")
        shape = images[0].image.shape
        if shape != tuple(self.data.shape):
            raise ConfigError(f"Expected images of {list(self.data.shape)} pixels, but got {list(shape)}.")
        return {"train": NucleiScans(images)}


class NucleiScans:
    """Images of nuclei, each a patient of its own."""

    def __init__(self, images: Nuclei) -> None:
        self._images = images

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> LearningScan:
        one = self._images[index]
        mask = (one.instances > 0).astype(np.uint8)
        return LearningScan(one.name, one.name, one.image[None], mask, one.count, one.count)

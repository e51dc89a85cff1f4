"""The data of the paper's experiments, as something to learn from: synthetic scans, leaves, and nuclei."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lesioncount.errors import ConfigError
from lesioncount.learning.cohort import SPLITS
from lesioncount.learning.config import DataConfig, TrainingConfig
from lesioncount.learning.scans import LearningScan, ScanSource
from lesioncount.learning.sources import CohortScans, whole_parts
from lesioncount.learning.sources import sources_of as reduced_sources
from lesioncount_reproduction.leaves import Leaf, read_leaves
from lesioncount_reproduction.nuclei import Nuclei, read_nuclei
from lesioncount_reproduction.synthetic import GadCohort


def sources_of(config: TrainingConfig, whole: dict[str, ScanSource] | None = None, /) -> dict[str, ScanSource]:
    """Scans of each part: synthetic ones, photographs of leaves, nuclei, or those of the package.

    Parameters
    ----------
    config : TrainingConfig
    whole : dict, optional
        All scans of these data where they are there already, so that they are not made or read again.
    """
    makers = {"synthetic": synthetic, "leaf": leaf, "nuclei": nuclei}
    if whole is None and config.data.source in makers:  # found also where no entry points are installed
        whole = whole_parts(config, makers[config.data.source](config.data))
    return reduced_sources(config, whole)


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


def synthetic(data: DataConfig) -> dict[str, ScanSource]:
    """Scans that are made when they are asked for."""
    return {part: CohortScans(cohort) for part, cohort in synthetic_cohorts(data).items()}


class LeafScans:
    """Photographs of leaves, each a patient of its own."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._leaves = leaves

    def __len__(self) -> int:
        return len(self._leaves)

    def __getitem__(self, index: int) -> LearningScan:
        leaf = self._leaves[index]
        return LearningScan(leaf.name, leaf.name, leaf.images, leaf.lesions.astype(np.uint8), leaf.count, leaf.count)


def leaf(data: DataConfig) -> dict[str, ScanSource]:
    """Photographs of leaves."""
    if len(data.shape) != 2:
        raise ConfigError(f"Expected height and width of photographs, but got {list(data.shape)}.")
    leaves = read_leaves(Path(data.path), size=(data.shape[0], data.shape[1]))
    return {part: LeafScans(leaves.split(part)) for part in SPLITS}


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


def nuclei(data: DataConfig) -> dict[str, ScanSource]:
    """All images of nuclei in one part: there are no given parts, and folds divide them anew."""
    images = read_nuclei(data.path)
    if not data.folds:
        raise ConfigError("Expected folds in [data] of at least 2: images of nuclei are not divided into parts.")
    if images[0].image.shape != tuple(data.shape):
        raise ConfigError(f"Expected images of {list(data.shape)} pixels, but got {list(images[0].image.shape)}.")
    return {"train": NucleiScans(images)}

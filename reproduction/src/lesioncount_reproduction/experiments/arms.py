"""What is trained: a method, on a part of the data, with a seed; and the network that it starts from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from lesioncount.errors import ConfigError
from lesioncount.learning.config import LossConfig, OptimizerConfig, RunConfig, TrainingConfig
from lesioncount_reproduction.experiments.presets import Recipe
from lesioncount_reproduction.nuclei import FILE as NUCLEI

# Part of every key: results of an earlier way to train or predict are not mistaken for current ones.
_GENERATION = 2

# Options of data that came later, are at their defaults in every arm, and would change all keys.
_LATER = ("nonzero",)

# The weight of the count loss grows towards 0.03, and is about 0.02 in the last of few epochs: with a high learning
# rate, the paper's 0.4 costs the segmentation.
LOSS = LossConfig(positive_weight=3.0, count_weight=0.001, count_growth=0.034)

SEGMENTATION = "segmentation"
OURS, OURS_PEAKS = "ours", "ours_peaks"
# Half as many bits where the machine has instructions for it: twice as fast, and no difference that scores show.
PRECISION = "auto"

HEADS = ("bottleneck", "multihead", "downstream")
LOW_DATA = 0.1


@dataclass(frozen=True)
class Arm:
    """One training.

    Attributes
    ----------
    method : str
        "pretrained", "segmentation", "ours" (regions, as in the paper), "ours_peaks" or one of the heads.
    config : TrainingConfig
        Without paths of checkpoints.
    before : Arm or None
        The training whose UNet it starts from.
    """

    method: str
    config: TrainingConfig
    before: Arm | None = None

    @property
    def title(self) -> str:
        """In words, for messages."""
        data = self.config.data
        words = [data.source, self.method, f"seed {self.config.run.seed}"]
        if data.folds:
            words.append(f"fold {data.fold + 1}/{data.folds}")
        if data.share != 1:
            words.append(f"{data.share:.0%} of the patients")
        return ", ".join(words)

    @property
    def segmentation_epochs(self) -> int:
        """In how many epochs its UNet learned from masks, the network that it starts from included."""
        run = self.config.run
        return run.pretrain_epochs + run.epochs + (0 if self.before is None else self.before.segmentation_epochs)

    @cached_property
    def key(self) -> str:
        """A hash that changes with everything that the trained network depends on, but not with paths."""
        return content_key("arm", self.settings, None if self.before is None else self.before.key)

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """What the trained network depends on, as plain values: of data, a hash in place of their path."""
        content = self.config.to_dict()
        data = content["data"]
        for name in _LATER:
            del data[name]
        data["files"] = _fingerprint(data["source"], data.pop("path")) if data["source"] != "synthetic" else ""
        del content["run"]["threads"]
        return content


def content_key(*parts: Any) -> str:
    """A short hash of plain values."""
    text = json.dumps([_GENERATION, *parts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@lru_cache(maxsize=8)
def _fingerprint(source: str, path: str) -> str:
    """A hash of the file of a data set, or of the table that lists its pictures and counts: these are not read."""
    try:
        file = Path(path) / (NUCLEI if source == "nuclei" else "counts.csv")
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise ConfigError(f"There is no data set in {path}: {error.strerror}: {error.filename}.") from None


def arm(recipe: Recipe, method: str, *, seed: int, fold: int = 0, share: float = 1.0) -> Arm:
    """The training of a method: all start from the same segmentation."""
    before = _pretrained(recipe, seed, fold, share)
    head = dict(recipe.heads).get(method)
    repeat = _repeat(recipe, share)
    run = RunConfig(
        pretrain_epochs=0,
        warmup_epochs=head.warmup_epochs * repeat if head else 0,
        epochs=(head.epochs if head and head.epochs else recipe.epochs) * repeat,
        validate_every=repeat,
        seed=seed,
        threads=1,
        precision=PRECISION,
    )
    loss = replace(LOSS, max_count=recipe.max_count, bins=recipe.bins if head else ())
    if head and head.count_weight:
        loss = replace(loss, count_weight=head.count_weight, count_growth=0.0)
    config = TrainingConfig(
        data=before.config.data,
        network=replace(
            recipe.network,
            method=method if head else "map",
            protocol="peaks" if method == OURS_PEAKS else "paper",
        ),
        optimizer=OptimizerConfig(
            learning_rate=recipe.rate, head_learning_rate=head.rate if head else 0.0, schedule="cosine"
        ),
        loss=replace(loss, count_weight=0.0) if method == SEGMENTATION else loss,
        run=run,
    )
    return Arm(method, config, before)


def _pretrained(recipe: Recipe, seed: int, fold: int, share: float) -> Arm:
    repeat = _repeat(recipe, share)
    run = RunConfig(
        pretrain_epochs=recipe.pretrain_epochs * repeat,
        epochs=0,
        validate_every=repeat,
        seed=seed,
        threads=1,
        precision=PRECISION,
    )
    config = TrainingConfig(
        data=replace(recipe.data, fold=fold, share=share),
        network=replace(recipe.network, method="map"),
        optimizer=OptimizerConfig(learning_rate=recipe.pretrain_rate, schedule="one_cycle"),
        loss=replace(LOSS, max_count=recipe.max_count),
        run=run,
    )
    return Arm("pretrained", config)


def _repeat(recipe: Recipe, share: float) -> int:
    return recipe.low_data_epochs if share < 1 else 1

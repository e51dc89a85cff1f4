"""What is trained: a method on a part of the data with a seed, and what its segmentation begins with."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from lesioncount.errors import ConfigError
from lesioncount.learning.config import LossConfig, OptimizerConfig, RunConfig, TrainingConfig
from lesioncount.paper.experiments.presets import Protocol

# Goes into every key: results of an earlier way to train or predict are not taken for those of this one.
_GENERATION = 1

# The weight of the count loss grows towards 0.03, and is about 0.02 in the last of few epochs: with a high learning
# rate, the paper's 0.4 costs the segmentation.
LOSS = LossConfig(positive_weight=3.0, count_weight=0.001, count_growth=0.034)

SEGMENTATION = "segmentation"
HEADS = ("bottleneck", "multihead", "downstream")
LOW_DATA = 0.1


@dataclass(frozen=True)
class Arm:
    """One training.

    Attributes
    ----------
    method : str
        "pretrained", "segmentation", "ours" or one of the heads.
    config : TrainingConfig
        Without paths of checkpoints.
    before : Arm or None
        Whose UNet it begins with.
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

    @cached_property
    def key(self) -> str:
        """A name that changes with everything that the trained network depends on, and with no path."""
        content = self.config.to_dict()
        data = content["data"]
        data["files"] = _fingerprint(data.pop("path")) if data["source"] != "synthetic" else ""
        del content["run"]["threads"]
        return content_key("arm", content, None if self.before is None else self.before.key)


def content_key(*parts: Any) -> str:
    """A short hash of plain values."""
    text = json.dumps([_GENERATION, *parts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@lru_cache(maxsize=8)
def _fingerprint(path: str) -> str:
    """Of the table that lists a data set and its counts: pictures are not looked at, of which there may be many."""
    try:
        return hashlib.sha256((Path(path) / "counts.csv").read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise ConfigError(f"There is no data set in {path}: {error.strerror}: {error.filename}.") from None


def arm(protocol: Protocol, method: str, *, seed: int, fold: int = 0, share: float = 1.0) -> Arm:
    """The training of a method: all begin with the same segmentation, and learn masks for as many epochs after it."""
    before = _pretrained(protocol, seed, fold, share)
    is_head = method in HEADS
    repeat = _repeat(protocol, share)
    run = RunConfig(
        pretrain_epochs=0,
        warmup_epochs=protocol.warmup_epochs * repeat if is_head else 0,
        epochs=protocol.epochs * repeat,
        validate_every=repeat,
        seed=seed,
        threads=1,
    )
    config = TrainingConfig(
        data=before.config.data,
        network=replace(protocol.network, method=method if is_head else "map"),
        optimizer=OptimizerConfig(
            learning_rate=protocol.rate,
            head_learning_rate=dict(protocol.head_rates).get(method, 0.0),
            schedule="cosine",
        ),
        loss=replace(LOSS, count_weight=0.0) if method == SEGMENTATION else LOSS,
        run=run,
    )
    return Arm(method, config, before)


def _pretrained(protocol: Protocol, seed: int, fold: int, share: float) -> Arm:
    repeat = _repeat(protocol, share)
    run = RunConfig(
        pretrain_epochs=protocol.pretrain_epochs * repeat, epochs=0, validate_every=repeat, seed=seed, threads=1
    )
    config = TrainingConfig(
        data=replace(protocol.data, fold=fold, share=share),
        network=replace(protocol.network, method="map"),
        optimizer=OptimizerConfig(learning_rate=protocol.pretrain_rate, schedule="one_cycle"),
        loss=LOSS,
        run=run,
    )
    return Arm("pretrained", config)


def _repeat(protocol: Protocol, share: float) -> int:
    return protocol.low_data_epochs if share < 1 else 1

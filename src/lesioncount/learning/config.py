"""A training as a file: what to learn from, which network to train, and how."""

from __future__ import annotations

import difflib
import math
import tomllib
from dataclasses import MISSING, asdict, dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, Self, get_type_hints

from lesioncount.distributions.count_distribution import MAX_COUNT
from lesioncount.errors import ConfigError
from lesioncount.learning.methods import METHODS, current_method
from lesioncount.learning.plausible import (
    MOST_COUNTS,
    MOST_VOXELS,
    STEEPEST,
    are_sizes,
    check_number,
    is_network_size,
    shown,
    text_of,
)

PRESETS = ("smoke", "laptop", "paper")
SCHEDULES = ("exponential", "one_cycle", "cosine")

# Of a key, in messages: long ones are nobody's spelling mistake.
_LONGEST_NAME = 80


@dataclass(frozen=True)
class DataConfig:
    """What to learn from.

    Attributes
    ----------
    source : str
        "synthetic", made on the fly; "folder", a BIDS-like folder; "leaf", the photographs of leaves.
    path : str
        Folder of the scans or the photographs.
    normalize : bool
        Whether images of a folder get mean 0 and variance 1 inside the brain, in training and in prediction. Synthetic
        images have them already.
    patients : tuple of int
        Number of synthetic patients in the training, validation and test parts.
    shape : tuple of int
        Number of voxels of synthetic scans, or of pixels of photographs, along each axis.
    seed : int
        Seed of the synthetic cohort, and of the folds.
    share : float
        Share of the training patients that are used: 0.1 is the paper's low-data experiment.
    mask_share : float
        Share of the training scans whose mask is used. The others have a count only.
    folds, fold : int
        For a cross-validation. All scans are divided anew into ``folds`` parts of equal size and with similar counts,
        of which number ``fold`` is the test part. With 0 folds, the parts stay as they are.
    """

    source: str = "synthetic"
    path: str = ""
    normalize: bool = True
    patients: tuple[int, ...] = (200, 60, 150)
    shape: tuple[int, ...] = (24, 48, 40)
    seed: int = 1
    share: float = 1.0
    mask_share: float = 1.0
    folds: int = 0
    fold: int = 0


@dataclass(frozen=True)
class NetworkConfig:
    """Which network: how it counts, how wide and how deep it is.

    Attributes
    ----------
    method : {"map", "bottleneck", "multihead", "downstream"}
        What the count is computed from: see `NetworkOptions`.
    filters, levels : int
        Filters of the UNet's first level, and its number of levels.
    dropout : float
        Dropout probability of the UNet.
    head_dropout : float
        Dropout probability of a counting head. Below 0 it is that of the authors' published code, which is high for a
        head with few filters.
    """

    method: str = "map"
    filters: int = 32
    levels: int = 5
    dropout: float = 0.1
    head_dropout: float = -1.0

    def __post_init__(self) -> None:
        """Accept the name that a method had in version 0.1."""
        object.__setattr__(self, "method", current_method(self.method, stacklevel=3))


@dataclass(frozen=True)
class OptimizerConfig:
    """How it learns.

    Attributes
    ----------
    learning_rate, weight_decay : float
        Options of Adam.
    head_learning_rate : float
        Learning rate of the counting head. 0 means the default: that of the network or, for multi-head, a tenth of it.
    schedule : str
        How the learning rate changes: "exponential", multiplied by ``decay`` after each epoch, as in the paper;
        "one_cycle", up and then down to almost 0 over the whole training; or "cosine", from the top down to almost 0,
        for a network that has been trained before.
    decay : float
        Factor of the exponential schedule.
    """

    learning_rate: float = 1e-4
    weight_decay: float = 1e-5
    head_learning_rate: float = 0.0
    schedule: str = "exponential"
    decay: float = 0.995


@dataclass(frozen=True)
class LossConfig:
    """What is minimised.

    Attributes
    ----------
    positive_weight : float
        Weight of lesion voxels in the cross-entropy.
    count_weight, count_growth : float
        The count loss has weight count_weight · e^{count_growth · t} with t = 0 … 100 over the epochs after
        pre-training: the paper's α and β, on its scale of 100 epochs, however many there are here.
    max_count : int
        Counts from here on form one class.
    """

    positive_weight: float = 3.0
    count_weight: float = 0.001
    count_growth: float = 0.06
    max_count: int = MAX_COUNT


@dataclass(frozen=True)
class RunConfig:
    """How long, in what steps, and with what seed.

    Attributes
    ----------
    start : str
        A checkpoint whose UNet to start from, instead of random weights.
    pretrain_epochs, warmup_epochs, epochs : int
        Epochs that train the segmentation alone; then the counting head alone, on a UNet that is frozen; then
        segmentation and count.
    validate_every : int
        Epochs from one validation to the next. With few training scans, validation takes longer than training.
    batch_size : int
        Scans per step, in each process.
    seed : int
        Seed of weights, order, augmentation and dropout.
    augment : bool
        Whether to rotate, scale, shear and flip.
    threads, workers, processes : int
        Threads of torch (0: torch decides), processes that load data, and processes that train.
    keep_gb : float
        Gigabytes of scans that each process keeps in memory. Scans beyond that are read, or made, again in every epoch.
    """

    start: str = ""
    pretrain_epochs: int = 20
    warmup_epochs: int = 0
    epochs: int = 100
    validate_every: int = 1
    batch_size: int = 4
    seed: int = 0
    augment: bool = True
    threads: int = 0
    workers: int = 0
    processes: int = 1
    keep_gb: float = 4.0

    @property
    def n_epochs(self) -> int:
        """Number of epochs of all stages together."""
        return self.pretrain_epochs + self.warmup_epochs + self.epochs

    @property
    def first_kept(self) -> int:
        """The first epoch, counted from 0, that may be the best: one with segmentation and count, if there are any."""
        return self.n_epochs - self.epochs if self.epochs else 0

    @property
    def last_validated(self) -> int:
        """The last epoch, counted from 0, that is followed by a validation; -1 if there is none."""
        return self.n_epochs // self.validate_every * self.validate_every - 1


@dataclass(frozen=True)
class TrainingConfig:
    """The whole configuration, as the sections of a TOML file."""

    data: DataConfig = field(default_factory=DataConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    run: RunConfig = field(default_factory=RunConfig)

    def __post_init__(self) -> None:
        """Check the values, of which some depend on others."""
        for name, section in vars(self).items():
            for key, value in vars(section).items():
                check_number(name, key, value)
        wrong = {
            "schedule in [optimizer]": self.optimizer.schedule not in SCHEDULES,
            "method in [network]": self.network.method not in METHODS,
            "dropout in [network]": not 0 <= self.network.dropout < 1 or self.network.head_dropout >= 1,
            "filters and levels in [network]": not is_network_size(self.network.filters, self.network.levels),
            "learning_rate in [optimizer]": not self.optimizer.learning_rate > 0
            or min(self.optimizer.head_learning_rate, self.optimizer.weight_decay) < 0
            or not self.optimizer.decay > 0,
            "positive_weight in [loss]": not self.loss.positive_weight > 0,
            "count_weight and count_growth in [loss]": self.loss.count_weight < 0
            or abs(self.loss.count_growth) > STEEPEST,
            "max_count in [loss]": not 1 <= self.loss.max_count <= MOST_COUNTS,
            "epochs in [run]": min(self.run.epochs, self.run.warmup_epochs, self.run.pretrain_epochs) < 0
            or self.run.n_epochs < 1,
            "warmup_epochs in [run]": self.run.warmup_epochs > 0 and self.network.method == "map",
            "validate_every in [run]": self.run.validate_every < 1 or self.run.last_validated < self.run.first_kept,
            "fold in [data]": self.data.folds != 0
            and not (self.data.folds > 1 and 0 <= self.data.fold < self.data.folds),
            "batch_size in [run]": self.run.batch_size < 1,
            "seed in [run] and [data]": min(self.run.seed, self.data.seed) < 0,
            "processes in [run]": self.run.processes < 1 or min(self.run.threads, self.run.workers) < 0,
            "keep_gb in [run]": not self.run.keep_gb >= 0,
            "shape in [data]": not are_sizes(self.data.shape) or math.prod(self.data.shape) > MOST_VOXELS,
            "patients in [data]": not are_sizes(self.data.patients),
        }
        for what, is_wrong in wrong.items():
            if is_wrong:
                values = self.to_dict()[what.split("[")[1].strip("]")]
                raise ConfigError(f"The value of {what} makes no sense: {shown(values, 400)}.")

    @classmethod
    def load(cls, given: str | Path) -> Self:
        """Load a preset by its name, or a TOML file, which may say ``preset = "laptop"`` and change some values."""
        if str(given) in PRESETS:
            return cls.from_toml(files("lesioncount.learning").joinpath(f"presets/{given}.toml").read_text("utf-8"))
        try:
            text = text_of(Path(given))
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{given} is no preset ({', '.join(PRESETS)}) and cannot be read as a file: {error}."
            ) from None
        return cls.from_toml(text)

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Read the text of a TOML file."""
        try:
            content = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # numbers of thousands of digits are a plain ValueError
            why = "it is nested too deeply" if isinstance(error, RecursionError) else f"{error}"
            raise ConfigError(f"Expected the configuration as TOML, but it does not parse: {why[:300]}.") from None
        preset = content.pop("preset", None)
        if preset is not None and preset not in PRESETS:
            raise ConfigError(f"{shown(preset)} is no preset. Known are {', '.join(PRESETS)}.")
        base = asdict(cls.load(preset)) if preset else {}
        return cls.from_dict(
            {name: base.get(name, {}) | _table(name, content.get(name, {})) for name in (*base, *content)}
        )

    @classmethod
    def from_dict(cls, content: dict[str, dict[str, Any]]) -> Self:
        """Build from sections. Missing values take their defaults; unknown ones are an error."""
        sections = get_type_hints(cls)
        for name in content:
            _check_known(name, sections, "section")
        return cls(**{name: _section(sections[name], name, _table(name, of)) for name, of in content.items()})

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """The sections as plain values."""
        return asdict(self)


def _table(name: str, values: Any) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise ConfigError(f"Expected a section [{name[:_LONGEST_NAME]}], but it is {shown(values)}.")
    return values


def _section(kind: Any, name: str, values: dict[str, Any]) -> Any:
    known = {one.name: one for one in fields(kind)}
    for key, value in values.items():
        _check_known(key, known, f"key in [{name}]")
        default = known[key].default
        wanted = tuple if isinstance(default, tuple) else type(default) if default is not MISSING else object
        allowed = {float: (int, float), tuple: (list, tuple)}.get(wanted, (wanted,))
        if not isinstance(value, allowed) or (isinstance(value, bool) and wanted is not bool):
            raise ConfigError(f"Expected {key} in [{name}] to be like {default!r}, but got {shown(value)}.")
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})


def _check_known(given: str, known: Any, what: str) -> None:
    if given not in known:
        close = difflib.get_close_matches(str(given)[:_LONGEST_NAME], list(known), n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ConfigError(f"There is no {what} called {shown(given)}.{hint} Known are {', '.join(known)}.")

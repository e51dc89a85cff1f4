"""The expensive parts, each done once and kept under a name that says what it depends on.

What a training leaves is one small file: the scores of its validation, what its networks say of the scans, its
settings, and how long it took. It can be committed, and then no other machine trains again. Networks stay here.
"""

from __future__ import annotations

import csv
import json
import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lesioncount.baselines import connected_component_count
from lesioncount.errors import ConfigError, LesionCountError
from lesioncount.learning.checkpoints import read_checkpoint
from lesioncount.learning.config import TrainingConfig
from lesioncount.learning.networks import CountingNetwork
from lesioncount.learning.networks.heads import MapHead
from lesioncount.learning.networks.layers import LAYOUTS, is_bfloat16
from lesioncount.learning.prediction import load_checkpoint
from lesioncount.learning.scans import LearningScan, ScanSource
from lesioncount.learning.training import train
from lesioncount.learning.training_folder import BEST, LAST, has_best, kept_config
from lesioncount_reproduction.experiments.arms import Arm, content_key
from lesioncount_reproduction.experiments.attack import AttackOutcome, UndoneHead, attack
from lesioncount_reproduction.experiments.kept_files import is_whole, kept_arrays, save_arrays, set_aside
from lesioncount_reproduction.experiments.presets import AttackSettings
from lesioncount_reproduction.experiments.scheduling import Job
from lesioncount_reproduction.experiments.stats import MapNumbers, ScanStats, map_numbers
from lesioncount_reproduction.sources import data_of, sources_of

# Scans that go through a network together.
_BATCH = 8

# Voxels above it form connected components: the paper's choice for Monte Carlo dropout.
_COMPONENTS_ABOVE = 0.5


def one_thread() -> None:
    """Before the first job of a process: networks side by side, each on a core of its own."""
    torch.set_num_threads(1)


# Of each network: the scans of a part, as the best or the last epoch sees them.
_PREDICTED = (("test", "best"), ("val", "best"), ("test", "last"))


class _Kept(Job):
    """A job whose file holds arrays."""

    # Folder of its files.
    kind: ClassVar[str]

    @property
    def name(self) -> str:
        """Of its file: the title, and the key."""
        return f"{re.sub('[^a-z0-9.]+', '-', self.title.lower())}-{self.key}"

    def path(self, cache: Path) -> Path:
        """The file of the arrays."""
        return cache / self.kind / f"{self.name}.npz"

    def is_done(self, cache: Path) -> bool:
        """Whether the file is there, and not damaged."""
        return is_whole(self.path(cache))


@dataclass(frozen=True)
class Trained(_Kept):
    """A trained network, and what it says of the scans of its validation and test parts."""

    arm: Arm

    kind: ClassVar[str] = "trained"

    @property
    def key(self) -> str:
        """The key of the arm."""
        return self.arm.key

    @property
    def title(self) -> str:
        """What it does, for messages."""
        return f"train {self.arm.title}"

    @property
    def needs(self) -> tuple[Job, ...]:
        """The training whose network it starts from."""
        return () if self.arm.before is None else (Trained(self.arm.before),)

    def folder(self, cache: Path) -> Path:
        """The folder of checkpoints and logs."""
        return cache / "networks" / self.name

    def is_at_hand(self, cache: Path) -> bool:
        """Whether its networks are here, and the training that made them came to its end."""
        found = _checkpoints(self.folder(cache)) or {}
        return BEST in found and LAST in found and found[LAST]["epoch"] + 1 == self.arm.config.run.n_epochs

    def run(self, cache: Path) -> None:
        """Train, or go on where it was stopped; then predict."""
        began, folder = time.monotonic(), self.folder(cache)
        self._train(folder, cache)
        if self.is_done(cache):
            return  # on another machine: only the network was missing
        arrays = {"curve": validation_scores(folder / "logs")}
        for part, epoch in _PREDICTED:
            stats = _predicted(self.network(cache, epoch), parts_of(self.arm.config)[part])
            arrays |= {f"{part}_{epoch}_{name}": array for name, array in stats.arrays().items()}
        about = {"title": self.title, "seconds": round(time.monotonic() - began, 1), "settings": self.arm.settings}
        save_arrays(self.path(cache), arrays | {"about": np.array(json.dumps(about))})

    def _train(self, folder: Path, cache: Path) -> None:
        config = self.arm.config
        if self.arm.before is not None:
            start = Trained(self.arm.before).folder(cache) / LAST
            config = replace(config, run=replace(config.run, start=str(start)))
        parts = {name: scans for name, scans in parts_of(config).items() if name != "test"}
        config = data_of(config).completed(config)
        folder.parent.mkdir(parents=True, exist_ok=True)
        (folder.parent / ".gitignore").write_text("*\n", "utf-8")
        if _checkpoints(folder) is None:
            set_aside(folder)
        # The folder of results or data was moved after training began, so that paths differ: start again.
        is_moved = kept_config(folder) not in (None, config)
        train(config, folder, resume=not is_moved, overwrite=is_moved, progress=False, parts=parts)

    def stats(self, cache: Path, part: str, epoch: str = "best") -> ScanStats:
        """What the network of the "best" or the "last" epoch says of the scans of a part."""
        with kept_arrays(self.path(cache), f"{part}_{epoch}_") as found:
            return ScanStats.of_arrays(found)

    def curve(self, cache: Path) -> NDArray[np.float64]:
        """The ranked probability score of the validation scans, after each epoch."""
        with kept_arrays(self.path(cache), "curve") as found:
            return found[""]

    def minutes(self, cache: Path) -> float:
        """How long it took."""
        with kept_arrays(self.path(cache), "about") as found:
            return float(json.loads(str(found[""]))["seconds"]) / 60

    def network(self, cache: Path, epoch: str) -> CountingNetwork:
        """The network of the "best" or the "last" epoch, frozen."""
        trained = load_checkpoint(self.folder(cache) / f"{epoch}.ckpt")
        network = trained.network.requires_grad_(False)
        network.to(memory_format=LAYOUTS[len(trained.shape)])  # type: ignore[call-overload]  # a module takes it too
        return network


def _checkpoints(folder: Path) -> dict[str, dict[str, Any]] | None:
    """The checkpoints of a training, by their names; None if they are damaged, so that it cannot go on."""
    try:
        kept_config(folder)
        found = {name: read_checkpoint(folder / name) for name in (LAST, BEST) if (folder / name).exists()}
    except LesionCountError:
        return None
    return None if BEST not in found and LAST in found and has_best(found[LAST]) else found


def validation_scores(logs: Path) -> NDArray[np.float64]:
    """The ranked probability score of validation scans after each epoch; a training that was resumed has many logs."""
    found: dict[float, float] = {}
    for log in logs.glob("metrics*.csv"):
        with log.open(encoding="utf-8", newline="") as table:
            found |= {float(row["epoch"]): float(row["val_rps"]) for row in csv.DictReader(table) if row.get("val_rps")}
    return np.array([score for _, score in sorted(found.items())])


def _predicted(network: CountingNetwork, scans: ScanSource) -> ScanStats:
    """What a network says of scans, beside the truth."""
    numbers: list[MapNumbers] = []
    log_probs = []
    for some, images in _batches(scans):
        with torch.inference_mode():
            logits, found = network(images)
        maps = torch.sigmoid(logits)[:, 0].contiguous().numpy()
        numbers += [map_numbers(map_, _mask(scan)) for map_, scan in zip(maps, some, strict=True)]
        log_probs.append(found.double().numpy())
    every = [scans[i] for i in range(len(scans))]
    return ScanStats.of(
        numbers,
        names=tuple(scan.name for scan in every),
        patients=tuple(scan.patient for scan in every),
        counts=np.array([scan.at_least for scan in every], dtype=np.int64),
        log_probs=np.concatenate(log_probs),
    )


@dataclass(frozen=True)
class _WithNetwork(_Kept):
    """Something that is done with a trained network."""

    arm: Arm

    @property
    def key(self) -> str:
        """Changes with the network, and with every other field."""
        values = [getattr(self, one.name) for one in fields(self) if one.name != "arm"]
        plain = [_of_one_attack(value) if isinstance(value, AttackSettings) else value for value in values]
        return content_key(self.kind, self.arm.key, *plain)

    @property
    def needs(self) -> tuple[Job, ...]:
        """The network."""
        return (Trained(self.arm),)


@dataclass(frozen=True)
class DropoutCounted(_WithNetwork):
    """Connected components of the test scans, counted many times with random units dropped (Monte Carlo dropout)."""

    n_samples: int

    kind: ClassVar[str] = "dropout"

    @property
    def title(self) -> str:
        """What it does, for messages."""
        return f"{self.n_samples} dropout samples of {self.arm.title}"

    def run(self, cache: Path) -> None:
        """Count all scans, sample by sample."""
        network = Trained(self.arm).network(cache, "best")
        scans = parts_of(self.arm.config)["test"]
        counts = np.zeros((len(scans), self.n_samples), dtype=np.int64)
        torch.manual_seed(self.arm.config.run.seed)
        half = torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_bfloat16(self.arm.config.run.precision))
        with torch.inference_mode(), network.mc_dropout(), half:
            for sample in range(self.n_samples):
                maps = (map_ for _, images in _batches(scans) for map_ in network.segment(images).sigmoid()[:, 0])
                for row, map_ in enumerate(maps):
                    counts[row, sample] = connected_component_count(
                        map_.contiguous().numpy(), threshold=_COMPONENTS_ABOVE
                    )
        save_arrays(self.path(cache), {"counts": counts})

    def load(self, cache: Path) -> NDArray[np.int64]:
        """Counts, shape (n_scans, n_samples)."""
        with kept_arrays(self.path(cache)) as found:
            return np.asarray(found["counts"])


@dataclass(frozen=True)
class Attacked(_WithNetwork):
    """Attacks on the count of some test scans.

    Attributes
    ----------
    weight : float
        λ of the change of the map.
    gradient_threshold : float or None
        Of the candidates that the gradient sees, for networks that count from the map; None: those that are counted.
    positive_weight : float, default 1
        Of the loss, undone in the count that is attacked.
    """

    settings: AttackSettings
    weight: float
    gradient_threshold: float | None = None
    positive_weight: float = 1.0

    kind: ClassVar[str] = "attacked"

    @property
    def title(self) -> str:
        """What it does, for messages."""
        how = "" if self.gradient_threshold is None else f", gradient through τ = {self.gradient_threshold:g}"
        undone = "" if self.positive_weight == 1 else ", weight undone"
        return f"attack {self.arm.title}, λ = {self.weight:g}{how}{undone}"

    def run(self, cache: Path) -> None:
        """Attack the same scans as every other method with this seed."""
        network = Trained(self.arm).network(cache, "best")
        if self.positive_weight != 1:
            network.head = UndoneHead(cast("MapHead", network.head), self.positive_weight)
        seed = self.arm.config.run.seed
        scans = attackable(parts_of(self.arm.config)["test"], self.settings.n_scans, seed=seed)
        seen = self.gradient_threshold
        outcome = attack(network, scans, settings=self.settings, weight=self.weight, gradient_threshold=seen, seed=seed)
        save_arrays(self.path(cache), outcome.arrays())

    def load(self, cache: Path) -> AttackOutcome:
        """What became of them."""
        return AttackOutcome.load(self.path(cache))


def _of_one_attack(settings: AttackSettings) -> dict[str, Any]:
    """What one attack depends on: not which others there are."""
    return {name: value for name, value in asdict(settings).items() if name != "weights"}


def attackable(scans: ScanSource, n: int, *, seed: int) -> list[LearningScan]:
    """Some scans with at most four lesions, one per patient: with more, it is not practical to make one vanish."""
    order = np.random.default_rng([seed, 4]).permutation(len(scans)).tolist()
    chosen: dict[str, LearningScan] = {}
    for index in order:
        scan = scans[index]
        if scan.at_least <= 4 and len(chosen) < n:
            chosen.setdefault(scan.patient, scan)
    return list(chosen.values())


def parts_of(config: TrainingConfig) -> dict[str, ScanSource]:
    """The scans of a configuration; trainings on the same data in one process share them."""
    plain = TrainingConfig(data=replace(config.data, share=1.0))
    shared = _shared_parts(plain)
    return shared if config.data.share == 1 else sources_of(config, shared)


@lru_cache(maxsize=3)
def _shared_parts(config: TrainingConfig) -> dict[str, ScanSource]:
    return sources_of(config)


def _batches(scans: ScanSource) -> Iterator[tuple[list[LearningScan], Tensor]]:
    for begin in range(0, len(scans), _BATCH):
        some = [scans[i] for i in range(begin, min(begin + _BATCH, len(scans)))]
        yield some, torch.from_numpy(np.stack([scan.images for scan in some]))


def _mask(scan: LearningScan) -> NDArray[np.uint8]:
    if scan.mask is None:
        raise ConfigError(f"{scan.name} has no mask: experiments compare maps with masks.")
    return scan.mask

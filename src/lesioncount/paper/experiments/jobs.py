"""The expensive parts, each done once and kept under a name that says what it depends on."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lesioncount.baselines import connected_component_count
from lesioncount.errors import ConfigError
from lesioncount.files.atomic import write_text
from lesioncount.learning.config import TrainingConfig
from lesioncount.learning.networks import CountingNetwork
from lesioncount.learning.prediction import load_network
from lesioncount.learning.scans import LearningScan, ScanSource
from lesioncount.learning.training import train
from lesioncount.paper.experiments.arms import Arm, content_key
from lesioncount.paper.experiments.attack import attack
from lesioncount.paper.experiments.presets import AttackSettings
from lesioncount.paper.experiments.stats import MapNumbers, ScanStats, map_numbers, save_arrays
from lesioncount.paper.sources import sources_of

# Scans that go through a network together.
_BATCH = 8

# Above it, a voxel belongs to a connected component: what the paper has for Monte Carlo dropout.
_COMPONENTS_ABOVE = 0.5


class Job(ABC):
    """Something expensive, whose result is a file.

    Attributes
    ----------
    arm : Arm
        The training that it belongs to.
    """

    arm: Arm

    @property
    @abstractmethod
    def key(self) -> str:
        """A name that changes with everything that the result depends on."""

    @property
    @abstractmethod
    def title(self) -> str:
        """In words."""

    @property
    @abstractmethod
    def needs(self) -> tuple[Job, ...]:
        """What must be done before."""

    @abstractmethod
    def path(self, cache: Path) -> Path:
        """The file that is there when it is done."""

    @abstractmethod
    def run(self, cache: Path) -> None:
        """Do it."""

    def is_done(self, cache: Path) -> bool:
        """Whether it need not be done again."""
        return self.path(cache).exists()


@dataclass(frozen=True)
class Trained(Job):
    """A trained network."""

    arm: Arm

    @property
    def key(self) -> str:
        """That of the arm."""
        return self.arm.key

    @property
    def title(self) -> str:
        """In words."""
        return f"train {self.arm.title}"

    @property
    def needs(self) -> tuple[Job, ...]:
        """The training whose network it begins with."""
        return () if self.arm.before is None else (Trained(self.arm.before),)

    def folder(self, cache: Path) -> Path:
        """Of checkpoints and logs."""
        return cache / "trained" / self.key

    def path(self, cache: Path) -> Path:
        """Written last."""
        return self.folder(cache) / "done.json"

    def run(self, cache: Path) -> None:
        """Train, or go on where it was stopped."""
        config, began = self.arm.config, time.monotonic()
        if self.arm.before is not None:
            start = Trained(self.arm.before).folder(cache) / "last.ckpt"
            config = replace(config, run=replace(config.run, start=str(start)))
        parts = {name: scans for name, scans in parts_of(config).items() if name != "test"}
        begun = self.folder(cache) / "config.json"
        # Begun with files elsewhere, since the folder of results or data was moved: begin again.
        is_moved = begun.exists() and json.loads(begun.read_text("utf-8")) != json.loads(json.dumps(config.to_dict()))
        train(config, self.folder(cache), resume=not is_moved, overwrite=is_moved, progress=False, parts=parts)
        minutes = (time.monotonic() - began) / 60
        write_text(self.path(cache), json.dumps({"title": self.arm.title, "minutes": round(minutes, 2)}) + "\n")

    def network(self, cache: Path, epoch: str) -> CountingNetwork:
        """That of the "best" or "last" epoch, frozen."""
        network, shape = load_network(self.folder(cache) / f"{epoch}.ckpt")
        network.requires_grad_(False)
        if len(shape) == 3:
            network.to(memory_format=torch.channels_last_3d)  # type: ignore[call-overload]  # a module takes it too
        return network


class _WithNetwork(Job):
    """Something that is done with a trained network."""

    @property
    def needs(self) -> tuple[Job, ...]:
        """The network."""
        return (Trained(self.arm),)


@dataclass(frozen=True)
class Predicted(_WithNetwork):
    """What a trained network says of the scans of a part."""

    arm: Arm
    part: str = "test"
    epoch: str = "best"

    @property
    def key(self) -> str:
        """Of the network, the part and the epoch."""
        return content_key("predicted", self.arm.key, self.part, self.epoch)

    @property
    def title(self) -> str:
        """In words."""
        return f"predict {self.part} of {self.arm.title}, {self.epoch} epoch"

    def path(self, cache: Path) -> Path:
        """Of the numbers."""
        return cache / "predicted" / f"{self.key}.npz"

    def run(self, cache: Path) -> None:
        """Predict scan by scan, keep the numbers."""
        network = Trained(self.arm).network(cache, self.epoch)
        scans = parts_of(self.arm.config)[self.part]
        numbers: list[MapNumbers] = []
        log_probs = []
        for some, images in _batches(scans):
            with torch.inference_mode():
                logits, found = network(images)
            maps = torch.sigmoid(logits)[:, 0].contiguous().numpy()
            numbers += [map_numbers(map_, _mask(scan)) for map_, scan in zip(maps, some, strict=True)]
            log_probs.append(found.double().numpy())
        every = [scans[i] for i in range(len(scans))]
        ScanStats(
            names=tuple(scan.name for scan in every),
            patients=tuple(scan.patient for scan in every),
            counts=np.array([scan.at_least for scan in every], dtype=np.int64),
            log_probs=np.concatenate(log_probs),
            peaks=tuple(zip(*(one.peaks for one in numbers), strict=True)),
            owns=tuple(one.owns for one in numbers),
            touches=tuple(one.touches for one in numbers),
            **{
                name: np.stack([getattr(one, name) for one in numbers])
                for name in ("lesion_voxels", "other_voxels", "voxel_n", "voxel_confidence", "voxel_hits")
            },
        ).save(self.path(cache))

    def load(self, cache: Path) -> ScanStats:
        """The numbers."""
        return ScanStats.load(self.path(cache))


@dataclass(frozen=True)
class DropoutCounted(_WithNetwork):
    """Connected components of the test scans, counted many times with other units dropped (Monte Carlo dropout)."""

    arm: Arm
    n_samples: int

    @property
    def key(self) -> str:
        """Of the network and the number of samples."""
        return content_key("dropout", self.arm.key, self.n_samples)

    @property
    def title(self) -> str:
        """In words."""
        return f"{self.n_samples} dropout samples of {self.arm.title}"

    def path(self, cache: Path) -> Path:
        """Of the counts."""
        return cache / "dropout" / f"{self.key}.npz"

    def run(self, cache: Path) -> None:
        """Count all scans, sample by sample."""
        network = Trained(self.arm).network(cache, "best")
        scans = parts_of(self.arm.config)["test"]
        counts = np.zeros((len(scans), self.n_samples), dtype=np.int64)
        torch.manual_seed(self.arm.config.run.seed)
        with torch.inference_mode(), network.mc_dropout():
            for sample in range(self.n_samples):
                maps = (map_ for _, images in _batches(scans) for map_ in network.segment(images).sigmoid()[:, 0])
                for row, map_ in enumerate(maps):
                    counts[row, sample] = connected_component_count(
                        map_.contiguous().numpy(), threshold=_COMPONENTS_ABOVE
                    )
        save_arrays(self.path(cache), {"counts": counts})

    def load(self, cache: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """Counts, shape (n_scans, n_samples)."""
        with np.load(self.path(cache), allow_pickle=False) as found:
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
    """

    arm: Arm
    settings: AttackSettings
    weight: float
    gradient_threshold: float | None = None

    @property
    def key(self) -> str:
        """Of the network and the attack."""
        return content_key("attacked", self.arm.key, asdict(self.settings), self.weight, self.gradient_threshold)

    @property
    def title(self) -> str:
        """In words."""
        how = "" if self.gradient_threshold is None else f", gradient through τ = {self.gradient_threshold:g}"
        return f"attack {self.arm.title}, λ = {self.weight:g}{how}"

    def path(self, cache: Path) -> Path:
        """Of the outcome."""
        return cache / "attacked" / f"{self.key}.npz"

    def run(self, cache: Path) -> None:
        """Attack the same scans as every other method with this seed."""
        network = Trained(self.arm).network(cache, "best")
        scans = attackable(parts_of(self.arm.config)["test"], self.settings.n_scans, seed=self.arm.config.run.seed)
        outcome = attack(
            network,
            scans,
            settings=self.settings,
            weight=self.weight,
            gradient_threshold=self.gradient_threshold,
            seed=self.arm.config.run.seed,
        )
        save_arrays(self.path(cache), outcome.arrays())


def attackable(scans: ScanSource, n: int, *, seed: int) -> list[LearningScan]:
    """Some scans with at most four lesions, one of a patient: from more it is not practical to take one away."""
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


def _mask(scan: LearningScan) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    if scan.mask is None:
        raise ConfigError(f"{scan.name} has no mask: experiments compare maps with masks.")
    return scan.mask

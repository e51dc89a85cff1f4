"""A small change of the image that changes the count, found by gradient descent (appendix C.5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lesioncount.candidates import find_candidates
from lesioncount.learning.networks import CountingNetwork, UNetOutput
from lesioncount.learning.networks.heads import MapHead
from lesioncount.learning.scans import LearningScan
from lesioncount.torch import count_log_probs
from lesioncount_reproduction.experiments.kept_files import kept_arrays
from lesioncount_reproduction.experiments.presets import AttackSettings

# Scans that are attacked together.
_BATCH = 8

# Of Adam: decay of both means, and what keeps it from dividing by 0.
_BETA1, _BETA2, _EPS = 0.9, 0.999, 1e-8

# Added to the square of a change before its root: the slope of a root at 0 is infinite.
_SMALLEST_CHANGE = 1e-12


@dataclass(frozen=True, eq=False)
class AttackOutcome:
    """What became of each attack.

    Attributes
    ----------
    patients : array of str, shape (n,)
    labels : array of int, shape (n,)
        True counts, up to 4.
    before, after : array of int, shape (n,)
        Predicted count of the scan as it is, and at the end. Scans that are counted wrong are not attacked.
    steps : array of int, shape (n,)
        Until the count changed, or all of them.
    blind : array of bool, shape (n,)
        Attacks that ended at once since nothing that could change the count has a gradient.
    input_change, map_change : array of float, shape (n,)
        Largest change of a voxel, of the image and of the map.
    map_norm : array of float, shape (n,)
        ℓ2 norm of the change of the map.
    example : dict of array
        Of the attack that changed the count with the least change of the map, if any: image and map before and after
        and the place of the voxel that changed the count.
    """

    patients: NDArray[np.str_]
    labels: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    steps: NDArray[np.int64]
    blind: NDArray[np.bool_]
    input_change: NDArray[np.float64]
    map_change: NDArray[np.float64]
    map_norm: NDArray[np.float64]
    example: dict[str, NDArray[Any]]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As plain arrays, to be saved."""
        plain = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "example"}
        return plain | {f"example_{name}": value for name, value in self.example.items()}

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `arrays` gave."""
        with kept_arrays(path) as found:
            plain = {one.name: found[one.name] for one in fields(cls) if one.name != "example"}
            example = {name.removeprefix("example_"): found[name] for name in found if name.startswith("example_")}
        return cls(**plain, example=example)


class UndoneHead(MapHead):
    """Counts from the map with the positive weight of the loss undone: what a calibration changes, with a gradient.

    Parameters
    ----------
    head : MapHead
        Whose candidates stay as they are.
    positive_weight : float
        Their logits are lower by its logarithm.
    """

    def __init__(self, head: MapHead, positive_weight: float) -> None:
        super().__init__(spatial_dims=head.spatial_dims, max_count=head.max_count, protocol=head.protocol)
        self.shift = -math.log(positive_weight)

    def forward(self, output: UNetOutput) -> Tensor:
        """Log-probabilities (batch, max_count + 1)."""
        return _seen(self, output.logits, self.protocol.threshold)


@dataclass
class _Batch:
    """Attacks under way, one row each; rows that are done are taken out."""

    rows: Tensor
    images: Tensor
    maps: Tensor
    labels: Tensor
    noise: Tensor
    mean: Tensor
    square: Tensor

    def keep(self, chosen: Tensor) -> None:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name)[chosen])


def attack(
    network: CountingNetwork,
    scans: Sequence[LearningScan],
    /,
    *,
    settings: AttackSettings,
    weight: float,
    gradient_threshold: float | None = None,
    seed: int = 0,
) -> AttackOutcome:
    """Try to change the count of scans that are counted right.

    Parameters
    ----------
    network : CountingNetwork
        Frozen.
    scans : sequence of LearningScan
        With at most four lesions.
    settings : AttackSettings
    weight : float
        λ: how much a change of the map costs.
    gradient_threshold : float, optional
        For networks that count from the map: candidates above this one have a gradient, instead of those that are
        counted. A network is not robust just because an attack sees nothing to change.
    seed : int, default 0
        Of the noise to begin with.

    Notes
    -----
    Minimises over the noise δ, with Adam, until the most probable count is no longer the true one c::

        log P(c | x + δ) + λ ‖S(x + δ) - S(x)‖₂

    with the ℓ2 norm, not its square, over all voxels of the map of probabilities. δ begins as normal noise.
    """
    outcome = _Recorder(network, scans)
    generator = torch.Generator().manual_seed(seed)
    for begin in range(0, len(scans), _BATCH):
        some = range(begin, min(begin + _BATCH, len(scans)))
        images = torch.from_numpy(np.stack([scans[i].images for i in some]))
        labels = torch.tensor([min(scans[i].at_least, 4) for i in some])
        noise = settings.noise * torch.randn(images.shape, generator=generator)
        with torch.no_grad():
            logits, log_probs = network(images)
        predicted = log_probs.argmax(1)
        outcome.begin(some, labels, predicted, settings.max_steps)
        batch = _Batch(
            torch.tensor(list(some)), images, logits.sigmoid(), labels, noise, torch.zeros_like(noise),
            torch.zeros_like(noise),
        )  # fmt: skip
        batch.keep(predicted == labels)
        _run(network, batch, outcome, settings, weight, gradient_threshold)
    return outcome.finished()


def _run(
    network: CountingNetwork,
    batch: _Batch,
    outcome: _Recorder,
    settings: AttackSettings,
    weight: float,
    gradient_threshold: float | None,
) -> None:
    for step in range(settings.max_steps + 1):
        if len(batch.rows) == 0:
            return
        batch.noise.requires_grad_(step < settings.max_steps)
        logits, log_probs = network(batch.images + batch.noise)
        fooled = log_probs.argmax(1) != batch.labels
        is_over = step == settings.max_steps
        outcome.end(batch, logits, log_probs, fooled | is_over, step)
        if is_over:
            return
        wider = gradient_threshold
        seen = log_probs if wider is None else _seen(cast("MapHead", network.head), logits, wider)
        objective = seen.gather(1, batch.labels[:, None])[:, 0]
        # A count that the wider view holds impossible has no gradient: nothing is to be gained there.
        objective = torch.where(objective.isfinite(), objective, torch.zeros_like(objective))
        if step == 0:
            blind = ~fooled & ~_has_gradient(objective, logits)
            outcome.end(batch, logits, log_probs, blind, step, blind=True)
        else:
            blind = torch.zeros_like(fooled)
        change = ((logits.sigmoid() - batch.maps) ** 2).flatten(1).sum(1)
        loss = objective + weight * (change + _SMALLEST_CHANGE).sqrt()
        [gradient] = torch.autograd.grad(loss.sum(), batch.noise)
        with torch.no_grad():
            batch.mean = _BETA1 * batch.mean + (1 - _BETA1) * gradient
            batch.square = _BETA2 * batch.square + (1 - _BETA2) * gradient**2
            mean = batch.mean / (1 - _BETA1 ** (step + 1))
            square = batch.square / (1 - _BETA2 ** (step + 1))
            batch.noise = batch.noise.detach() - settings.rate * mean / (square.sqrt() + _EPS)
        batch.keep(~(fooled | blind))


def _seen(head: MapHead, logits: Tensor, threshold: float) -> Tensor:
    """What a head that counts from the map says of candidates above a threshold."""
    shift = head.shift if isinstance(head, UndoneHead) else 0.0
    odds = threshold / (1 - threshold) * math.exp(shift)
    return count_log_probs(
        logits + shift,
        max_count=head.max_count,
        protocol=replace(head.protocol, threshold=odds / (1 + odds)),
        spatial_dims=head.spatial_dims,
    )


def _has_gradient(objective: Tensor, logits: Tensor) -> Tensor:
    """Whether anything in the map changes the count; heads that read features always have one."""
    if not objective.requires_grad:
        return torch.zeros(len(objective), dtype=torch.bool)
    found: tuple[Tensor | None, ...] = torch.autograd.grad(
        objective.sum(), logits, retain_graph=True, allow_unused=True
    )
    gradient = found[0]
    if gradient is None:
        return torch.ones(len(objective), dtype=torch.bool)
    return gradient.flatten(1).abs().amax(1) > 0


class _Recorder:
    """Keeps what became of each attack, and the least visible one that succeeded."""

    def __init__(self, network: CountingNetwork, scans: Sequence[LearningScan]) -> None:
        self._counts_from_map = isinstance(network.head, MapHead)
        self._protocol = getattr(network.head, "protocol", None)
        n = len(scans)
        self._patients = np.array([scan.patient for scan in scans], dtype=np.str_)
        self._numbers = {name: np.zeros(n, dtype=np.int64) for name in ("labels", "before", "after", "steps")}
        self._changes = {name: np.zeros(n) for name in ("input_change", "map_change", "map_norm")}
        self._blind = np.zeros(n, dtype=bool)
        self._example: dict[str, NDArray[Any]] = {}
        self._least = float("inf")

    def begin(self, rows: range, labels: Tensor, predicted: Tensor, max_steps: int) -> None:
        """Before any step."""
        some = list(rows)
        self._numbers["labels"][some] = labels.numpy()
        self._numbers["before"][some] = self._numbers["after"][some] = predicted.numpy()
        self._numbers["steps"][some] = max_steps

    def end(
        self, batch: _Batch, logits: Tensor, log_probs: Tensor, over: Tensor, step: int, *, blind: bool = False
    ) -> None:
        """Of attacks that are over: they have succeeded, or had all their steps."""
        maps = logits.detach().sigmoid()
        for place in torch.nonzero(over)[:, 0].tolist():
            row = int(batch.rows[place])
            noise, change = batch.noise.detach()[place], maps[place] - batch.maps[place]
            self._numbers["after"][row] = int(log_probs[place].argmax())
            self._numbers["steps"][row] = step
            self._changes["input_change"][row] = float(noise.abs().max())
            self._changes["map_change"][row] = float(change.abs().max())
            self._changes["map_norm"][row] = float(change.norm())
            self._blind[row] = blind
            fooled = int(log_probs[place].argmax()) != int(batch.labels[place])
            if fooled and float(change.abs().max()) < self._least:
                self._least = float(change.abs().max())
                self._example = self._pictured(row, batch.images[place], noise, batch.maps[place, 0], maps[place, 0])

    def _pictured(
        self, row: int, image: Tensor, noise: Tensor, before: Tensor, after: Tensor
    ) -> dict[str, NDArray[Any]]:
        first, second = (np.ascontiguousarray(map_.numpy()) for map_ in (before, after))
        change = np.abs(second - first)
        places = np.array(np.unravel_index(change.argmax(), change.shape))[None]
        if self._counts_from_map:
            peaks = [find_candidates(map_, protocol=self._protocol, warn=False).peak_index for map_ in (first, second)]
            both = np.concatenate(peaks)
            places = both[[int(change[tuple(both.T)].argmax())]] if len(both) else places
        return {
            "row": np.array(row),
            "image": image.numpy(),
            "noise": noise.numpy(),
            "map_before": first,
            "map_after": second,
            "voxel": places[0],
        }

    def finished(self) -> AttackOutcome:
        """All of it."""
        found: dict[str, Any] = self._numbers | self._changes
        return AttackOutcome(self._patients, **found, blind=self._blind, example=self._example)

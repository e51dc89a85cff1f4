"""A counting network and its losses as a Lightning module: segmentation first, then segmentation and count."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import lightning
import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from lesioncount.integrations.torchmetrics import (
    CountAccuracy,
    CountF1,
    CountNLL,
    CountRPS,
    SummedMetric,
    VoxelCalibrationError,
)
from lesioncount.learning.config import TrainingConfig
from lesioncount.learning.expected import Expected
from lesioncount.learning.networks import MapHead, counting_network
from lesioncount.learning.networks.layers import LAYOUTS
from lesioncount.protocol import CountingProtocol
from lesioncount.torch import CountLoss, CountWeight

# The count weight grows over this many epochs in the paper, and is stretched to as many as there are here.
_PAPER_EPOCHS = 100

# Of the histograms that the voxel-wise F1 is computed from.
_BINS = 1000


class CountingModule(lightning.LightningModule):
    """A counting network, trained by the paper's protocol.

    Parameters
    ----------
    config : dict
        As returned by `TrainingConfig.to_dict`: plain values, so that a checkpoint can hold them.
    in_channels : int
    prevalence : float
        Share of lesion voxels, which the network predicts at the start.
    steps_per_epoch : int
        For schedules that go by steps.

    Notes
    -----
    The losses of appendix B: cross-entropy with a positive weight, averaged over the voxels of scans that have a mask;
    plus, after pre-training, the negative log-likelihood of the count (or of its bounds), averaged over scans, with
    weight α e^{β t}. It is not divided by the number of bins, so that the same α means the same for all methods. While
    a head is warmed up, the UNet is frozen and the count loss is the only one.
    """

    def __init__(
        self, config: dict[str, dict[str, Any]], *, in_channels: int, prevalence: float, steps_per_epoch: int
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.config = TrainingConfig.from_dict(config)
        torch.manual_seed(self.config.run.seed)
        # A head may know classes of counts; what follows from the map knows counts.
        self._bins = () if self.config.network.method == "map" else self.config.loss.bins
        n_classes = len(self._bins) or self.config.loss.max_count + 1
        named: dict[str, Any] = {"protocol": CountingProtocol.named(self.config.network.protocol)}
        if self.config.network.head_dropout < 0:
            named["head_dropout"] = None
        self.network = counting_network(
            **asdict(self.config.network) | named,
            spatial_dims=len(self.config.data.shape),
            in_channels=in_channels,
            prevalence=prevalence,
            positive_weight=self.config.loss.positive_weight,
            max_count=n_classes - 1,
        )
        self._memory_format = LAYOUTS[len(self.config.data.shape)]
        self.network.to(memory_format=self._memory_format)  # type: ignore[call-overload]  # a module takes it too
        self.count_loss = CountLoss(
            n_classes - 1,
            protocol=self.network.protocol,
            spatial_dims=len(self.config.data.shape),
            rescue=self.config.loss.rescue,
        )
        self.steps_per_epoch = steps_per_epoch
        most = n_classes - 1
        self.scores: dict[str, Any] = torch.nn.ModuleDict(  # type: ignore[assignment]  # metrics, by their names
            {
                "accuracy": CountAccuracy(most),
                "count_f1": CountF1(most),
                "rps": CountRPS(most),
                "nll": CountNLL(most),
                "voxel_f1": BestVoxelF1(),
            }
        )
        self.calibration = VoxelCalibrationError()

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add what is needed to predict without Lightning: plain options and the weights of the network."""
        checkpoint["network_options"] = self.network.options
        checkpoint["network"] = self.network.state_dict()
        checkpoint["shape"] = list(self.config.data.shape)
        checkpoint["expects"] = Expected.of(self.config.data, self.network.options["in_channels"]).to_dict()

    def count_weight(self, epoch: int) -> float:
        """The weight of the count loss in an epoch."""
        run, loss = self.config.run, self.config.loss
        if epoch < run.pretrain_epochs:
            return 0.0
        if self.is_warmup(epoch):
            return 1.0
        weight = CountWeight(loss.count_weight, loss.count_growth, masks_only=0, epochs=_PAPER_EPOCHS)
        return weight.at(epoch - run.pretrain_epochs - run.warmup_epochs, max(run.epochs, 1))

    def is_warmup(self, epoch: int) -> bool:
        """Whether only the head learns in this epoch."""
        return 0 <= epoch - self.config.run.pretrain_epochs < self.config.run.warmup_epochs

    def on_train_epoch_start(self) -> None:
        """Freeze the UNet while the head is warmed up."""
        self.network.freeze_segmentation(self.is_warmup(self.current_epoch))

    def on_train_batch_start(self, _: Any, batch_idx: int) -> None:
        """Make dropout depend on seed, epoch and batch alone, so that resuming is the same as never having stopped."""
        place = [self.config.run.seed, self.current_epoch, batch_idx, self.global_rank]
        torch.manual_seed(int(np.random.SeedSequence(place).generate_state(1)[0]))

    def training_step(self, batch: dict[str, Tensor], _: int) -> Tensor:
        """The loss of a batch."""
        weight = self.count_weight(self.current_epoch)
        images = batch["images"].contiguous(memory_format=self._memory_format)
        if weight == 0:
            logits, counted = self.network.segment(images), None
        else:
            logits, counted = self._counted(images, batch)
        voxel = self._voxel_loss(logits, batch)
        loss = voxel
        if counted is not None:
            loss = weight * counted + (0.0 if self.is_warmup(self.current_epoch) else voxel)
            shares = {
                "impossible": self.count_loss.n_impossible / len(images),
                "not_finite": self.count_loss.n_not_finite / len(images),
            }
            self.log_dict({"count_loss": counted, **shares}, on_epoch=True, on_step=False)
        self.log_dict({"loss": loss, "voxel_loss": voxel, "count_weight": weight}, on_epoch=True, on_step=False)
        return loss

    def _counted(self, images: Tensor, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Segmentation logits, and the loss of the count."""
        bounds = {name: self._class_of(batch[name]) for name in ("at_least", "at_most")}
        if isinstance(self.network.head, MapHead):  # the loss looks at the map itself: one that overflowed is left out
            logits = self.network.segment(images)
            return logits, self.count_loss(logits, **bounds)
        logits, log_probs = self.network(images)
        return logits, self.count_loss.of_log_probs(log_probs, **bounds)

    def _class_of(self, counts: Tensor) -> Tensor:
        """The class that a head should find, where classes are not counts."""
        if not self._bins:
            return counts
        return torch.bucketize(counts, torch.tensor(self._bins[1:], device=counts.device), right=True)

    def _voxel_loss(self, logits: Tensor, batch: dict[str, Tensor]) -> Tensor:
        known = batch["has_mask"]
        if not bool(known.any()):
            return logits[:0].sum()  # 0 with a gradient, also where logits are not finite
        weight = torch.tensor(self.config.loss.positive_weight, device=logits.device)
        return binary_cross_entropy_with_logits(logits[known], batch["mask"][known], pos_weight=weight)

    def validation_step(self, batch: dict[str, Tensor], _: int) -> None:
        """Add a batch to the scores."""
        self._score(batch)

    def test_step(self, batch: dict[str, Tensor], batch_idx: int) -> None:  # noqa: ARG002 - Lightning gives it
        """Add a batch to the scores."""
        self._score(batch)

    def _score(self, batch: dict[str, Tensor]) -> None:
        logits, log_probs = self.network(batch["images"].contiguous(memory_format=self._memory_format))
        scored = ~batch["is_repeated"]
        exact = scored & (batch["at_least"] == batch["at_most"])
        for name in ("accuracy", "count_f1", "rps", "nll"):
            if bool(exact.any()):
                self.scores[name].update(log_probs[exact], self._class_of(batch["at_least"][exact]))
        known = scored & batch["has_mask"]
        if bool(known.any()):
            self.scores["voxel_f1"].update(logits[known], batch["mask"][known])
            self.calibration.update(logits[known], batch["mask"][known])

    def on_validation_epoch_end(self) -> None:
        """Log the scores of the validation scans."""
        self._log_scores("val")

    def on_test_epoch_end(self) -> None:
        """Log the scores of the test scans."""
        self._log_scores("test")

    def _log_scores(self, part: str) -> None:
        found = {name: metric.compute() for name, metric in self.scores.items() if self._is_scored(metric)}
        if self._is_scored(self.calibration):
            found |= {f"voxel_{name}": value for name, value in self.calibration.compute().items()}
        for metric in (*self.scores.values(), self.calibration):
            metric.reset()
        self.log_dict({f"{part}_{name}": value for name, value in found.items()}, prog_bar=False)

    def _is_scored(self, metric: Any) -> bool:
        """Whether any process has scored a scan: they compute a metric together, or wait for each other for ever."""
        return self.trainer.strategy.reduce_boolean_decision(metric.update_called, all=False)

    def configure_optimizers(self) -> Any:
        """Adam and its schedule."""
        wanted = self.config.optimizer
        groups = self.network.parameter_groups(wanted.learning_rate, head_lr=wanted.head_learning_rate or None)
        optimizer = torch.optim.Adam(groups, weight_decay=wanted.weight_decay)
        if wanted.schedule == "exponential":
            # By steps, because Lightning writes a checkpoint before it advances schedules that go by epochs.
            by_epoch = torch.optim.lr_scheduler.LambdaLR(
                optimizer, lambda step: wanted.decay ** (step // self.steps_per_epoch)
            )
            return [optimizer], [{"scheduler": by_epoch, "interval": "step"}]
        n_steps = max(2, self.config.run.n_epochs * self.steps_per_epoch)
        schedule: torch.optim.lr_scheduler.LRScheduler
        if wanted.schedule == "cosine":
            run = self.config.run
            # A UNet that is frozen first does not spend its cosine on that.
            waits = run.warmup_epochs if run.epochs and not run.pretrain_epochs else 0
            begins = {"unet": waits * self.steps_per_epoch}
            schedule = torch.optim.lr_scheduler.LambdaLR(
                optimizer, [cosine(begins.get(group["name"], 0), n_steps) for group in groups]
            )
        else:
            rates = [group["lr"] for group in groups]
            schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rates, total_steps=n_steps)
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]


def cosine(begin: int, end: int) -> Callable[[int], float]:
    """The factor of a learning rate at a step: 1 up to where a part of the network begins to learn, then down to 0."""
    return lambda step: 0.5 * (1 + math.cos(math.pi * min(max(step - begin, 0) / max(end - begin, 1), 1)))


class BestVoxelF1(SummedMetric):
    """F1 of lesion voxels, the maximum over thresholds: the authors of the paper select epochs by it.

    States are histograms of probabilities.
    """

    higher_is_better = True
    lesion: Tensor
    other: Tensor

    def _sums(self) -> dict[str, tuple[int, ...]]:
        return {"lesion": (_BINS,), "other": (_BINS,)}

    def update(self, logits: Tensor, masks: Tensor) -> None:
        """Add a batch: logits, and masks of the same shape."""
        bins = (torch.sigmoid(logits.detach().float()) * _BINS).long().clamp(max=_BINS - 1).flatten()
        inside = masks.detach().flatten() > 0
        self._add(*(torch.bincount(bins[where], minlength=_BINS) for where in (inside, ~inside)))

    def compute(self) -> Tensor:
        """The highest F1; 0 where there is no lesion voxel."""
        hits = self.lesion.flip(0).cumsum(0)
        claimed = hits + self.other.flip(0).cumsum(0)
        f1 = 2 * hits / (claimed + self.lesion.sum()).clamp(min=1)
        return f1.max().float()

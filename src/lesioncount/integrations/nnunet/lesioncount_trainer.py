"""A trainer for nnU-Net v2 that also learns from the number of lesions in each patch.

nnU-Net imports this file under the name ``lesioncount_trainer``, which is why imports are absolute, and why the name is
one that nobody else has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer

from lesioncount.integrations.nnunet_loss import CountTally, SegmentationAndCountLoss
from lesioncount.protocol import CountingProtocol
from lesioncount.torch import CountLoss, CountWeight


class nnUNetTrainerLesionCount(nnUNetTrainer):  # type: ignore[misc]  # noqa: N801 - untyped; found by this name
    """nnU-Net's loss plus a count loss on the full-resolution output. Override the attributes in a subclass.

    Attributes
    ----------
    count_weight : CountWeight
        How the weight of the count loss grows.
    count_protocol : CountingProtocol
        What counts as one lesion, in the output and in the target. A smallest size must be in voxels of the plans'
        spacing (``min_voxels``).
    count_max : int, optional
        Counts from here on are all the same, "this many or more". None: no such bin.
    count_rescue : bool
        Whether faint peaks become candidates where there are too few: see `CountLoss`.
    count_channels : sequence of int, optional
        Which channels of the network are lesions. None: all but the background.
    """

    count_weight: ClassVar[CountWeight] = CountWeight()
    count_protocol: ClassVar[CountingProtocol] = CountingProtocol()
    count_max: ClassVar[int | None] = 4  # the bins of the paper
    count_rescue: ClassVar[bool] = False
    count_channels: ClassVar[Sequence[int] | None] = None

    def _build_loss(self) -> SegmentationAndCountLoss:
        return SegmentationAndCountLoss(
            super()._build_loss(),
            CountLoss(
                self.count_max,
                protocol=self.count_protocol,
                spatial_dims=len(self.configuration_manager.patch_size),
                rescue=self.count_rescue,
            ),
            regions=self.label_manager.has_regions,
            ignore_label=self.label_manager.ignore_label,
            channels=self.count_channels,
        )

    def on_train_epoch_start(self) -> None:
        """Set the weight of this epoch, which validation uses too."""
        super().on_train_epoch_start()
        self.loss.weight = self.count_weight.at(self.current_epoch, self.num_epochs)
        self.print_to_log_file(f"count_weight {self.loss.weight:.4g}")

    def on_train_epoch_end(self, train_outputs: list[dict[str, Any]]) -> None:
        """Log the count loss of training."""
        super().on_train_epoch_end(train_outputs)
        self._log_tally("train")

    def on_validation_epoch_end(self, val_outputs: list[dict[str, Any]]) -> None:
        """Log the count loss of validation."""
        super().on_validation_epoch_end(val_outputs)
        self._log_tally("val")

    def _log_tally(self, phase: str) -> None:
        # Of this process only: with several GPUs, the first one writes the log.
        tally, self.loss.tally = self.loss.tally, CountTally()
        if tally.n_labels:
            self.print_to_log_file(f"{phase}_count_loss {tally}")

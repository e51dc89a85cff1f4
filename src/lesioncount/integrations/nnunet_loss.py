"""What the trainer for nnU-Net adds to its loss: outputs and targets of a patch → the count loss of that patch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lesioncount.torch.losses import CountLoss
from lesioncount.torch.patches import foreground_logits, foreground_masks, patch_counts
from lesioncount.torch.precision import outside_of_compilation
from lesioncount.torch.schedule import CountTally, CountWeight

__all__ = [
    "CountTally",
    "CountWeight",
    "SegmentationAndCountLoss",
    "foreground_logits",
    "foreground_masks",
    "patch_counts",
]

# With deep supervision nnU-Net passes one tensor per resolution, the full one first.
Resolutions = Tensor | Sequence[Tensor]


class SegmentationAndCountLoss(nn.Module):
    """A segmentation loss plus ``weight`` times the count loss of the full-resolution output.

    Parameters
    ----------
    segmentation : Module
        Takes outputs and targets as nnU-Net passes them.
    count : CountLoss
        With its ``spatial_dims`` set.
    regions : bool, default False
        As in `foreground_logits`.
    ignore_label : int, optional
        Voxels with this label are left out. With regions, the last channel of the target says where they are.
    channels : sequence of int, optional
        Which channels of the output are counted. Default: all but the background.

    Attributes
    ----------
    weight : float
        0 until it is set. While it is 0, the count loss is computed only where no gradient is wanted, for the log.
    tally : CountTally
        Replace it by a new one to start again.
    """

    def __init__(
        self,
        segmentation: nn.Module,
        count: CountLoss,
        *,
        regions: bool = False,
        ignore_label: int | None = None,
        channels: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.segmentation = segmentation
        self.count = count
        self.regions = regions
        self.ignore_label = ignore_label
        self.channels = channels
        self.weight = 0.0
        self.tally = CountTally()

    def forward(self, outputs: Resolutions, targets: Resolutions) -> Tensor:
        """The loss of one batch of patches."""
        total: Tensor = self.segmentation(outputs, targets)
        if self.weight == 0 and torch.is_grad_enabled():
            return total
        return total + self.weight * self._count_loss(_full_resolution(outputs), _full_resolution(targets))

    @outside_of_compilation
    def _count_loss(self, output: Tensor, target: Tensor) -> Tensor:
        channels = range(0 if self.regions else 1, output.shape[1]) if self.channels is None else self.channels
        logits = foreground_logits(output, channels, regions=self.regions)
        lesions, inside = foreground_masks(target, channels, regions=self.regions, ignore_label=self.ignore_label)
        truth = patch_counts(lesions, protocol=self.count.protocol, inside=inside)
        loss: Tensor = self.count(logits, truth, mask=inside)
        self.tally.add(loss.item(), truth.numel(), self.count.n_impossible, self.count.n_not_finite)
        return loss


def _full_resolution(tensors: Resolutions) -> Tensor:
    return tensors if isinstance(tensors, Tensor) else tensors[0]

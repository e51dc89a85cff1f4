"""The voxel-wise F1 of a segmentation, at the threshold where it is highest."""

from __future__ import annotations

import torch
from torch import Tensor
from torchmetrics import Metric

_BINS = 1000


class BestVoxelF1(Metric):
    """F1 of lesion voxels, the maximum over thresholds: what the authors of the paper select epochs by.

    States are histograms of probabilities, so that batches and processes add up.
    """

    higher_is_better = True
    is_differentiable = False
    full_state_update = False
    lesion: Tensor
    other: Tensor

    def __init__(self, **options: bool) -> None:
        super().__init__(**options)
        for name in ("lesion", "other"):
            self.add_state(name, default=torch.zeros(_BINS, dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, logits: Tensor, masks: Tensor) -> None:
        """Add a batch: logits, and masks of the same shape."""
        bins = (torch.sigmoid(logits.detach().float()) * _BINS).long().clamp(max=_BINS - 1).flatten()
        inside = masks.detach().flatten() > 0
        self.lesion += torch.bincount(bins[inside], minlength=_BINS)
        self.other += torch.bincount(bins[~inside], minlength=_BINS)

    def compute(self) -> Tensor:
        """The highest F1; 0 where there is no lesion voxel."""
        hits = self.lesion.flip(0).cumsum(0)
        claimed = hits + self.other.flip(0).cumsum(0)
        f1 = 2 * hits / (claimed + self.lesion.sum()).clamp(min=1)
        return f1.max().float()

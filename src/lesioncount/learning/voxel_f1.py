"""The voxel-wise F1 of a segmentation, at the threshold where it is highest."""

from __future__ import annotations

import torch
from torch import Tensor

from lesioncount.integrations.summed_metric import SummedMetric

_BINS = 1000


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

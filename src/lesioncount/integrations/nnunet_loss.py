"""What the trainer for nnU-Net adds to its loss: outputs and targets of a patch → the count loss of that patch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lesioncount.baselines import connected_component_count
from lesioncount.protocol import CountingProtocol
from lesioncount.torch.compilation import outside_of_compilation
from lesioncount.torch.losses import CountLoss

# With deep supervision nnU-Net passes one tensor per resolution, the full one first.
Resolutions = Tensor | Sequence[Tensor]


@dataclass(frozen=True)
class CountWeight:
    """The weight of the count loss: 0 while masks are learned, then α e^{β (epoch − masks_only)}.

    Parameters
    ----------
    alpha, beta : float
        Weight of the first epoch with counts, and how fast it grows.
    masks_only : float, default 20
        Epochs without counts.
    epochs : float, default 120
        Length of the training that the other numbers are meant for; they are stretched to the length of the actual one.

    Notes
    -----
    Appendix B of the paper, whose training has 20 epochs on masks and then 100 with counts.

    Examples
    --------
    >>> weight = CountWeight()
    >>> [round(weight.at(epoch, 120), 4) for epoch in (0, 19, 20, 70, 119)]
    [0.0, 0.0, 0.001, 0.0201, 0.3799]
    >>> weight.at(700, 1200) == weight.at(70, 120)
    True
    """

    alpha: float = 0.001
    beta: float = 0.06
    masks_only: float = 20
    epochs: float = 120

    def at(self, epoch: int, n_epochs: int) -> float:
        """The weight in an epoch, counted from 0, of a training of ``n_epochs``."""
        with_counts = epoch * self.epochs / n_epochs - self.masks_only
        return 0.0 if with_counts < 0 else self.alpha * math.exp(self.beta * with_counts)


@dataclass
class CountTally:
    """What the count loss met since the tally was taken last."""

    loss: float = 0.0
    n_labels: int = 0
    n_impossible: int = 0

    def add(self, loss: float, n_labels: int, n_impossible: int) -> None:
        """Add a batch, with its mean loss."""
        self.loss += loss * n_labels
        self.n_labels += n_labels
        self.n_impossible += n_impossible

    def __str__(self) -> str:
        """In words, for a log."""
        mean = self.loss / max(self.n_labels, 1)
        return f"{mean:.4f}, {self.n_impossible} of {self.n_labels} labels impossible"


class SegmentationAndCountLoss(nn.Module):
    """A segmentation loss plus ``weight`` times the count loss of the full-resolution output.

    Parameters
    ----------
    segmentation : Module
        Takes outputs and targets as nnU-Net passes them.
    count : CountLoss
        With its ``spatial_dims`` set.
    regions : bool, default False
        Whether channels are regions that may overlap, each with a sigmoid, rather than classes of one softmax.
    ignore_label : int, optional
        Voxels of this label are left out. With regions, the last channel of the target says where it is.
    channels : sequence of int, optional
        Which channels of the output are counted. Default: all but the background.

    Attributes
    ----------
    weight : float
        0 until set. While it is 0 the count loss is only computed where no gradient is wanted, to be looked at.
    tally : CountTally
        Put a new one in its place to start again.
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
        if not bool(torch.isfinite(logits).all()):  # half precision overflowed: nnU-Net skips this step and goes on
            return logits.new_zeros(())
        lesions, inside = foreground_masks(target, channels, regions=self.regions, ignore_label=self.ignore_label)
        truth = patch_counts(lesions, protocol=self.count.protocol, inside=inside)
        loss: Tensor = self.count(logits, truth, mask=inside)
        self.tally.add(loss.item(), truth.numel(), self.count.n_impossible)
        return loss


def foreground_logits(output: Tensor, channels: Sequence[int], *, regions: bool) -> Tensor:
    """Logits whose sigmoid is the probability of each channel, in single precision: (batch, len(channels), *spatial).

    Parameters
    ----------
    output : Tensor, shape (batch, channels, *spatial)
        Before softmax, or with regions before sigmoid.

    Notes
    -----
    For a softmax, logit p_c = z_c − log Σ_{k≠c} e^{z_k}. Through p_c itself, a voxel that is all but certain would
    have an infinite logit.

    Examples
    --------
    >>> output = torch.tensor([[2.0, 1.0, -3.0]]).reshape(1, 3, 1, 1)
    >>> foreground_logits(output, [1, 2], regions=False).sigmoid().flatten()
    tensor([0.2676, 0.0049])
    >>> output.softmax(1)[0, 1:].flatten()
    tensor([0.2676, 0.0049])
    """
    output = output.float()
    if regions:
        return output[:, list(channels)]
    others = [torch.cat([output[:, :c], output[:, c + 1 :]], dim=1).logsumexp(1) for c in channels]
    return torch.stack([output[:, c] - rest for c, rest in zip(channels, others, strict=True)], dim=1)


def foreground_masks(
    target: Tensor, channels: Sequence[int], *, regions: bool, ignore_label: int | None
) -> tuple[Tensor, Tensor | None]:
    """Where each channel is in the target: (batch, len(channels), *spatial); and where the target is known, if not all.

    Parameters
    ----------
    target : Tensor
        (batch, 1, *spatial) of labels; or (batch, regions, *spatial), with a last channel for the ignore label.
    """
    if regions:
        inside = None if ignore_label is None else target[:, -1] == 0
        return target[:, list(channels)] != 0, inside
    labels = target[:, 0]
    inside = None if ignore_label is None else labels != ignore_label
    return torch.stack([labels == c for c in channels], dim=1), inside


def patch_counts(masks: Tensor, *, protocol: CountingProtocol, inside: Tensor | None = None) -> Tensor:
    """The number of connected components in each mask of a batch: (batch, channels).

    Parameters
    ----------
    masks : Tensor of bool, shape (batch, channels, *spatial)
    protocol : CountingProtocol
        Connectivity and smallest size; the threshold says nothing about a mask.
    inside : Tensor of bool, shape (batch, *spatial), optional
        Only voxels in here are looked at.

    Examples
    --------
    >>> masks = torch.tensor([[1, 0, 0, 1], [1, 0, 1, 0]], dtype=torch.bool)[None, None]
    >>> patch_counts(masks, protocol=CountingProtocol(connectivity="edges"))
    tensor([[2]])
    >>> patch_counts(masks, protocol=CountingProtocol(connectivity="faces"))
    tensor([[3]])
    """
    looked_at = [None] * len(masks) if inside is None else list(inside.cpu().numpy())
    counts = [
        [connected_component_count(channel, protocol=protocol, mask=where) for channel in item]
        for item, where in zip(masks.cpu().numpy(), looked_at, strict=True)
    ]
    return torch.tensor(counts, device=masks.device)


def _full_resolution(tensors: Resolutions) -> Tensor:
    return tensors if isinstance(tensors, Tensor) else tensors[0]

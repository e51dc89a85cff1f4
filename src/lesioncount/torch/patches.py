"""Outputs and targets of patches, as a segmentation network is trained on them → lesion logits, masks and counts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lesioncount.baselines import connected_component_count
from lesioncount.protocol import CountingProtocol
from lesioncount.torch.precision import has_only_numbers, is_inside


def foreground_logits(output: Tensor, channels: Sequence[int], *, regions: bool) -> Tensor:
    """Logits whose sigmoid is the probability of each channel: (batch, len(channels), *spatial).

    In single precision, unless the output is in double precision.

    Parameters
    ----------
    output : Tensor, shape (batch, channels, *spatial)
        Before the softmax or, with regions, before the sigmoid.
    channels : sequence of int
        The channels that are wanted.
    regions : bool
        Whether channels are regions that may overlap, each with a sigmoid, rather than classes of one softmax.

    Notes
    -----
    For a softmax, logit p_c = z_c − log Σ_{k≠c} e^{z_k}. Through p_c itself, a voxel that is all but certain would
    have an infinite logit.

    A patch whose logits are not all finite is NaN throughout and has no gradient.

    Examples
    --------
    >>> output = torch.tensor([[2.0, 1.0, -3.0]]).reshape(1, 3, 1, 1)
    >>> foreground_logits(output, [1, 2], regions=False).sigmoid().flatten()
    tensor([0.2676, 0.0049])
    >>> output.softmax(1)[0, 1:].flatten()
    tensor([0.2676, 0.0049])
    """
    output = output if output.dtype == torch.float64 else output.float()
    wanted = _region_logits if regions else _softmax_logits
    logits = wanted(output, channels)
    finite = has_only_numbers(logits)
    if bool(finite.all()):
        return logits
    # Computed again without these patches: the gradient of a softmax of infinities is NaN, even when multiplied by 0.
    finite = finite.reshape(-1, *(1,) * (output.ndim - 1))
    return torch.where(finite, wanted(torch.where(finite, output, 0.0), channels), torch.nan)


def _region_logits(output: Tensor, channels: Sequence[int]) -> Tensor:
    return output[:, list(channels)]


def _softmax_logits(output: Tensor, channels: Sequence[int]) -> Tensor:
    others = [torch.cat([output[:, :c], output[:, c + 1 :]], dim=1).logsumexp(1) for c in channels]
    return torch.stack([output[:, c] - rest for c, rest in zip(channels, others, strict=True)], dim=1)


def foreground_masks(
    target: Tensor, channels: Sequence[int], *, regions: bool, ignore_label: int | None
) -> tuple[Tensor, Tensor | None]:
    """Where each channel is in the target, (batch, len(channels), *spatial), and where the target is known.

    Parameters
    ----------
    target : Tensor
        (batch, 1, *spatial) of labels; or (batch, regions, *spatial), with a last channel for the ignore label.
    channels, regions
        As in `foreground_logits`.
    ignore_label : int, optional
        The label of voxels that are left out.

    Returns
    -------
    masks : Tensor of bool
    inside : Tensor of bool, shape (batch, *spatial), or None
        None where the whole target is known.
    """
    if regions:
        inside = None if ignore_label is None else target[:, -1] == 0
        return is_inside(target[:, list(channels)]), inside
    labels = target[:, 0]
    inside = None if ignore_label is None else labels != ignore_label
    return torch.stack([labels == c for c in channels], dim=1), inside


def patch_counts(masks: Tensor, *, protocol: CountingProtocol, inside: Tensor | None = None) -> Tensor:
    """The number of connected components in each mask of a batch: (batch, channels).

    Parameters
    ----------
    masks : Tensor of bool, shape (batch, channels, *spatial)
    protocol : CountingProtocol
        Connectivity and smallest size. The threshold does not matter for a mask.
    inside : Tensor of bool, shape (batch, *spatial), optional
        Only these voxels are looked at.

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

"""Images → segmentation logits, with the features that counting heads read: the UNet of the paper."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from lesioncount.errors import ShapeError
from lesioncount.learning.networks.layers import Dropout, NormAndActivation, channel_dropout, convolution, max_pooled
from lesioncount.learning.plausible import MOST_FILTERS, is_network_size, shown


class UNetOutput(NamedTuple):
    """The result of one pass through a UNet."""

    logits: Tensor
    """(batch, 1, *spatial), never in half precision, even under autocast."""
    decoded: Tensor
    """(batch, filters, *spatial): the features that the logits are computed from."""
    bottleneck: Tensor
    """(batch, filters · 2^(levels - 2), *smallest): the features of the lowest level."""


class UNet(nn.Module):
    """The segmentation network of the paper.

    Parameters
    ----------
    spatial_dims : int, default 3
        2 or 3.
    in_channels : int, default 5
        Number of channels of the images. The paper has five sequences.
    filters : int, default 32
        Number of filters of the first level. Each level below has twice as many.
    levels : int, default 5
        At least 2.
    dropout : float, default 0.1
        Dropout probability, of whole channels on the way down and of single values on the way up.
    prevalence : float, optional
        The share of voxels that are lesion. The network starts out predicting it instead of one half, which saves the
        epochs in which it would only learn that lesions are rare.
    positive_weight : float, default 1
        The weight that the loss will give to lesion voxels. The paper has 3. See Notes.

    Notes
    -----
    Appendix B.1 of the paper, and where it is silent the authors' published code: two convolutions of three voxels per
    level, each with instance norm and leaky ReLU; max pooling by two; the lowest level and those on the way up end with
    the number of filters of the level above, which is that of its skip. Skips are additive: each of the two inputs gets
    a convolution of its own, and their sum goes on (the same as one convolution of both, concatenated).

    Different here: convolutions before a norm have no bias, since the norm removes any constant; pooling rounds up, so
    that images may have any size.

    With prevalence π and a weight w of the positive class, the loss of a constant prediction p is
    -w π log p - (1 - π) log(1 - p), smallest at logit p = logit π + log w. This is the bias of the output. Such a
    network goes on to predict w times the odds, which a `Calibration` undoes.

    Examples
    --------
    >>> unet = UNet(spatial_dims=2, in_channels=1, filters=4, levels=3)
    >>> output = unet(torch.zeros(2, 1, 13, 10))
    >>> output.logits.shape, output.decoded.shape, output.bottleneck.shape
    (torch.Size([2, 1, 13, 10]), torch.Size([2, 4, 13, 10]), torch.Size([2, 8, 4, 3]))
    """

    def __init__(
        self,
        *,
        spatial_dims: int = 3,
        in_channels: int = 5,
        filters: int = 32,
        levels: int = 5,
        dropout: float = 0.1,
        prevalence: float | None = None,
        positive_weight: float = 1.0,
    ) -> None:
        super().__init__()
        _check_sizes(spatial_dims, in_channels, filters, levels)
        _check_dropout(dropout)
        bias = output_bias(prevalence, positive_weight)
        self.spatial_dims, self.in_channels = spatial_dims, in_channels
        width = [filters * 2**level for level in range(levels)]
        self.encoder = nn.ModuleList([_two_convolutions(spatial_dims, in_channels, filters, filters)])
        for above, here in pairwise(width[:-1]):
            self.encoder.append(_Down(spatial_dims, above, here, here, dropout))
        self.encoder.append(_Down(spatial_dims, width[-2], width[-1], width[-2], dropout))
        self.decoder = nn.ModuleList(
            [
                _Up(spatial_dims, width[level], width[max(level - 1, 0)], dropout)
                for level in reversed(range(levels - 1))
            ]
        )
        # Torch's own random weights are smaller than Kaiming's: the network should start close to the prevalence.
        self.output = (nn.Conv2d if spatial_dims == 2 else nn.Conv3d)(filters, 1, 1)
        nn.init.constant_(self.output.bias, bias)  # type: ignore[arg-type]  # there is a bias

    def forward(self, images: Tensor) -> UNetOutput:
        """Segment images of shape (batch, in_channels, *spatial)."""
        self._check(images)
        skips = []
        features = images
        for level in self.encoder:
            features = level(features)
            skips.append(features)
        bottleneck = skips.pop()
        for level in self.decoder:
            features = level(features, skips.pop())
        # In half precision, peaks that differ would become equal.
        with torch.autocast(features.device.type, enabled=False):
            logits = self.output(features.to(self.output.weight.dtype))
        return UNetOutput(logits, features, bottleneck)

    def _check(self, images: Tensor) -> None:
        axes = "z, y, x" if self.spatial_dims == 3 else "y, x"
        if images.ndim != self.spatial_dims + 2 or images.shape[1] != self.in_channels or 0 in images.shape:
            raise ShapeError(
                f"Expected images of shape (batch, {self.in_channels}, {axes}), but got {tuple(images.shape)}."
            )


class _Down(nn.Module):
    """One level down: half the size, dropout of channels, two convolutions."""

    def __init__(self, spatial_dims: int, above: int, middle: int, out: int, dropout: float) -> None:
        super().__init__()
        self.dropout = channel_dropout(spatial_dims, dropout)
        self.convolutions = _two_convolutions(spatial_dims, above, middle, out)

    def forward(self, features: Tensor) -> Tensor:
        result: Tensor = self.convolutions(self.dropout(max_pooled(features)))
        return result


class _Up(nn.Module):
    """One level up: the features from below, at the size of the skip, plus the skip; then a convolution."""

    def __init__(self, spatial_dims: int, channels: int, out: int, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.from_below = convolution(spatial_dims, channels, channels)
        self.from_skip = convolution(spatial_dims, channels, channels)
        self.after = nn.Sequential(
            NormAndActivation(channels),
            nn.Identity(),
            convolution(spatial_dims, channels, out),
            NormAndActivation(out),
        )

    def forward(self, below: Tensor, skip: Tensor) -> Tensor:
        # Pooling rounds up, so where the size here is odd, doubling gives one voxel too many.
        below = functional.interpolate(below, size=skip.shape[2:], mode="nearest")
        result: Tensor = self.after(self.from_below(self.dropout(below)) + self.from_skip(self.dropout(skip)))
        return result


def _two_convolutions(spatial_dims: int, in_channels: int, middle: int, out: int) -> nn.Sequential:
    return nn.Sequential(
        convolution(spatial_dims, in_channels, middle),
        NormAndActivation(middle),
        nn.Identity(),  # where checkpoints of version 0.1 have the activation: names of weights go by places
        convolution(spatial_dims, middle, out),
        NormAndActivation(out),
    )


def output_bias(prevalence: float | None, positive_weight: float) -> float:
    """The logit of the best constant prediction, given the share of lesion voxels and their weight in the loss."""
    if not (math.isfinite(positive_weight) and positive_weight > 0):
        raise ValueError(f"Expected a positive_weight greater than 0, but got {positive_weight!r}.")
    if prevalence is None:
        return 0.0
    if not 0 < prevalence < 1:
        raise ValueError(f"Expected the prevalence of lesion voxels to lie between 0 and 1, but got {prevalence!r}.")
    return math.log(prevalence / (1 - prevalence)) + math.log(positive_weight)


def _check_sizes(spatial_dims: int, in_channels: int, filters: int, levels: int) -> None:
    if spatial_dims not in (2, 3):
        raise ValueError(f"Expected spatial_dims to be 2 or 3, but got {spatial_dims!r}.")
    for name, value, least in (("in_channels", in_channels, 1), ("filters", filters, 1), ("levels", levels, 2)):
        if not isinstance(value, int) or value < least:
            raise ValueError(f"Expected {name} to be a whole number of at least {least}, but got {value!r}.")
    if not is_network_size(filters, levels) or in_channels > MOST_FILTERS:
        raise ValueError(
            f"A network with {shown(in_channels)} channels, {shown(filters)} filters and {shown(levels)} levels does "
            f"not fit into memory: some level would have more than {MOST_FILTERS} filters. Choose fewer."
        )


def _check_dropout(dropout: float) -> None:
    if not 0 <= dropout < 1:
        raise ValueError(f"Expected a dropout probability in [0, 1), but got {dropout!r}.")

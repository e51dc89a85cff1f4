"""The building blocks of all networks, in two and three dimensions, for images of any size.

Plain torch rather than MONAI's blocks: these take seconds to import, and their norm and pooling refuse small images.
Where they accept an image they give the same numbers, which the tests check.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

# Slope of the leaky ReLU, as in nnU-Net and in the authors' published code.
NEGATIVE_SLOPE = 0.01

DROPOUTS = (nn.Dropout, nn.Dropout2d, nn.Dropout3d)


def convolution(
    spatial_dims: int, in_channels: int, out_channels: int, *, kernel_size: int = 3, bias: bool = False
) -> nn.Conv2d | nn.Conv3d:
    """A convolution that keeps the size, with Kaiming's random weights, and a bias of zero or none."""
    layer = nn.Conv2d if spatial_dims == 2 else nn.Conv3d
    made = layer(in_channels, out_channels, kernel_size, padding=kernel_size // 2, bias=bias)
    nn.init.kaiming_normal_(made.weight, a=NEGATIVE_SLOPE)
    if made.bias is not None:
        nn.init.zeros_(made.bias)
    return made


def channel_dropout(spatial_dims: int, probability: float) -> nn.Dropout2d | nn.Dropout3d:
    """Dropout of whole channels."""
    return nn.Dropout2d(probability) if spatial_dims == 2 else nn.Dropout3d(probability)


def leaky_relu() -> nn.LeakyReLU:
    """The activation of all networks, in place."""
    return nn.LeakyReLU(NEGATIVE_SLOPE, inplace=True)


def max_pooled(features: Tensor) -> Tensor:
    """Halved along each axis, rounded up: no voxel is left out, and an axis of one voxel stays."""
    pool = functional.max_pool2d if features.ndim == 4 else functional.max_pool3d
    pooled: Tensor = pool(features, _windows(features), ceil_mode=True)
    return pooled


def average_pooled(features: Tensor) -> Tensor:
    """As `max_pooled`, with averages. Where a window sticks out, only the voxels inside are averaged."""
    pool = functional.avg_pool2d if features.ndim == 4 else functional.avg_pool3d
    return pool(features, _windows(features), ceil_mode=True)


def _windows(features: Tensor) -> list[int]:
    """Windows that fit: torch cannot pool over windows larger than the image."""
    return [min(2, size) for size in features.shape[2:]]


class InstanceNorm(nn.GroupNorm):
    """Instance norm with scale and shift, which also takes a single voxel.

    Parameters
    ----------
    channels : int

    Notes
    -----
    Written as a group norm with one channel per group, which is the same and 2.5 times as fast on a CPU. It is fast
    only where a channel's voxels lie together: the channels-last layout is undone here and restored by the next
    convolution, which gains more from it than the two copies cost.

    A single voxel has no spread to divide by. It is only scaled and shifted, and so keeps its information.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        """Normalise each channel of each image."""
        if input.shape[2:].numel() > 1:
            return super().forward(input.contiguous())
        one = (1, -1, *(1 for _ in input.shape[2:]))
        return torch.addcmul(self.bias.view(one), input, self.weight.view(one))

"""The building blocks of all networks, in two and three dimensions, for images of any size.

Plain torch rather than MONAI's blocks: these take seconds to import, and their norm and pooling refuse small images.
Where they accept an image they give the same numbers, which the tests check.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lesioncount.learning.networks._norm import gradient, normalise

# Slope of the leaky ReLU, as in nnU-Net and in the authors' published code.
NEGATIVE_SLOPE = 0.01

# How features lie in memory, by the number of axes: convolutions of few channels are fastest on a CPU, and on a GPU in
# half precision, where the channels of a voxel lie together.
LAYOUTS = {2: torch.channels_last, 3: torch.channels_last_3d}

DROPOUTS = (nn.Dropout, nn.Dropout2d, nn.Dropout3d)


class Conv3d(nn.Conv3d):
    """A convolution that never computes two planes in bfloat16 on a CPU.

    There, oneDNN's gradient of the weights reads memory that nobody has written (torch 2.13; any channels, rows and
    columns; one plane, or three, are right), and now and then a weight becomes NaN.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        """Convolve, two planes in float32."""
        if input.device.type == "cpu" and input.shape[2] == 2 and torch.is_autocast_enabled("cpu"):
            with torch.autocast("cpu", enabled=False):
                return super().forward(input.to(self.weight.dtype))
        return super().forward(input)


def convolution(
    spatial_dims: int, in_channels: int, out_channels: int, *, kernel_size: int = 3, bias: bool = False
) -> nn.Conv2d | nn.Conv3d:
    """A convolution that keeps the size, with Kaiming's random weights, and a bias of zero or none."""
    layer = nn.Conv2d if spatial_dims == 2 else Conv3d
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


class Dropout(nn.Dropout):
    """Dropout of single values, which draws four of them at a time.

    Notes
    -----
    On a CPU, torch draws a random number of 64 bits for every value, which takes longer than a convolution of eight
    channels. Here each value gets 16 of them: the probability is rounded to a multiple of 1/65536.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        """Set values to 0 at random, and make up for it in the others."""
        dropped = round(self.p * 65536)
        if not self.training or dropped == 0 or input.device.type != "cpu" or torch.compiler.is_compiling():
            return super().forward(input)
        drawn = torch.empty((input.numel() + 3) // 4, dtype=torch.int64)
        drawn.random_(-(2**63), None)
        kept = drawn.view(torch.int16)[: input.numel()] >= dropped - 32768
        # In the order in which the values lie in memory, so that nothing is moved.
        scale = torch.empty_like(input)
        flat = scale.as_strided((input.numel(),), (1,))
        torch.mul(kept, 65536 / (65536 - dropped), out=flat)
        return input * scale


class NormAndActivation(nn.GroupNorm):
    """Instance norm with scale and shift, which also takes a single voxel; then the leaky ReLU.

    Parameters
    ----------
    channels : int

    Notes
    -----
    On a CPU, where the channels of a voxel lie together, both are done by a kernel of this package in two passes over
    memory. Otherwise the norm is written as a group norm with one channel per group, which is the same as torch's and
    2.5 times as fast on a CPU; it is fast only where the voxels of a channel lie together.

    A single voxel has no spread to divide by. It is only scaled and shifted, and so keeps its information.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        """Normalise each channel of each image."""
        if input.shape[2:].numel() == 1:
            one = (1, -1, *(1 for _ in input.shape[2:]))
            normed = torch.addcmul(self.bias.view(one), input, self.weight.view(one))
        elif can_fuse(input):
            return fused_norm(input, self.weight, self.bias, self.eps, NEGATIVE_SLOPE)
        else:
            normed = super().forward(input.contiguous())
        return functional.leaky_relu(normed, NEGATIVE_SLOPE, inplace=True)


def is_bfloat16(precision: str) -> bool:
    """Whether convolutions are done in bfloat16.

    Parameters
    ----------
    precision : {"float32", "bfloat16", "auto"}
        "auto": where the machine has instructions for it. Without them, bfloat16 is many times slower than float32.
    """
    return precision == "bfloat16" or (precision == "auto" and _has_bfloat16())


def _has_bfloat16() -> bool:
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.cpu._is_avx512_bf16_supported())  # noqa: SLF001 - torch has no public way to ask


# The kernel uses one core. With more threads than this, torch's own norm, which uses them all, is as fast.
_FEW_THREADS = 4


def can_fuse(features: Tensor) -> bool:
    """Whether the kernel takes these features: on a CPU, in float32 or bfloat16, the channels of a voxel together."""
    return (
        features.device.type == "cpu"
        and features.dtype in (torch.float32, torch.bfloat16)
        and not torch.compiler.is_compiling()
        and torch.get_num_threads() <= _FEW_THREADS
        and features.movedim(1, -1).is_contiguous()
    )


def fused_norm(features: Tensor, weight: Tensor, bias: Tensor, eps: float, slope: float) -> Tensor:
    """Normalise each channel of each image, scale and shift it, and lower what is below 0."""
    normed: Tensor = _FusedNorm.apply(features, weight, bias, eps, slope)  # type: ignore[no-untyped-call]  # torch's own
    return normed


class _FusedNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, eps: float, slope: float) -> Tensor:
        out, mean = torch.empty_like(features), torch.empty(features.shape[:2], dtype=torch.float32)
        per_deviation = torch.empty_like(mean)
        weights, biases = _plain(weight), _plain(bias)  # kept alive until the kernel is done
        normalise(
            features.data_ptr(),
            out.data_ptr(),
            features.dtype == torch.bfloat16,
            len(features),
            features.shape[2:].numel(),
            len(weight),
            weights.data_ptr(),
            biases.data_ptr(),
            eps,
            slope,
            mean.data_ptr(),
            per_deviation.data_ptr(),
        )
        ctx.save_for_backward(features, weight, bias, mean, per_deviation)
        ctx.slope = slope
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        features, weight, bias, mean, per_deviation = ctx.saved_tensors
        if above.stride() != features.stride() or above.dtype != features.dtype:
            above = torch.empty_like(features).copy_(above)
        out = torch.empty_like(features)
        of_weight, of_bias = (torch.zeros(len(weight), dtype=torch.float32) for _ in range(2))
        weights, biases = _plain(weight), _plain(bias)  # kept alive until the kernel is done
        gradient(
            features.data_ptr(),
            above.data_ptr(),
            out.data_ptr(),
            features.dtype == torch.bfloat16,
            len(features),
            features.shape[2:].numel(),
            len(weight),
            weights.data_ptr(),
            biases.data_ptr(),
            ctx.slope,
            mean.data_ptr(),
            per_deviation.data_ptr(),
            of_weight.data_ptr(),
            of_bias.data_ptr(),
        )
        return out, of_weight.to(weight.dtype), of_bias.to(bias.dtype), None, None


def _plain(parameter: Tensor) -> Tensor:
    """As the kernel takes it."""
    return parameter.detach().float().contiguous()

"""Instance norm and leaky ReLU as one step of autograd, done by a compiled kernel on features with channels last."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lesioncount.learning.networks._norm import gradient, normalise

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

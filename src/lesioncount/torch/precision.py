"""What a device can compute with, which maps are numbers, and what ``torch.compile`` leaves out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import torch
from torch import Tensor


def working_dtype(device: torch.device) -> torch.dtype:
    """The type that peaks and counts are kept in: double precision, or single on Apple's GPUs, which have no other.

    The recursion over candidates always runs on the CPU in double precision.
    """
    return torch.float32 if device.type == "mps" else torch.float64


def is_inside(mask: Tensor) -> Tensor:
    """Where a mask is neither 0 nor NaN."""
    return (mask != 0) & ~torch.isnan(mask)


def has_only_numbers(maps: Tensor, inside: Tensor | None = None) -> Tensor:
    """Which maps of a batch are finite in every voxel that is looked at: Tensor of bool, shape (n,).

    Parameters
    ----------
    maps : Tensor, shape (n, *spatial)
    inside : Tensor of bool, shape (n, *spatial), optional
        The voxels that are looked at. Default: all.
    """
    # A sum needs no memory, and is finite only if all voxels are; it may overflow, and then each voxel is looked at.
    if bool(torch.isfinite(maps.detach().sum(dtype=torch.promote_types(maps.dtype, torch.float32)))):
        return torch.ones(len(maps), dtype=torch.bool, device=maps.device)
    finite = torch.isfinite(maps)
    if inside is not None:
        finite = finite | ~inside.to(maps.device)
    return finite.flatten(1).all(1)


P = ParamSpec("P")
R = TypeVar("R")


def outside_of_compilation(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function uncompiled, even inside a compiled model."""
    return cast("Callable[P, R]", cast("Any", torch.compiler.disable)(function))

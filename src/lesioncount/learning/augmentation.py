"""Random changes to a scan that do not change its number of lesions."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

# The values of the paper's authors: the share of scans that are turned and stretched, and how far at most.
_SHARE = 0.8
_ROTATION = math.radians(8)
_SCALE = 0.1
_SHEAR = 0.05

# Of scans that are mirrored, along each axis.
_MIRRORED = 0.5


def augmented(
    images: Tensor, mask: Tensor, rng: np.random.Generator, *, flips_only: bool = False
) -> tuple[Tensor, Tensor]:
    """Rotate up to 8°, scale by 0.9 to 1.1, shear a little, and flip, images and mask together; or flip alone.

    Parameters
    ----------
    images, mask : Tensor, shape (channels, *spatial)
        Images are interpolated between voxels, and a mask takes the nearest one. Beyond the edge, the edge goes on.
    rng : Generator
        What is drawn.
    flips_only : bool, default False
        Keep every voxel, and so every lesion, inside.
    """
    n = images.ndim - 1
    if not flips_only and rng.random() < _SHARE:
        images, mask = _moved(images, mask, _drawn_matrix(n, rng))
    axes = [axis + 1 for axis in range(n) if rng.random() < _MIRRORED]
    return images.flip(axes), mask.flip(axes)


def _drawn_matrix(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A random map of voxels about the centre: turned in every plane, sheared and scaled."""
    matrix = np.eye(n)
    for i, j in combinations(range(n), 2):
        turn, angle = np.eye(n), rng.uniform(-_ROTATION, _ROTATION)
        turn[[i, j], [i, j]] = math.cos(angle)
        turn[i, j], turn[j, i] = -math.sin(angle), math.sin(angle)
        matrix = matrix @ turn
    shear = np.eye(n)
    for i, j in permutations(range(n), 2):
        shear[i, j] = rng.uniform(-_SHEAR, _SHEAR)
    return matrix @ shear @ np.diag(rng.uniform(1 - _SCALE, 1 + _SCALE, n))


def _moved(images: Tensor, mask: Tensor, matrix: NDArray[np.float64]) -> tuple[Tensor, Tensor]:
    # Torch wants axes from the last to the first, in units of half the image.
    size = np.array(images.shape[1:], dtype=np.float64)
    in_halves = (matrix * size / size[:, None])[::-1, ::-1]
    affine = torch.zeros(1, len(size), len(size) + 1)
    affine[0, :, :-1] = torch.from_numpy(in_halves.copy())
    grid = affine_grid(affine, [1, 1, *images.shape[1:]], align_corners=False)
    modes = ((images, "bilinear"), (mask, "nearest"))
    moved, moved_mask = (
        grid_sample(one[None], grid, mode=mode, padding_mode="border", align_corners=False)[0] for one, mode in modes
    )
    return moved, moved_mask

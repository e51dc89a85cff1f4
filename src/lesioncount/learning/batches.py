"""Scans → batches, whose order and augmentation depend on seed and epoch alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, permutations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample
from torch.utils.data import DataLoader, Dataset, Sampler

from lesioncount.learning.scans import ScanSource

Batch = dict[str, Tensor]


class ScanDataset(Dataset[dict[str, Any]]):
    """Scans as tensors, augmented if wanted.

    What is drawn for a scan depends on seed, epoch and scan only. Neither the order nor the number of processes makes
    a difference, nor does it matter whether the training was interrupted.

    Parameters
    ----------
    scans : ScanSource
    augment : bool
        Whether to rotate, scale, shear and flip.
    seed : int
    keep_whole : bool, default False
        Only flip scans without a mask: a lesion that leaves the image makes their count wrong.
    """

    def __init__(self, scans: ScanSource, *, augment: bool, seed: int, keep_whole: bool = False) -> None:
        self.scans = scans
        self.seed = seed
        self.epoch = 0
        self._augment, self._keep_whole = augment, keep_whole

    def __len__(self) -> int:
        return len(self.scans)

    def __getitem__(self, index: int) -> dict[str, Any]:
        is_repeated, index = index < 0, _place(index)
        scan = self.scans[index]
        known = scan.mask is not None
        mask = scan.mask if scan.mask is not None else np.zeros(scan.images.shape[1:], dtype=np.uint8)
        images, lesions = torch.from_numpy(scan.images), torch.from_numpy(mask)[None].float()
        if self._augment:
            rng = np.random.default_rng([self.seed, self.epoch, index])
            images, lesions = augmented(images, lesions, rng, flips_only=self._keep_whole and not known)
        return {
            "images": images,
            "mask": lesions,
            "has_mask": torch.tensor(known),
            "at_least": torch.tensor(scan.at_least),
            "at_most": torch.tensor(scan.at_most),
            "is_repeated": torch.tensor(is_repeated),
        }


def _place(index: int) -> int:
    """The position of a scan; ``~place`` is the same scan once more, to make the shares of processes equal."""
    return ~index if index < 0 else index


class EpochSampler(Sampler[int]):
    """A new order each epoch, drawn from the seed; with several processes, the share of one of them.

    All shares have the same length, or processes would wait for each other for ever. Where the scans cannot be divided
    equally, the first ones are used once more. In training they are scans like any others; otherwise they are marked,
    by the index ``~place``, so that no scan is scored twice.

    Parameters
    ----------
    dataset : ScanDataset
        Its epoch is set here.
    shuffle : bool
        Whether this is for training.
    rank, n_processes : int
    """

    def __init__(self, dataset: ScanDataset, *, shuffle: bool, rank: int = 0, n_processes: int = 1) -> None:
        self._dataset, self._shuffle = dataset, shuffle
        self._rank, self._n_processes = rank, n_processes

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch; Lightning calls this before each one."""
        self._dataset.epoch = epoch

    def __len__(self) -> int:
        return math.ceil(len(self._dataset) / self._n_processes)

    def __iter__(self) -> Iterator[int]:
        n = len(self._dataset)
        order = np.arange(n)
        if self._shuffle:
            order = np.random.default_rng([self._dataset.seed, self._dataset.epoch]).permutation(n)
        padded = np.resize(order, len(self) * self._n_processes)
        if not self._shuffle:
            padded[n:] = ~padded[n:]
        return iter(padded[self._rank :: self._n_processes].tolist())


def loader(
    scans: ScanSource,
    *,
    batch_size: int,
    seed: int,
    training: bool,
    augment: bool = False,
    keep_whole: bool = False,
    workers: int = 0,
    rank: int = 0,
    n_processes: int = 1,
) -> DataLoader[dict[str, Any]]:
    """Batches of scans: shuffled and augmented for training, unchanged for validation."""
    dataset = ScanDataset(scans, augment=training and augment, seed=seed, keep_whole=keep_whole)
    sampler = EpochSampler(dataset, shuffle=training, rank=rank, n_processes=n_processes)
    return DataLoader(
        dataset,
        batch_size=batch_size,
        sampler=sampler,
        num_workers=workers,
        drop_last=training and len(sampler) > batch_size,
    )


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

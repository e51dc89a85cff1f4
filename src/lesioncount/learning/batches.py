"""Scans → batches, whose order and augmentation depend on seed and epoch alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from lesioncount.learning.augmentation import augmented
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

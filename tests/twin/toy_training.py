"""A toy network, and how it learns: from masks, from counts, or from both."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, repeat

import torch
from torch import Tensor, nn
from torch.nn import functional
from twin.toy_scans import Scans

from lesioncount.torch import CountLoss

MAX_COUNT = 4
# Of lesion voxels in the voxel-wise loss, as in appendix B of the paper.
POSITIVE_WEIGHT = 3.0
BATCH = 10


class ToyUNet(nn.Module):
    """Two levels, some 9000 parameters. Starts from probabilities near 0, as there are few lesion voxels."""

    def __init__(self, *, width: int = 8, seed: int) -> None:
        with seeded(seed):
            super().__init__()
            self.fine = _block(2, width)
            self.coarse = _block(width, 2 * width)
            self.joined = _block(3 * width, width)
            self.last = nn.Conv2d(width, 1, kernel_size=1)
            nn.init.constant_(self.last.bias, -4.0)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, 1, side, side)."""
        fine = self.fine(images)
        coarse = self.coarse(functional.max_pool2d(fine, 2))
        return self.last(self.joined(torch.cat([fine, functional.interpolate(coarse, scale_factor=2)], dim=1)))


def pre_trained(masked: Scans, *, seed: int, n_steps: int = 600) -> ToyUNet:
    """A network that has seen few masks, for long enough to gain little from seeing them again."""
    network = ToyUNet(seed=seed)
    train(network, masked=masked, n_steps=n_steps, learning_rate=3e-3, seed=seed)
    return network


def train(
    network: nn.Module,
    *,
    masked: Scans | None = None,
    counted: Scans | None = None,
    count_weight: float = 1.0,
    rescue: bool = False,
    protocol: str = "paper",
    n_steps: int = 300,
    learning_rate: float = 5e-4,
    seed: int,
) -> float:
    """Train on the masks of some scans, the counts of others, or the sum of both losses.

    Returns the share of count labels that were impossible as published, that is before any rescue.
    """
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate, weight_decay=1e-5)
    # Down to nothing at the end, so that what is measured is where a network arrives and not its last step.
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=n_steps)
    count_loss = _WatchedCountLoss(rescue=rescue, protocol=protocol)
    with seeded(seed):
        for with_masks, with_counts in islice(zip(_batches(masked), _batches(counted), strict=True), n_steps):
            optimizer.zero_grad()
            if with_masks is not None:
                voxel_loss(network(with_masks.images), with_masks.masks).backward()
            if with_counts is not None:
                (count_weight * count_loss(network(with_counts.images), with_counts.counts)).backward()
            optimizer.step()
            schedule.step()
    return count_loss.n_impossible / max(count_loss.n_labels, 1)


class _WatchedCountLoss:
    """The count loss, and how many labels were impossible so far, whether rescued or not."""

    def __init__(self, *, rescue: bool, protocol: str) -> None:
        self.loss = CountLoss(MAX_COUNT, protocol=protocol, spatial_dims=2, rescue=rescue)
        self.as_published = CountLoss(MAX_COUNT, protocol=protocol, spatial_dims=2, rescue=False)
        self.n_impossible = self.n_labels = 0

    def __call__(self, logits: Tensor, counts: Tensor) -> Tensor:
        labels = counts.clamp(max=MAX_COUNT)  # a rescue should ask for no more than the last bin needs
        self.as_published(logits.detach(), labels)
        self.n_impossible += self.as_published.n_impossible
        self.n_labels += len(labels)
        return self.loss(logits, labels)


def shift_only(network: ToyUNet) -> ToyUNet:
    """The same network, of which no more can be trained than what is added to all logits alike."""
    twin = copy.deepcopy(network).requires_grad_(requires_grad=False)
    twin.last.bias.requires_grad_(requires_grad=True)
    return twin


def voxel_loss(logits: Tensor, masks: Tensor) -> Tensor:
    """Binary cross entropy, in which a lesion voxel weighs more."""
    weight = torch.tensor(POSITIVE_WEIGHT)
    return functional.binary_cross_entropy_with_logits(logits, masks, pos_weight=weight)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Random numbers of torch from a seed, those of others untouched; one thread, so that sums have one order."""
    n_threads = torch.get_num_threads()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(n_threads)


def _batches(scans: Scans | None) -> Iterator[Scans | None]:
    """Shuffled batches without end, each turned and mirrored at random; None again and again for no scans."""
    if scans is None:
        yield from repeat(None)
    while True:
        order = torch.randperm(len(scans))
        for start in range(0, len(scans) - BATCH + 1, BATCH):
            yield _turned(scans[order[start : start + BATCH]])


def _turned(scans: Scans) -> Scans:
    quarters, mirrored = int(torch.randint(4, ())), bool(torch.randint(2, ()))
    images, masks = (torch.rot90(maps, quarters, dims=(2, 3)) for maps in (scans.images, scans.masks))
    if mirrored:
        images, masks = images.flip(3), masks.flip(3)
    return Scans(images, masks, scans.counts)


def _block(n_in: int, n_out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, kernel_size=3, padding=1),
        nn.LeakyReLU(),
        nn.Conv2d(n_out, n_out, kernel_size=3, padding=1),
        nn.LeakyReLU(),
    )

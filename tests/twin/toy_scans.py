"""Small synthetic scans: a slice before and after contrast agent, with lesions that are faint or clear, and mimics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from torch import Tensor

SIDE = 48
# Four in ten scans have no lesion, and few have many: as in trials of relapsing multiple sclerosis.
COUNT_PROBABILITIES = (0.40, 0.22, 0.14, 0.10, 0.07, 0.04, 0.03)
NOISE = 0.4
# In units of which noise is 0.4: the faintest lesions are lost in it, the clearest are plain to see.
FAINTEST, CLEAREST = 0.7, 3.0
SMALLEST_RADIUS, LARGEST_RADIUS = 1.3, 3.0
# Between centres, so that lesions, and what a network blurs around them, do not touch.
APART = 11
MARGIN = 4

_Y, _X = np.mgrid[:SIDE, :SIDE]


@dataclass(frozen=True)
class Scans:
    """Images (n, 2, side, side), masks (n, 1, side, side) of floats, and the number of lesions (n,)."""

    images: Tensor
    masks: Tensor
    counts: Tensor

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, which: Tensor | slice) -> Scans:
        return Scans(self.images[which], self.masks[which], self.counts[which])


@dataclass(frozen=True)
class Cohort:
    """Few scans with masks, many of which only the count is used, and others to score on."""

    masked: Scans
    counted: Scans
    held_out: Scans


def synthetic_cohort(*, seed: int) -> Cohort:
    """30, 300 and 500 scans; the same for the same seed."""
    return Cohort(*(synthetic_scans(n, seed=[seed, part]) for part, n in enumerate((30, 300, 500))))


def synthetic_scans(n: int, *, seed: int | list[int]) -> Scans:
    """So many scans; the same for the same seed."""
    rng = np.random.default_rng(seed)
    images, masks, counts = zip(*(_scan(rng) for _ in range(n)), strict=True)
    return Scans(
        torch.from_numpy(np.stack(images).astype(np.float32)),
        torch.from_numpy(np.stack(masks)[:, None].astype(np.float32)),
        torch.tensor(counts),
    )


def _scan(rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_], int]:
    """Lesions light up after the contrast agent only; blobs that were bright before and vessels are no lesions."""
    wanted = rng.choice(len(COUNT_PROBABILITIES), p=COUNT_PROBABILITIES)
    n_bright_before = rng.integers(0, 4)
    places = _places(rng, wanted + n_bright_before)
    n_lesions = min(wanted, len(places))
    background = _smooth(rng, sigma=8) * 0.5
    before, after = background.copy(), background.copy()
    mask = np.zeros((SIDE, SIDE), dtype=bool)
    for i, place in enumerate(places):
        profile = _blob(rng, place)
        contrast = np.exp(rng.uniform(np.log(FAINTEST), np.log(CLEAREST)))
        after += contrast * profile
        if i < n_lesions:
            mask |= profile > 0.5
        else:
            before += contrast * rng.uniform(0.6, 1.0) * profile
    for _ in range(rng.integers(0, 3)):
        after += rng.uniform(0.8, 2.0) * _vessel(rng)
    image = np.stack([before, after]) + NOISE * rng.standard_normal((2, SIDE, SIDE))
    return image, mask, n_lesions


def _places(rng: np.random.Generator, n: int) -> list[NDArray[np.float64]]:
    """Up to n places, far from each other: those that find room."""
    places: list[NDArray[np.float64]] = []
    for place in rng.uniform(MARGIN, SIDE - MARGIN, (200, 2)):
        if len(places) < n and all(np.hypot(*(place - other)) > APART for other in places):
            places.append(place)
    return places


def _blob(rng: np.random.Generator, place: NDArray[np.float64]) -> NDArray[np.float64]:
    """An ellipse with a soft edge: 1 at its heart, 0.5 at its border."""
    radius = rng.uniform(SMALLEST_RADIUS, LARGEST_RADIUS)
    stretch, angle = rng.uniform(1.0, 1.4), rng.uniform(0, np.pi)
    y, x = _Y - place[0], _X - place[1]
    along, across = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    distance = np.hypot(along / stretch, across * stretch) / radius
    return np.exp(-np.log(2) * distance**4)


def _vessel(rng: np.random.Generator) -> NDArray[np.float64]:
    """A thin curved line from one side to the other."""
    middle, slope, bend = rng.uniform(8, SIDE - 8), rng.uniform(-0.4, 0.4), rng.uniform(-3, 3)
    across, along = (_X, _Y) if rng.random() < 0.5 else (_Y, _X)
    line = middle + slope * (along - SIDE / 2) + bend * np.sin(along / 7)
    return np.exp(-0.5 * ((across - line) / 0.9) ** 2)


def _smooth(rng: np.random.Generator, *, sigma: float) -> NDArray[np.float64]:
    field = gaussian_filter(rng.standard_normal((SIDE, SIDE)), sigma, mode="wrap")
    return field / field.std()

"""Are these probabilities, or a picture? The spread of the values of a map, from a sample of its voxels.

Two rules, both about background. They were set on some 800 maps of four networks and pictures of leaves, nuclei and MR,
with the limits kept nearer to the pictures than to the maps. Weighted losses, label smoothing, a floor of 0.1 and noise
in the logits leave all these maps on their side; logits divided by 2, which make a tenth of all voxels undecided, put a
tenth of the folders of five on the other side. Heat maps of smooth bumps are there, too.

A single dark picture cannot be told from the map of a network that is unsure: both are mostly dark, with some grey. So
it is with inverted pictures of leaves, of which a quarter are stopped. A limit of a quarter of all voxels between 0.3
and 0.9, written down before it was tried, stops 97 % of them, and also 0.5 % of the maps of nuclei (28 % with a floor
of 0.1, 25 % with logits divided by 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lesioncount.files import MapSource

# Of 0 to 1; finer ones change no verdict.
N_BINS = 40

# What all shares of a map add up to.
WHOLE = 100_000

# Voxels that are looked at: shares are then right within half a percent.
_SAMPLE = 1 << 16

# A picture of 64 × 64 is the smallest that is judged: a crop around a lesion may have no background.
_FEWEST_VOXELS = 1 << 12

# One map: the share below 0.3 is at least 0.49 in maps, at most 0.37 in pictures of leaves (0.47 of their blue), and at
# most 0.08 in inverted pictures. Where it lies between the limits, most voxels of pictures are neither 0 nor 1.
_HARDLY_ANY, _LITTLE, _UNDECIDED = 0.15, 0.40, 0.40

# A folder: values that are neither background nor foreground, and how many reach nine tenths of the highest for each of
# these: at least 0.07 in maps, at most 0.05 in dark pictures.
_BETWEEN, _BRIGHT = 0.06, 0.05

# The share above what is taken for the highest value: a few hot pixels are not.
_HOT = 0.0005

# Maps from which on a folder is judged.
FEWEST_OF_FOLDER = 5


class ValueSample:
    """Counts the values of a map while it is read."""

    def __init__(self, source: MapSource) -> None:
        self._source, self._step = source, _step(source.shape)
        self._counts = np.zeros(N_BINS, np.int64)

    def watching(self) -> Iterator[NDArray[np.generic]]:
        """The pieces of the map, looked at as they pass."""
        for piece in self._source.pieces():
            values = self._source.to_probabilities(piece.ravel(order="K")[:: self._step])
            self._counts += _counts_of(values)
            yield piece

    @property
    def shares(self) -> tuple[int, ...]:
        """Of each bin, in `WHOLE` parts; none if too few voxels were seen."""
        return _in_parts(self._counts)


def shares_of(probabilities: NDArray[np.floating]) -> tuple[int, ...]:
    """The same of a map in memory."""
    return _in_parts(_counts_of(probabilities.ravel(order="K")[:: _step(probabilities.shape)]))


def _step(shape: tuple[int, ...]) -> int:
    """Every how many-th voxel is looked at; an odd number, to come to all columns of a plane."""
    return max(1, math.prod(shape) // _SAMPLE) | 1


def _counts_of(values: NDArray[np.floating]) -> NDArray[np.int64]:
    """How many values are in each bin; what lies outside of a mask may be no probability, and is not counted."""
    with np.errstate(invalid="ignore"):
        inside = values[(values >= 0) & (values <= 1)]
    return np.bincount(np.minimum((inside * N_BINS).astype(np.int64), N_BINS - 1), minlength=N_BINS)


def _in_parts(counts: NDArray[np.int64]) -> tuple[int, ...]:
    total = int(counts.sum())
    return tuple((counts * WHOLE // total).tolist()) if total >= _FEWEST_VOXELS else ()


def background_of(shares: Sequence[int]) -> float:
    """The share of a map that lies below 0.3."""
    return sum(shares[: N_BINS * 3 // 10]) / WHOLE


def is_picture(shares: Sequence[int]) -> bool:
    """Whether a map has too little background to be one of probabilities."""
    background, undecided = background_of(shares), sum(shares[N_BINS // 10 : N_BINS * 9 // 10]) / WHOLE
    return background < _HARDLY_ANY or (background < _LITTLE and undecided > _UNDECIDED)


def are_pictures(shares: Sequence[Sequence[int]]) -> bool:
    """Whether the maps of a folder are grey between background and foreground, and next to nothing is bright."""
    if len(shares) < FEWEST_OF_FOLDER:
        return False
    pooled = np.mean(np.array(shares, np.float64), axis=0) / WHOLE
    top = (int(np.searchsorted(np.cumsum(pooled), pooled.sum() - _HOT)) + 1) / N_BINS
    width = N_BINS // 10
    densest = int(np.convolve(pooled, np.ones(width), "valid").argmax())
    cut = int(0.9 * top * N_BINS + 1e-9)
    grey = pooled.copy()
    grey[:width] = grey[densest : densest + width] = grey[cut:] = 0
    return bool(grey.sum() > _BETWEEN and pooled[cut:].sum() < _BRIGHT * grey.sum())

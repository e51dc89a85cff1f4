"""One map → slabs, swept one after the other or side by side → the sum of the slabs."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount._kernels.slab import REGION_FIELDS, RUN_FIELDS, Slab
from lesioncount._kernels.sweep import sweep
from lesioncount.diagnosis import explain_bad_voxels
from lesioncount.errors import BinaryMapWarning, CutOffMapWarning
from lesioncount.protocol import CountingProtocol
from lesioncount.voxels import VoxelEncoding

# A sweep keeps 16 bytes per run until its slab is done, so that a large map is swept in slabs of this many voxels:
# enough to make the seams negligible, and few enough to bound the memory when every second voxel is a run.
SLAB_VOXELS = 1 << 23

REGION: np.dtype[Any] = np.dtype(REGION_FIELDS)
RUN: np.dtype[Any] = np.dtype(RUN_FIELDS)


@dataclass(frozen=True)
class SweepPlan:
    """How the axes of a map become the planes, rows and columns of a sweep.

    Parameters
    ----------
    axes : tuple of int
        The axes of the map in the order of the sweep: planes first, columns last. Columns should be the axis along
        which neighbours lie side by side in memory, so that a Fortran-ordered map is swept through its transpose.
    shape : tuple of int
        The shape of the map. A first axis whose length is not yet known may have any number here, another one must
        have a number that is large enough: positions are counted in C order of this shape.
    """

    axes: tuple[int, ...]
    shape: tuple[int, ...]
    encoding: VoxelEncoding
    protocol: CountingProtocol

    @staticmethod
    def axes_by_stride(voxels: NDArray[Any]) -> tuple[int, ...]:
        """The axes of an array, those of the widest steps in memory first."""
        # An axis of length 1 may have any stride; it must not displace the one that is contiguous.
        widest = voxels.size * voxels.itemsize
        steps = [abs(step) if n > 1 else widest for step, n in zip(voxels.strides, voxels.shape, strict=True)]
        return tuple(sorted(range(voxels.ndim), key=lambda axis: (-steps[axis], axis)))

    def sweep(self, voxels: NDArray[Any], mask: NDArray[np.bool_] | None, first_plane: int) -> Slab:
        """The slab of some planes of the map, whose axes are still in the order of the map."""
        encoding = self.encoding
        if encoding.conversion is not None or not voxels.flags.aligned:
            voxels, encoding = encoding.convert(voxels), encoding.converted()
        slab = sweep(
            self._in_order(voxels),
            None if mask is None else self._in_order(mask),
            keys=encoding.kernel_keys(self.protocol.threshold),
            is_signed=encoding.logits,
            neighbours=self.protocol.neighbours(len(self.shape)),
            weights=self._weights(),
            first_plane=first_plane,
        )
        if slab.has_bad:
            start = tuple(first_plane if axis == self.axes[0] else 0 for axis in range(len(self.shape)))
            explain_bad_voxels(voxels, mask, encoding, self.encoding, start)
        return slab

    def _in_order(self, array: NDArray[Any]) -> NDArray[Any]:
        ordered = array.transpose(self.axes)
        # A 2-D map is a pile of planes of one row each: every row of pixels can then be a slab of its own.
        return ordered if ordered.ndim == 3 else ordered[:, None, :]

    def _weights(self) -> tuple[int, int, int]:
        """What a step along planes, rows and columns adds to the position in C order."""
        c_order = [1] * len(self.shape)
        for axis in range(len(self.shape) - 2, -1, -1):
            c_order[axis] = c_order[axis + 1] * self.shape[axis + 1]
        weights = [c_order[axis] for axis in self.axes]
        return (weights[0], weights[1], weights[2]) if len(weights) == 3 else (weights[0], 0, weights[1])


def sweep_map(plan: SweepPlan, voxels: NDArray[Any], mask: NDArray[np.bool_] | None, threads: int) -> Slab:
    """The slab of a whole map, whose planes are dealt out to ``threads`` threads."""
    pieces = list(_pieces(plan, voxels, threads))
    if len(pieces) == 1:
        return plan.sweep(voxels, mask, 0)

    def sweep_piece(piece: slice) -> Slab:
        cut = tuple(piece if axis == plan.axes[0] else slice(None) for axis in range(voxels.ndim))
        return plan.sweep(voxels[cut], None if mask is None else mask[cut], piece.start)

    if threads == 1:
        slabs: Iterator[Slab] = map(sweep_piece, pieces)
        return _fold(slabs)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        return _fold(pool.map(sweep_piece, pieces))


def warn_of_hard_map(slab: Slab, n_regions: int) -> None:
    """Warn when the map holds too few shades for the distribution to mean what it seems to."""
    if n_regions == 0 or slab.has_soft:
        return
    if slab.has_gray:
        warnings.warn(
            CutOffMapWarning(
                "This map has no values between 0 and 0.5, so that weak candidates were removed before and the "
                "count is likely too certain. Count the unthresholded probabilities if you can."
            ),
            stacklevel=4,
        )
    else:
        warnings.warn(
            BinaryMapWarning(
                "This map is binary (only 0 and 1): every candidate exists with probability 1 and the distribution is "
                "a single point. Count the probabilities that the mask was made from if you can."
            ),
            stacklevel=4,
        )


def _pieces(plan: SweepPlan, voxels: NDArray[Any], threads: int) -> Iterator[slice]:
    n_planes = voxels.shape[plan.axes[0]]
    n_pieces = min(n_planes, max(threads, -(-voxels.size // SLAB_VOXELS)))
    edges = [n_planes * i // n_pieces for i in range(n_pieces + 1)]
    return (slice(begin, end) for begin, end in itertools.pairwise(edges))


def _fold(slabs: Iterator[Slab]) -> Slab:
    total = next(slabs)
    for slab in slabs:
        total += slab
    return total

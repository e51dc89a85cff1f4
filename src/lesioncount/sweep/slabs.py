"""One map → slabs, swept one after the other or side by side → the sum of the slabs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from lesioncount._kernels.slab import REGION_FIELDS, RUN_FIELDS, Slab
from lesioncount._kernels.sweep import sweep
from lesioncount.errors import ProtocolError
from lesioncount.protocol import CountingProtocol
from lesioncount.sweep.diagnosis import explain_bad_voxels
from lesioncount.sweep.voxels import VoxelEncoding

# A sweep keeps 16 bytes per run until its slab is done, so that a large map is swept in slabs of this many voxels:
# enough to make the seams negligible, and few enough to bound the memory when every second voxel is a run.
SLAB_VOXELS = 1 << 23

REGION: np.dtype[Any] = np.dtype(REGION_FIELDS)
RUN: np.dtype[Any] = np.dtype(RUN_FIELDS)


class BadVoxels(Exception):  # noqa: N818 - a signal between two functions of ours, never seen by users
    """A sweep met voxels that are not probabilities. Which ones, and how many, is for the whole map to tell."""


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

    def __post_init__(self) -> None:
        """Refuse a protocol that is not for maps."""
        if self.protocol.has_detections:
            raise ProtocolError(
                'A map is swept for regions or peaks; the protocol "detections" is for tables of scored boxes or '
                "points (lc.count_candidates)."
            )

    @staticmethod
    def axes_by_stride(voxels: NDArray[Any]) -> tuple[int, ...]:
        """The axes of an array, those of the widest steps in memory first."""
        ordered = sorted(range(voxels.ndim), key=lambda axis: (-abs(voxels.strides[axis]), axis))
        # An axis of length 1 may have any stride; as rows of a plane it does no harm: others keep their places.
        flat = [axis for axis in ordered if voxels.shape[axis] == 1]
        ordered = [axis for axis in ordered if axis not in flat]
        return tuple(ordered[:-1] + flat + ordered[-1:]) if len(ordered) > 1 else tuple(flat[:1] + ordered + flat[1:])

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
            weights=self.weights,
            first_plane=first_plane,
            keep_keys=self.protocol.has_peaks,
        )
        if slab.has_bad:
            raise BadVoxels
        return slab

    def explain(self, voxels: NDArray[Any], mask: NDArray[np.bool_] | None, first_plane: int) -> NoReturn:
        """Raise the error that says what is wrong with the voxels of a map, or of some of its planes."""
        start = tuple(first_plane if axis == self.axes[0] else 0 for axis in range(len(self.shape)))
        explain_bad_voxels(voxels, mask, self.encoding, start)

    def _in_order(self, array: NDArray[Any]) -> NDArray[Any]:
        ordered = array.transpose(self.axes)
        # A 2-D map is a pile of planes of one row each: every row of pixels can then be a slab of its own.
        return ordered if ordered.ndim == 3 else ordered[:, None, :]

    @property
    def weights(self) -> tuple[int, int, int]:
        """What a step along planes, rows and columns adds to the position in C order."""
        c_order = [1] * len(self.shape)
        for axis in range(len(self.shape) - 2, -1, -1):
            c_order[axis] = c_order[axis + 1] * self.shape[axis + 1]
        weights = [c_order[axis] for axis in self.axes]
        return (weights[0], weights[1], weights[2]) if len(weights) == 3 else (weights[0], 0, weights[1])


def sweep_map(
    plan: SweepPlan,
    voxels: NDArray[Any],
    mask: NDArray[np.bool_] | None,
    threads: int,
    add: Callable[[Slab], None],
) -> None:
    """Sweep a map, whose planes are dealt out to ``threads`` threads, and add up its slabs from the first plane on."""
    pieces = list(_pieces(plan, voxels, threads))

    def sweep_piece(piece: slice) -> Slab:
        cut = tuple(piece if axis == plan.axes[0] else slice(None) for axis in range(voxels.ndim))
        return plan.sweep(voxels[cut], None if mask is None else mask[cut], piece.start)

    try:
        if threads == 1 or len(pieces) == 1:
            for piece in pieces:
                add(sweep_piece(piece))
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            for slab in pool.map(sweep_piece, pieces):
                add(slab)
    except BadVoxels:
        plan.explain(voxels, mask, 0)


def _pieces(plan: SweepPlan, voxels: NDArray[Any], threads: int) -> Iterator[slice]:
    n_planes = voxels.shape[plan.axes[0]]
    n_pieces = min(n_planes, max(threads, -(-voxels.size // SLAB_VOXELS)))
    edges = [n_planes * i // n_pieces for i in range(n_pieces + 1)]
    return (slice(begin, end) for begin, end in itertools.pairwise(edges))

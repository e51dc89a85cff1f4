"""The usual way to count changes: threshold both maps, subtract one from the other, and count what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lesioncount.candidates import Candidates, find_candidates
from lesioncount.changes.counted_map import CountedMap
from lesioncount.protocol import CountingProtocol
from lesioncount.regions.nearby import axes_in_memory
from lesioncount.trust.candidate_table import Counted


def components_changed(
    before: CountedMap, after: CountedMap, thresholds: Sequence[float], protocol: CountingProtocol
) -> Mapping[Counted, tuple[int, ...]]:
    """Components of what is above a threshold after and not before, before and not after, and at both times.

    Parameters
    ----------
    before, after : CountedMap
        Of probabilities, as floating-point numbers.
    thresholds : sequence of float
        The lowest first.
    protocol : CountingProtocol
        What is connected, and the smallest size.
    """
    found = before.count.candidates, after.count.candidates
    box = _box(found, protocol, thresholds)
    then, now = (_levels(one, box, thresholds) for one in (before, after))
    always = np.minimum(then, now)
    components, voxel = protocol.components_above(protocol.threshold), found[1].voxel_size
    edges = None if voxel is None else voxel.edges_mm

    def count(mask: NDArray[np.bool_]) -> int:
        return len(find_candidates(mask, protocol=components, spacing_mm=edges, warn=False))

    return {
        "new": tuple(count((now > at) ^ (always > at)) for at in range(len(thresholds))),
        "gone": tuple(count((then > at) ^ (always > at)) for at in range(len(thresholds))),
        "persisting": tuple(count(always > at) for at in range(len(thresholds))),
    }


def _box(found: Sequence[Candidates], protocol: CountingProtocol, thresholds: Sequence[float]) -> tuple[slice, ...]:
    """What holds all voxels above the thresholds: the boxes of all candidates; everything, if some were dropped."""
    n = len(found[0].shape)
    boxes = np.concatenate([one.bbox for one in found])
    if len(boxes) == 0 or min(thresholds) < protocol.threshold or any(one.n_dropped for one in found):
        return (slice(None),) * n
    return tuple(slice(int(boxes[:, axis].min()), int(boxes[:, n + axis].max())) for axis in range(n))


def _levels(counted: CountedMap, box: tuple[slice, ...], thresholds: Sequence[float]) -> NDArray[np.uint8]:
    """How many thresholds each voxel is above: bytes are compared much faster than numbers, and few are not 0."""
    values: NDArray[np.floating] = counted.voxels[box]
    if counted.inside is not None:
        values = np.where(counted.inside[box], values, 0.0)
    axes = axes_in_memory(values)
    in_memory = values.transpose(axes)
    above = in_memory > thresholds[0]
    levels = np.zeros(above.shape, dtype=np.uint8)
    # Thresholds in the precision of the map, as in a comparison with it.
    levels[above] = np.searchsorted(np.array(thresholds, dtype=values.dtype), in_memory[above])
    return levels.transpose(np.argsort(axes))

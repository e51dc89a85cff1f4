"""The usual way to count changes: threshold both maps, subtract one from the other, and count what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lesioncount.candidates import Candidates, find_candidates
from lesioncount.counted_map import CountedMap
from lesioncount.protocol import CountingProtocol
from lesioncount.trust.heights import Counted


def components_changed(
    before: CountedMap, after: CountedMap, thresholds: Sequence[float], protocol: CountingProtocol
) -> Mapping[Counted, tuple[int, ...]]:
    """Components of what is above a threshold after and not before, before and not after, and at both times."""
    found = before.count.candidates, after.count.candidates
    box = _box(found, protocol, thresholds)
    then, now = (_part(one, box) for one in (before, after))
    spacing = found[1].spacing_mm
    components = protocol.components_above(protocol.threshold)

    def count(mask: NDArray[np.bool_]) -> int:
        return len(find_candidates(mask, protocol=components, spacing_mm=spacing, warn=False)) if mask.any() else 0

    rows = [(now > at, then > at) for at in thresholds]
    return {
        "new": tuple(count(later & ~earlier) for later, earlier in rows),
        "gone": tuple(count(earlier & ~later) for later, earlier in rows),
        "persisting": tuple(count(later & earlier) for later, earlier in rows),
    }


def _box(found: Sequence[Candidates], protocol: CountingProtocol, thresholds: Sequence[float]) -> tuple[slice, ...]:
    """What holds all voxels above the thresholds: the boxes of all candidates; everything, if some were dropped."""
    n = len(found[0].shape)
    boxes = np.concatenate([one.bbox for one in found])
    if len(boxes) == 0 or min(thresholds) < protocol.threshold or any(one.n_dropped for one in found):
        return (slice(None),) * n
    return tuple(slice(int(boxes[:, axis].min()), int(boxes[:, n + axis].max())) for axis in range(n))


def _part(counted: CountedMap, box: tuple[slice, ...]) -> NDArray[np.floating]:
    values: NDArray[np.floating] = counted.voxels[box]
    return values if counted.inside is None else np.where(counted.inside[box], values, 0.0)

"""Slabs → the regions of a map, or the regions of their peaks.

To find peaks, slabs keep the voxels above the threshold: 8 bytes for each, and 16 for each run of them. A region that
does not reach the last plane is complete. When many voxels have come together, complete regions are split into their
peaks and their voxels forgotten. So memory follows the number of peaks, and the voxels of the regions that are still
open, to which 2^18 voxels or as many again may have come. The tree of a region is made of all its voxels at once: peaks
and saddles do not depend on how the map was cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount._kernels.cut import SADDLE_FIELDS, cut_at_saddles
from lesioncount._kernels.merge_tree import PEAK_FIELDS, MergeTree
from lesioncount._kernels.slab import Slab
from lesioncount._kernels.small_peaks import join_small
from lesioncount.sweep.sizes import SmallestSize
from lesioncount.sweep.slabs import REGION, RUN, SweepPlan

PEAK: np.dtype[Any] = np.dtype(PEAK_FIELDS)
SADDLE: np.dtype[Any] = np.dtype(SADDLE_FIELDS)

# The columns of saddles that hold numbers of rows.
_ROWS = ("parent", "into", "side")

# So many more voxels than are open come together before complete regions are split: ten megabytes, more or less.
_ENOUGH_VOXELS = 1 << 18


@dataclass(frozen=True, eq=False)
class Found:
    """What was found in a map.

    Attributes
    ----------
    table : array of REGION
        A row for each region, or for the region of each peak.
    saddles : array of SADDLE, or None
        Of each row; None where no region was split.
    runs : array of RUN, or None
        Their voxels, with the row that they belong to; None if they were not kept.
    has_soft, has_gray : bool
        Whether the map has values between 0 and 0.5, and between 0 and 1.
    is_in_order : bool
        Whether rows are in the order of the sweep.
    """

    table: NDArray[Any]
    saddles: NDArray[Any] | None
    runs: NDArray[Any] | None
    has_soft: bool = False
    has_gray: bool = False
    is_in_order: bool = True


class SlabSum:
    """The sum of the slabs of a map, from the first plane on.

    Parameters
    ----------
    plan : SweepPlan
    keep_runs : bool
        Whether to keep what is needed to paint a label map.
    """

    def __init__(self, plan: SweepPlan, *, keep_runs: bool) -> None:
        self._plan = plan
        self._keep_runs = keep_runs
        self._slab: Slab | None = None
        self._complete: list[Found] = []
        self._n_open = 0

    @property
    def n_planes(self) -> int:
        """How many planes have come together."""
        return 0 if self._slab is None else self._slab.n_planes

    def add(self, slab: Slab) -> None:
        """Add the slab of the next planes."""
        if self._slab is None:
            self._slab = slab
        else:
            self._split_complete(self._slab)
            self._slab += slab
        if not self._keep_runs and not self._plan.protocol.has_peaks:
            self._slab.drop_inner_runs()

    def copy(self) -> SlabSum:
        """An independent sum with the same content."""
        twin = SlabSum(self._plan, keep_runs=self._keep_runs)
        twin._slab = None if self._slab is None else self._slab.copy()
        twin._complete = list(self._complete)
        return twin

    def finish(self) -> Found:
        """What was found in all planes; the sum is empty after."""
        slab, self._slab = self._slab, None
        if slab is None:
            raise ValueError("a sum of no slabs")
        has_soft, has_gray = slab.has_soft, slab.has_gray
        last = self._found(slab) if self._plan.protocol.has_peaks else _regions_of(slab)
        total = joined([*self._complete, last]) if self._complete else last
        return replace(total, runs=total.runs if self._keep_runs else None, has_soft=has_soft, has_gray=has_gray)

    def _split_complete(self, slab: Slab) -> None:
        if slab.n_keys > 2 * self._n_open + _ENOUGH_VOXELS:
            self._complete.append(self._found(slab.take_complete()))
            self._n_open = slab.n_keys

    def _found(self, slab: Slab) -> Found:
        found = split_into_peaks(slab, self._plan)
        return found if self._keep_runs else replace(found, runs=None)


def split_into_peaks(slab: Slab, plan: SweepPlan) -> Found:
    """The regions of all peaks of a slab that keeps its voxels; the slab is used up."""
    tree = MergeTree(slab, plan.weights)
    peaks = np.frombuffer(tree.peaks, PEAK)
    if len(peaks) == 0:
        return _regions_of(slab)
    regions, saddles, runs = cut_at_saddles(tree, _is_ripple(peaks, plan))
    return Found(np.frombuffer(regions, REGION), np.frombuffer(saddles, SADDLE), np.frombuffer(runs, RUN))


def _regions_of(slab: Slab) -> Found:
    regions, runs = slab.finish()
    return Found(np.frombuffer(regions, REGION), None, np.frombuffer(runs, RUN))


def _is_ripple(peaks: NDArray[Any], plan: SweepPlan) -> NDArray[np.uint8]:
    """Peaks that do not stand out: on a plateau, or by less than the smallest persistence."""
    is_ripple: NDArray[np.bool_] = peaks["saddle_key"] == peaks["key"]
    if plan.protocol.min_persistence > 0:
        probability = plan.encoding.converted().probability
        persistence = probability(peaks["key"]) - probability(peaks["saddle_key"])
        is_ripple |= (peaks["saddle_at"] >= 0) & (persistence < plan.protocol.min_persistence)
    return is_ripple.astype(np.uint8)


def joined(parts: Sequence[Found]) -> Found:
    """What was found in parts of a map that share no region."""
    lengths = [len(part.table) for part in parts]
    before = np.cumsum([0, *lengths[:-1]], dtype=np.int32)
    saddles = runs = None
    if any(part.saddles is not None for part in parts):
        saddles = np.concatenate([_saddles_of(part) for part in parts])
        for name in _ROWS:
            saddles[name] += np.where(saddles[name] < 0, 0, np.repeat(before, lengths))
    of_parts = [part.runs for part in parts if part.runs is not None]
    if len(of_parts) == len(parts):
        runs = np.concatenate(of_parts)
        runs["region"] += np.repeat(before, [len(of_part) for of_part in of_parts])
    return Found(
        np.concatenate([part.table for part in parts]),
        saddles,
        runs,
        has_soft=any(part.has_soft for part in parts),
        has_gray=any(part.has_gray for part in parts),
        is_in_order=False,
    )


def _saddles_of(part: Found) -> NDArray[Any]:
    if part.saddles is not None:
        return part.saddles
    saddles = np.zeros(len(part.table), SADDLE)
    for name in ("at", *_ROWS, "died"):
        saddles[name] = -1
    return saddles


def join_small_peaks(found: Found, size: SmallestSize) -> Found:
    """Join the regions of peaks that are too small with their neighbours, as far as they have some."""
    if found.saddles is None or not size or len(found.table) == 0:
        return found
    table = found.table.copy()
    row_of = np.empty(len(table), np.int32)
    join_small(
        table.view(np.uint8),
        np.ascontiguousarray(found.saddles["into"]),
        np.ascontiguousarray(found.saddles["side"]),
        _in_turn(found.saddles["died"]),
        size.n_voxels(int(table["n_voxels"].sum())),
        size.length_mm,
        size.swept_spacing_mm,
        row_of,
    )
    kept = np.flatnonzero(row_of == np.arange(len(table)))
    number = np.empty(len(table), np.int32)
    number[kept] = np.arange(len(kept))
    runs = None if found.runs is None else found.runs.copy()
    if runs is not None:
        runs["region"] = number[row_of[runs["region"]]]
    return replace(found, table=table[kept], saddles=found.saddles[kept], runs=runs)


def _in_turn(died: NDArray[np.int32]) -> NDArray[np.int32]:
    """Rows in the order in which they died, those last that did not."""
    return np.argsort(died.astype(np.uint32), kind="stable").astype(np.int32)  # -1 becomes the largest

"""Step 1: probability map → candidates, the connected regions above the threshold, or the peaks in them."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lesioncount.checks import checked_map, checked_mask, checked_spacing, checked_threads, defined
from lesioncount.errors import (
    BinaryMapWarning,
    CutOffMapWarning,
    MapWarning,
    RunsNotKeptError,
    ShapeError,
    VoxelTypeError,
)
from lesioncount.images import image_of
from lesioncount.optional import optional
from lesioncount.protocol import CountingProtocol, ProtocolFields
from lesioncount.sweep.candidate import Candidate
from lesioncount.sweep.peaks import Found, SlabSum, join_small_peaks
from lesioncount.sweep.sizes import SmallestSize, VoxelSize, equivalent_diameter
from lesioncount.sweep.slabs import SweepPlan, sweep_map
from lesioncount.sweep.voxel_runs import VoxelRuns
from lesioncount.sweep.voxels import encoding_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Candidates:
    """The candidates of one map, a row each: ``candidates[i]`` is one of them, and iteration goes through all.

    Rows are in the order in which a reader of the map meets them: by the C-order index of their first voxel, as
    ``scipy.ndimage.label`` numbers them. All columns are read-only arrays of ``len(candidates)`` rows. Made by
    `find_candidates`.

    Attributes
    ----------
    shape : tuple of int
        Shape of the map.
    voxel_size : VoxelSize, or None
        None when unknown.
    protocol : CountingProtocol
        What was counted as one candidate.
    n_dropped : int
        How many more candidates there were, all below the smallest size of the protocol.
    warning : MapWarning, or None
        What to think of before using a count of this map: that it is binary, or cut off.
    """

    shape: tuple[int, ...]
    voxel_size: VoxelSize | None
    protocol: CountingProtocol
    n_dropped: int
    warning: MapWarning | None
    _table: NDArray[Any]
    _saddles: NDArray[Any] | None
    _plan: SweepPlan
    _runs: VoxelRuns | None

    def __len__(self) -> int:
        return len(self._table)

    @property
    def spacing_mm(self) -> tuple[float, ...] | None:
        """Voxel size along each axis, None when unknown. A 2-D map may have a third number, the slice thickness."""
        return None if self.voxel_size is None else self.voxel_size.spacing_mm

    @cached_property
    def n_voxels(self) -> NDArray[np.int64]:
        """Number of voxels."""
        return _read_only(self._table["n_voxels"].copy())

    @cached_property
    def peak_probability(self) -> NDArray[np.float64]:
        """The highest probability of a voxel."""
        return _read_only(self._plan.encoding.converted().probability(self._table["peak_key"]))

    @cached_property
    def peak_index(self) -> NDArray[np.int64]:
        """Index of the voxel of the highest probability, the first in C order if there are several: (n, ndim)."""
        return self._unravel(self._table["peak_at"])

    @cached_property
    def peak_position(self) -> NDArray[np.int64]:
        """Position of that voxel in the flattened map (C order)."""
        return _read_only(np.ravel_multi_index(tuple(self.peak_index.T), self.shape).astype(np.int64))

    @cached_property
    def saddle_probability(self) -> NDArray[np.float64]:
        """The highest probability at which a peak joins a higher one; 0 where it does not above the threshold."""
        if self._saddles is None:
            return _read_only(np.zeros(len(self)))
        probability = self._plan.encoding.converted().probability(self._saddles["key"])
        return _read_only(np.where(self._saddles["at"] < 0, 0.0, probability))

    @cached_property
    def saddle_index(self) -> NDArray[np.int64]:
        """Index of the voxel at which a peak joins a higher one; -1 where it does not: (n, ndim)."""
        if self._saddles is None:
            return _read_only(np.full((len(self), len(self.shape)), -1))
        return _read_only(np.where(self._saddles["at"][:, None] < 0, -1, self._unravel(self._saddles["at"])))

    @cached_property
    def saddle_position(self) -> NDArray[np.int64]:
        """Position of that voxel in the flattened map (C order); -1 where there is none."""
        has_saddle = self.saddle_index[:, 0] >= 0
        position = np.ravel_multi_index(tuple(np.maximum(self.saddle_index, 0).T), self.shape)
        return _read_only(np.where(has_saddle, position, -1).astype(np.int64))

    @cached_property
    def bbox(self) -> NDArray[np.int64]:
        """Bounding box as scikit-image has it, first index along each axis, then last index plus one: (n, 2 ndim)."""
        low, high = self._in_map_order(self._table["low"]), self._in_map_order(self._table["high"])
        return _read_only(np.concatenate([low, high + 1], axis=1).astype(np.int64))

    @cached_property
    def centroid(self) -> NDArray[np.float64]:
        """Mean index of the voxels, unweighted: (n, ndim)."""
        return _read_only(self._in_map_order(self._table["total"]) / self._table["n_voxels"][:, None])

    @cached_property
    def volume_mm3(self) -> NDArray[np.float64]:
        """Volume; NaN when the voxel size is unknown. A 2-D map without slice thickness is taken as 1 mm thick."""
        voxel_mm3 = math.nan if self.voxel_size is None else self.voxel_size.volume_mm3
        return _read_only(self._table["n_voxels"] * voxel_mm3)

    @cached_property
    def equivalent_diameter_mm(self) -> NDArray[np.float64]:
        """Diameter of the ball (in 2-D the disc) of the same volume; NaN when the voxel size is unknown."""
        return _read_only(equivalent_diameter(self.volume_mm3, self.spacing_mm, len(self.shape)))

    def label_map(self, dtype: DTypeLike = np.int32) -> NDArray[Any]:
        """A new array of the map's shape: 0 outside, i + 1 in the voxels of row i."""
        if np.dtype(dtype).kind not in "iu" or np.iinfo(dtype).max < len(self):
            raise VoxelTypeError(
                f"Labels up to {len(self)} do not fit into {np.dtype(dtype)}. Take an integer that is wider."
            )
        return self._painted(np.arange(1, len(self) + 1, dtype=np.int32)).astype(dtype, copy=False)

    def label_blocks(
        self, chunks: tuple[int, ...], /, *, shape: tuple[int, ...] | None = None
    ) -> Iterator[tuple[tuple[slice, ...], NDArray[np.int32]]]:
        """The label map chunk by chunk, where there are labels: their places, and their labels.

        Parameters
        ----------
        chunks : tuple of int
            How long a chunk is along each axis of the map.
        shape : tuple of int, optional
            Of a map in fewer, larger voxels: each has the label of the voxel in its middle. Default: that of the map.
        """
        runs = self._kept_runs("The label map cannot be painted")
        coarser = self.shape if shape is None else tuple(shape)
        if len(coarser) != len(self.shape) or not all(1 <= m <= n for m, n in zip(coarser, self.shape, strict=True)):
            raise ShapeError(f"Expected a shape of fewer voxels than {self.shape} along each axis, but got {coarser}.")
        if coarser != self.shape:
            runs = runs.at_coarser(self._plan, self.shape, coarser)
        return runs.blocks(self._plan, coarser, np.arange(1, len(self) + 1, dtype=np.int32), chunks)

    def existence_map(self, existence: ArrayLike | None = None, /) -> NDArray[np.float32]:
        """A new array of the map's shape: 0 outside, in the voxels of each candidate its probability to be a lesion.

        Parameters
        ----------
        existence : array_like, optional
            One probability per row, such as calibrated ones. Default: what the map says, the peak less its saddle.
        """
        values = self.peak_probability - self.saddle_probability if existence is None else np.asarray(existence)
        if values.shape != (len(self),):
            raise ShapeError(
                f"Expected one probability for each of the {len(self)} candidates, but got the shape {values.shape}."
            )
        # Painted as labels are, as the same bits: no look-up in each voxel.
        painted: NDArray[np.float32] = self._painted(values.astype(np.float32).view(np.int32)).view(np.float32)
        return painted

    def voxels(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """All voxels of all candidates, row after row: the row of each, (n,), and its index in the map, (n, ndim)."""
        return self._kept_runs("The voxels cannot be listed").voxels(self._plan, self.shape, len(self))

    def warn(self, stacklevel: int = 1) -> None:
        """Warn when the map holds too few shades for the distribution to mean what it seems to."""
        if self.warning is not None:
            warnings.warn(self.warning, stacklevel=stacklevel + 1)

    def columns(self) -> Mapping[str, NDArray[Any]]:
        """All columns as one-dimensional arrays by name, as ``pandas.DataFrame`` and CSV writers take them."""
        table: dict[str, NDArray[Any]] = {
            "label": np.arange(1, len(self) + 1),
            "peak_probability": self.peak_probability,
            "n_voxels": self.n_voxels,
            "volume_mm3": self.volume_mm3,
            "equivalent_diameter_mm": self.equivalent_diameter_mm,
        }
        names = ["peak_index", "centroid", "bbox"]
        if self.protocol.has_peaks:
            table["saddle_probability"] = self.saddle_probability
            names.append("saddle_index")
        for name in names:
            for i, column in enumerate(getattr(self, name).T):
                table[f"{name}-{i}"] = column
        return table

    @overload
    def __getitem__(self, row: int) -> Candidate: ...
    @overload
    def __getitem__(self, row: slice) -> list[Candidate]: ...
    def __getitem__(self, row: int | slice) -> Candidate | list[Candidate]:
        """One candidate, counted from 0 and from the end if negative; or a list of several."""
        if isinstance(row, slice):
            return [self._candidate(i) for i in range(*row.indices(len(self)))]
        place = operator.index(row)
        if not -len(self) <= place < len(self):
            raise IndexError(f"There is no candidate {place}: the map has {len(self)}.")
        return self._candidate(place % len(self))

    def __iter__(self) -> Iterator[Candidate]:
        return (self._candidate(row) for row in range(len(self)))

    def to_dataframe(self) -> pd.DataFrame:
        """All columns as a ``pandas.DataFrame``, a row for each candidate."""
        frame: pd.DataFrame = optional("pandas", "notebook", "to_dataframe()").DataFrame(self.columns())
        return frame

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "protocol": self.protocol.to_dict(),
            "map": {"shape": list(self.shape), "spacing_mm": None if self.spacing_mm is None else [*self.spacing_mm]},
            "warnings": [] if self.warning is None else [str(self.warning)],
            "n_dropped": self.n_dropped,
            "lesions": [candidate.to_dict() for candidate in self],
        }

    def to_json(self) -> str:
        """As JSON."""
        import json  # not at the top: only some write JSON

        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    def __str__(self) -> str:
        """A count of them in words."""
        dropped = f", {self.n_dropped} more dropped as too small" if self.n_dropped else ""
        return f"{len(self)} candidate{'' if len(self) == 1 else 's'} ({self.protocol}){dropped}"

    __repr__ = __str__

    def _candidate(self, row: int) -> Candidate:
        peak, saddle = float(self.peak_probability[row]), float(self.saddle_probability[row])
        at_saddle = tuple(self.saddle_index[row].tolist())
        return Candidate(
            label=row + 1,
            existence=peak - saddle,
            peak_probability=peak,
            saddle_probability=saddle,
            peak_index=tuple(self.peak_index[row].tolist()),
            saddle_index=None if at_saddle[0] < 0 else at_saddle,
            n_voxels=int(self.n_voxels[row]),
            volume_mm3=float(self.volume_mm3[row]),
            equivalent_diameter_mm=float(self.equivalent_diameter_mm[row]),
            centroid=tuple(self.centroid[row].tolist()),
            bbox=tuple(self.bbox[row].tolist()),
        )

    def _painted(self, values: NDArray[np.int32]) -> NDArray[np.int32]:
        """A new array of the map's shape with one value in the voxels of each row, and 0 outside."""
        return self._kept_runs("The label map cannot be painted").paint(self._plan, self.shape, values)

    def _kept_runs(self, what: str) -> VoxelRuns:
        if self._runs is None:
            raise RunsNotKeptError(f"{what}, because the runs of voxels were not kept. Count with keep_runs=True.")
        return self._runs

    def _unravel(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        index = np.empty((len(positions), len(self.shape)), dtype=np.int64)
        for axis in range(len(self.shape) - 1, 0, -1):
            positions, index[:, axis] = np.divmod(positions, self._plan.shape[axis])
        index[:, 0] = positions
        return _read_only(index)

    def _in_map_order(self, planes_rows_columns: NDArray[Any]) -> NDArray[Any]:
        columns = (0, 1, 2) if len(self.shape) == 3 else (0, 2)
        return planes_rows_columns[:, [columns[self._plan.axes.index(axis)] for axis in range(len(self.shape))]]


def find_candidates(
    probabilities: ArrayLike,
    /,
    *,
    protocol: CountingProtocol | str | None = None,
    mask: ArrayLike | None = None,
    spacing_mm: ArrayLike | None = None,
    scale: float | None = None,
    logits: bool = False,
    threads: int = 1,
    warn: bool = True,
    **definition: Unpack[ProtocolFields],
) -> Candidates:
    """Find the connected regions above the threshold, in one pass over the map.

    Parameters
    ----------
    probabilities : array_like
        2-D or 3-D map of probabilities: float16, float32, float64, bool, or integers with ``scale``, in any memory
        order. Not written to, and not copied unless the machine cannot read it as it is (other byte order, 64-bit
        integers): then a slab at a time.
    protocol : CountingProtocol or str, optional
        What counts as one candidate, or the name of a preset. Default: the protocol of the paper.
    mask : array_like, optional
        Only voxels where it is not zero are looked at; the others may hold anything, NaN included.
    spacing_mm : array_like, optional
        Voxel size along each axis of the map; of a sheared grid, the edges of a voxel as columns, ``affine[:3, :3]``.
        Default: that of an image which has one. Without it volumes are NaN.
    scale : float, optional
        What one unit of the stored numbers is worth, such as ``1/255``.
    logits : bool, default False
        Whether the map holds logits instead of probabilities.
    threads : int, default 1
        Number of threads. The result does not depend on it.
    warn : bool, default True
        Whether to warn of a map that is binary or cut off.
    **definition
        Fields of `CountingProtocol`, such as ``threshold=0.3``, in place of those of the protocol.

    Returns
    -------
    Candidates

    Notes
    -----
    Section 3.1.1 of the paper: the regions R_k are the connected components of {i : p(V_i = 1) > τ}.

    Examples
    --------
    >>> import numpy as np
    >>> probabilities = np.zeros((4, 5), dtype=np.float32)
    >>> probabilities[1, 1:3] = 0.5, 0.75
    >>> probabilities[3, 4] = 0.25
    >>> candidates = find_candidates(probabilities)
    >>> candidates.n_voxels, candidates.peak_probability
    (array([2, 1]), array([0.75, 0.25]))
    >>> candidates.label_map()
    array([[0, 0, 0, 0, 0],
           [0, 1, 1, 0, 0],
           [0, 0, 0, 0, 0],
           [0, 0, 0, 0, 2]], dtype=int32)
    """
    protocol = defined(protocol, definition, find_candidates)
    image = image_of(probabilities)
    voxels = checked_map(image.voxels)
    inside = checked_mask(mask, voxels.shape, image.voxels)
    voxel_size = checked_spacing(image.spacing_mm if spacing_mm is None else spacing_mm, voxels.ndim, protocol)
    encoding = encoding_of(voxels.dtype, scale, 0.0, logits)
    plan = SweepPlan(SweepPlan.axes_by_stride(voxels), voxels.shape, encoding, protocol)
    total = SlabSum(plan, keep_runs=True)
    sweep_map(plan, voxels, inside, checked_threads(threads), total.add)
    candidates = candidates_of(total.finish(), plan, voxels.shape, voxel_size)
    if warn:
        candidates.warn(stacklevel=2)
    return candidates


def candidates_of(found: Found, plan: SweepPlan, shape: tuple[int, ...], voxel_size: VoxelSize | None) -> Candidates:
    """The candidates of a whole map, given what was found in it."""
    size = SmallestSize(plan.protocol, plan.axes, voxel_size)
    found = join_small_peaks(found, size)
    table, is_large = found.table, size.is_reached_by(found.table)
    kept: NDArray[np.intp] | slice = slice(None)
    if is_large is not None or not found.is_in_order or plan.axes != tuple(sorted(plan.axes)):
        kept = np.arange(len(table)) if is_large is None else np.flatnonzero(is_large)
        kept = kept[np.argsort(table["first_at"][kept])]
    rows = table[kept]
    return Candidates(
        shape=shape,
        voxel_size=voxel_size,
        protocol=plan.protocol,
        n_dropped=len(table) - len(rows),
        _table=rows,
        _saddles=None if found.saddles is None else found.saddles[kept],
        _plan=plan,
        _runs=None if found.runs is None else VoxelRuns(found.runs, len(table), kept),
        warning=None if len(table) == 0 else _warning_of(found),
    )


def _warning_of(found: Found) -> MapWarning | None:
    if found.has_soft:
        return None
    if found.has_gray:
        return CutOffMapWarning(
            "This map has no values between 0 and 0.5, so that weak candidates were removed before and the count is "
            "likely too certain. Count the unthresholded probabilities if you can."
        )
    return BinaryMapWarning(
        "This map is binary (only 0 and 1): every candidate exists with probability 1 and the distribution is a single "
        "point. Count the probabilities that the mask was made from if you can."
    )


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array

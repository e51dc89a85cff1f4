"""Step 1: probability map → candidates, the connected regions above the threshold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount._kernels.slab import Slab
from lesioncount.errors import MapError, ProtocolError, RunsNotKeptError, ShapeError, SpacingError, VoxelTypeError
from lesioncount.protocol import CountingProtocol
from lesioncount.slabs import REGION, RUN, SweepPlan, sweep_map, warn_of_hard_map
from lesioncount.voxels import encoding_of

# Voxel sizes come from files as single precision: a candidate of exactly the smallest size must not be dropped for it.
_SIZE_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Candidates:
    """The candidates of one map, a row each.

    Rows are in the order in which a reader of the map meets them: by the C-order index of their first voxel, as
    ``scipy.ndimage.label`` numbers them. All columns are read-only arrays of ``len(candidates)`` rows. Made by
    `find_candidates`.

    Attributes
    ----------
    shape : tuple of int
        Shape of the map.
    spacing_mm : tuple of float, or None
        Voxel size along each axis, None when unknown. A 2-D map may have a third number, the slice thickness.
    protocol : CountingProtocol
        What was counted as one candidate.
    n_dropped : int
        How many more candidates there were, all below the smallest size of the protocol.
    """

    shape: tuple[int, ...]
    spacing_mm: tuple[float, ...] | None
    protocol: CountingProtocol
    n_dropped: int
    _table: NDArray[Any]
    _plan: SweepPlan
    _runs: _Runs | None = field(default=None)

    def __len__(self) -> int:
        return len(self._table)

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
        return _read_only(self._table["n_voxels"] * _voxel_volume(self.spacing_mm))

    @cached_property
    def equivalent_diameter_mm(self) -> NDArray[np.float64]:
        """Diameter of the ball (in 2-D the disc) of the same volume; NaN when the voxel size is unknown."""
        return _read_only(_diameter(self._table["n_voxels"], self.spacing_mm, len(self.shape)))

    def label_map(self, dtype: np.typing.DTypeLike = np.int32) -> NDArray[Any]:
        """A new array of the map's shape: 0 outside, i + 1 in the voxels of row i."""
        if self._runs is None:
            raise RunsNotKeptError(
                "The label map cannot be painted, because the runs of voxels were not kept. Count with keep_runs=True."
            )
        return self._runs.paint(self._plan, self.shape, np.dtype(dtype))

    def columns(self) -> Mapping[str, NDArray[Any]]:
        """All columns as one-dimensional arrays by name, as ``pandas.DataFrame`` and CSV writers take them."""
        table: dict[str, NDArray[Any]] = {
            "label": np.arange(1, len(self) + 1),
            "peak_probability": self.peak_probability,
            "n_voxels": self.n_voxels,
            "volume_mm3": self.volume_mm3,
            "equivalent_diameter_mm": self.equivalent_diameter_mm,
        }
        for name in ("peak_index", "centroid", "bbox"):
            for i, column in enumerate(getattr(self, name).T):
                table[f"{name}-{i}"] = column
        return table

    def __str__(self) -> str:
        """A count of them in words."""
        dropped = f", {self.n_dropped} more dropped as too small" if self.n_dropped else ""
        return f"{len(self)} candidate{'' if len(self) == 1 else 's'} ({self.protocol}){dropped}"

    __repr__ = __str__

    def _unravel(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        index = np.empty((len(positions), len(self.shape)), dtype=np.int64)
        for axis in range(len(self.shape) - 1, 0, -1):
            positions, index[:, axis] = np.divmod(positions, self._plan.shape[axis])
        index[:, 0] = positions
        return _read_only(index)

    def _in_map_order(self, planes_rows_columns: NDArray[Any]) -> NDArray[Any]:
        columns = (0, 1, 2) if len(self.shape) == 3 else (0, 2)
        return planes_rows_columns[:, [columns[self._plan.axes.index(axis)] for axis in range(len(self.shape))]]


@dataclass(frozen=True, eq=False, repr=False)
class _Runs:
    """The voxels of all regions as runs along the columns of the sweep, and which regions are rows of the table."""

    table: NDArray[Any]
    n_regions: int
    kept: NDArray[np.intp] | slice

    def labels(self) -> NDArray[np.int64]:
        """The label of each region: 0 when it was dropped."""
        labels = np.zeros(self.n_regions, dtype=np.int64)
        labels[self.kept] = np.arange(1, len(labels[self.kept]) + 1)
        return labels

    def paint(self, plan: SweepPlan, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        ordered = np.zeros([shape[axis] for axis in plan.axes], dtype)
        length = self.table["length"].astype(np.int64)
        before = np.cumsum(length) - length
        voxels = np.repeat(self.table["start"] - before, length) + np.arange(length.sum())
        ordered.reshape(-1)[voxels] = np.repeat(self.labels()[self.table["region"]], length)
        return ordered.transpose(np.argsort(plan.axes))


def find_candidates(
    probabilities: ArrayLike,
    /,
    *,
    protocol: CountingProtocol | None = None,
    mask: ArrayLike | None = None,
    spacing_mm: ArrayLike | None = None,
    scale: float | None = None,
    logits: bool = False,
    threads: int = 1,
) -> Candidates:
    """Find the connected regions above the threshold, in one pass over the map.

    Parameters
    ----------
    probabilities : array_like
        2-D or 3-D map of probabilities: float16, float32, float64, bool, or integers with ``scale``. Any memory order;
        neither written to nor copied.
    protocol : CountingProtocol, optional
        What counts as one candidate. Default: the protocol of the paper.
    mask : array_like, optional
        Only voxels where it is not zero are looked at; the others may hold anything, NaN included.
    spacing_mm : sequence of float, optional
        Voxel size along each axis of the map. Without it volumes are NaN.
    scale : float, optional
        What one unit of the stored numbers is worth, such as ``1/255``.
    logits : bool, default False
        Whether the map holds logits instead of probabilities.
    threads : int, default 1
        Number of threads. The result does not depend on it.

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
    protocol = checked_protocol(protocol)
    voxels = _checked_map(probabilities)
    inside = _checked_mask(mask, voxels.shape, probabilities)
    spacing = checked_spacing(spacing_mm, voxels.ndim, protocol)
    encoding = encoding_of(voxels.dtype, scale, 0.0, logits)
    plan = SweepPlan(SweepPlan.axes_by_stride(voxels), voxels.shape, encoding, protocol)
    slab = sweep_map(plan, voxels, inside, _checked_threads(threads))
    return candidates_of(slab, plan, voxels.shape, spacing, keep_runs=True)


def candidates_of(
    slab: Slab, plan: SweepPlan, shape: tuple[int, ...], spacing_mm: tuple[float, ...] | None, *, keep_runs: bool
) -> Candidates:
    """The table of a slab that holds the whole map; the slab is empty after."""
    regions, runs = slab.finish()
    table = np.frombuffer(regions, REGION)
    warn_of_hard_map(slab, len(table))
    large_enough = _large_enough(table, plan.protocol, spacing_mm, len(shape))
    kept: NDArray[np.intp] | slice = slice(None)
    if large_enough is not None or plan.axes != tuple(sorted(plan.axes)):
        kept = np.arange(len(table)) if large_enough is None else np.flatnonzero(large_enough)
        kept = kept[np.argsort(table["first_at"][kept])]
    rows = table[kept]
    return Candidates(
        shape, spacing_mm, plan.protocol, len(table) - len(rows), rows, plan,
        _Runs(np.frombuffer(runs, RUN), len(table), kept) if keep_runs else None,
    )  # fmt: skip


def checked_protocol(protocol: CountingProtocol | None) -> CountingProtocol:
    """The protocol, that of the paper if there is none."""
    if protocol is None:
        return CountingProtocol()
    if not isinstance(protocol, CountingProtocol):
        raise ProtocolError(
            f"Expected a CountingProtocol, such as CountingProtocol.named('paper'), but got {protocol!r}."
        )
    return protocol


def checked_spacing(spacing_mm: ArrayLike | None, ndim: int, protocol: CountingProtocol) -> tuple[float, ...] | None:
    """The voxel size as a tuple, or an error."""
    if spacing_mm is None:
        if protocol.needs_spacing:
            raise SpacingError(
                "The protocol has a smallest size in millimetres, but the voxel size is unknown. Pass spacing_mm=, for "
                "example spacing_mm=(1, 1, 3), or use min_voxels instead."
            )
        return None
    try:
        spacing = tuple(np.asarray(spacing_mm, dtype=np.float64).ravel().tolist())
    except (TypeError, ValueError):
        raise SpacingError(f"Expected the voxel size along each axis, but spacing_mm is {spacing_mm!r}.") from None
    if len(spacing) not in ((3,) if ndim == 3 else (2, 3)):
        raise SpacingError(f"Expected the voxel size along each of {ndim} axes, but spacing_mm is {spacing}.")
    if not all(math.isfinite(size) and size > 0 for size in spacing):
        raise SpacingError(f"Expected voxel sizes greater than 0, but spacing_mm is {spacing}.")
    return spacing


def _checked_threads(threads: object) -> int:
    if not isinstance(threads, Integral) or threads < 1:
        raise MapError(f"Expected at least one thread, but got threads={threads!r}.")
    return int(threads)


def _checked_map(probabilities: ArrayLike) -> NDArray[Any]:
    try:
        voxels = np.asarray(probabilities)
    except ValueError as error:
        raise ShapeError(f"Expected a 2-D or 3-D array of probabilities, but it is no array: {error}") from None
    if voxels.ndim not in (2, 3):
        advice = "Choose one channel or one scan first, for example probabilities[1]." if voxels.ndim > 3 else ""
        raise ShapeError(f"Expected a 2-D or 3-D map, but its shape is {voxels.shape}. {advice}".rstrip())
    if voxels.size == 0:
        raise ShapeError(f"Expected a map with voxels, but its shape is {voxels.shape}.")
    return voxels


def _checked_mask(mask: ArrayLike | None, shape: tuple[int, ...], probabilities: ArrayLike) -> NDArray[np.bool_] | None:
    hidden = np.ma.getmask(probabilities) if isinstance(probabilities, np.ma.MaskedArray) else np.ma.nomask
    if mask is None:
        return None if hidden is np.ma.nomask else np.asarray(~hidden)
    inside = np.asarray(mask)
    if inside.shape != shape:
        raise ShapeError(f"Expected a mask of the map's shape {shape}, but the mask has shape {inside.shape}.")
    if inside.dtype.kind not in "biuf":
        raise VoxelTypeError(f"Expected a mask of booleans or numbers, but its dtype is {inside.dtype}.")
    inside = inside if inside.dtype.kind == "b" else inside != 0
    return inside if hidden is np.ma.nomask else inside & ~hidden


def _large_enough(
    table: NDArray[Any], protocol: CountingProtocol, spacing_mm: tuple[float, ...] | None, ndim: int
) -> NDArray[np.bool_] | None:
    """Which regions reach the smallest size; None when there is none to reach."""
    if protocol.min_voxels <= 1 and not protocol.needs_spacing:
        return None
    n_voxels = table["n_voxels"]
    kept: NDArray[np.bool_] = n_voxels >= protocol.min_voxels
    if protocol.needs_spacing:
        slack = 1 - _SIZE_ROUNDING
        kept &= n_voxels * _voxel_volume(spacing_mm) >= protocol.min_volume_mm3 * slack
        kept &= _diameter(n_voxels, spacing_mm, ndim) >= protocol.min_diameter_mm * slack
    return kept


def _voxel_volume(spacing_mm: tuple[float, ...] | None) -> float:
    return math.nan if spacing_mm is None else math.prod(spacing_mm)


def _diameter(n_voxels: NDArray[np.int64], spacing_mm: tuple[float, ...] | None, ndim: int) -> NDArray[np.float64]:
    size = np.asarray(n_voxels, np.float64) * (math.nan if spacing_mm is None else math.prod(spacing_mm[:ndim]))
    return np.cbrt(6 * size / math.pi) if ndim == 3 else np.sqrt(4 * size / math.pi)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array

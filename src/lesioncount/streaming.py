"""The same count for callers who have the map only piece by piece."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lesioncount.candidates import candidates_of
from lesioncount.checks import (
    checked_array,
    checked_axis,
    checked_dtype,
    checked_mask,
    checked_plane,
    checked_spacing,
    defined,
    shown,
)
from lesioncount.counting import LesionCount
from lesioncount.errors import MapError, ShapeError, VoxelTypeError
from lesioncount.protocol import CountingProtocol, ProtocolFields
from lesioncount.sweep.peaks import SlabSum
from lesioncount.sweep.slabs import BadVoxels, SweepPlan
from lesioncount.sweep.voxels import encoding_of

# Stands in for the unknown number of planes when positions are put in C order: more planes than there will ever be.
_MANY_PLANES = 1 << 31


class StreamingCounter:
    """Counts a map that comes as a series of planes, without ever holding it.

    Only the table of candidates and the last plane's runs of voxels are kept between pushes; of peaks, the voxels above
    the threshold as well, until their region is complete. The result is the same as that of `count_lesions` on the
    whole map, however it was cut.

    Parameters
    ----------
    shape_of_plane : tuple of int
        Shape of one plane: two numbers for a 3-D map, one for a 2-D map that comes row by row.
    dtype : dtype
        Of the planes.
    protocol : CountingProtocol, optional
        What counts as one lesion. Default: the protocol of the paper.
    axis : int, default 0
        The axis of the map along which planes follow each other. A NIfTI file, for example, is read along its last
        axis: ``axis=-1``.
    spacing_mm, scale, logits
        As in `count_lesions`.
    offset : float, default 0
        What is added to the stored numbers after scaling.
    keep_runs : bool, default False
        Keep what is needed to paint a label map at the end: 16 bytes per run of voxels above the threshold.
    **definition
        Fields of `CountingProtocol`, such as ``threshold=0.3``, in place of those of the protocol.

    Examples
    --------
    >>> import numpy as np
    >>> counter = StreamingCounter((192, 192), np.float32)
    >>> for first_plane in range(0, 64, 16):
    ...     counter.push(np.zeros((16, 192, 192), dtype=np.float32))
    >>> counter.result().candidates.shape
    (64, 192, 192)
    """

    def __init__(
        self,
        shape_of_plane: tuple[int, ...],
        dtype: DTypeLike,
        protocol: CountingProtocol | str | None = None,
        *,
        axis: int = 0,
        spacing_mm: ArrayLike | None = None,
        scale: float | None = None,
        offset: float = 0.0,
        logits: bool = False,
        keep_runs: bool = False,
        **definition: Unpack[ProtocolFields],
    ) -> None:
        shape = checked_plane(shape_of_plane)
        ndim = len(shape) + 1
        self._axis = checked_axis(axis, ndim)
        self._shape_of_plane = shape
        self._protocol = defined(protocol, definition, StreamingCounter)
        self._protocol.neighbours(ndim)
        self._encoding = encoding_of(checked_dtype(dtype), scale, offset, logits)
        self._voxel_size = checked_spacing(spacing_mm, ndim, self._protocol)
        if not isinstance(keep_runs, bool | np.bool_):
            raise MapError(f"Expected keep_runs to be True or False, but got {shown(keep_runs)}.")
        self._keep_runs = keep_runs
        self._plan: SweepPlan | None = None
        self._total: SlabSum | None = None

    @property
    def n_planes(self) -> int:
        """How many planes have been pushed."""
        return 0 if self._total is None else self._total.n_planes

    def push(self, planes: NDArray[Any], mask: ArrayLike | None = None) -> None:
        """Add the next planes: an array with the axes of the map, or a single plane.

        After an error the planes of this call are not counted; those of earlier calls are.
        """
        planes = self._with_axes_of_map(checked_array(planes, "planes"), "planes")
        if planes.dtype != self._encoding.dtype:
            raise VoxelTypeError(f"Expected planes of dtype {self._encoding.dtype}, but their dtype is {planes.dtype}.")
        mask = None if mask is None else self._with_axes_of_map(checked_array(mask, "a mask"), "the mask")
        inside = checked_mask(mask, planes.shape, planes)
        if planes.size == 0:
            return
        if self._plan is None or self._total is None:
            self._plan = self._plan_for(planes)
            self._total = SlabSum(self._plan, keep_runs=self._keep_runs)
        try:
            slab = self._plan.sweep(np.asarray(planes), inside, self.n_planes)
        except BadVoxels:
            self._plan.explain(np.asarray(planes), inside, self.n_planes)
        self._total.add(slab)

    def result(self, *, warn: bool = True) -> LesionCount:
        """The count of all planes so far; more may follow. Warns of a hard map as `count_lesions` does."""
        if self._total is None or self._plan is None or self.n_planes == 0:
            raise ShapeError("Expected planes before the result was asked for, but none were pushed.")
        shape = self._shape_of_map(self.n_planes)
        found = self._total.copy().finish()
        candidates = candidates_of(found, self._plan, shape, self._voxel_size)
        if warn:
            candidates.warn(stacklevel=2)
        return LesionCount.of(candidates)

    def _with_axes_of_map(self, array: NDArray[Any], what: str) -> NDArray[Any]:
        if array.shape == self._shape_of_plane:
            array = np.expand_dims(array, self._axis)
        expected = self._shape_of_map(array.shape[self._axis] if array.ndim == len(self._shape_of_plane) + 1 else 1)
        if array.shape != expected:
            words = ", ".join("n" if axis == self._axis else str(n) for axis, n in enumerate(expected))
            raise ShapeError(f"Expected {what} of shape ({words}) or {self._shape_of_plane}, but got {array.shape}.")
        return array

    def _shape_of_map(self, n_planes: int) -> tuple[int, ...]:
        shape = list(self._shape_of_plane)
        shape.insert(self._axis, n_planes)
        return tuple(shape)

    def _plan_for(self, planes: NDArray[Any]) -> SweepPlan:
        in_plane = tuple(axis for axis in SweepPlan.axes_by_stride(planes) if axis != self._axis)
        return SweepPlan((self._axis, *in_plane), self._shape_of_map(_MANY_PLANES), self._encoding, self._protocol)

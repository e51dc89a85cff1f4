"""Scored boxes or points of a detector → candidates and their count: the paper's steps 2 and 3, without a map."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.candidates import Candidates
from lesioncount.checks import checked_spacing, defined
from lesioncount.counting import LesionCount
from lesioncount.errors import MapError, ProtocolError, RunsNotKeptError, ShapeError, SpacingError
from lesioncount.files.detections.rows import AXES, SIDES, probabilities_of
from lesioncount.files.geometry import VoxelGrid
from lesioncount.protocol import CountingProtocol, ProtocolFields
from lesioncount.regions.regions import Regions
from lesioncount.trust.candidate_table import CandidateTable

Floats = NDArray[np.float64]

# Sizes come as text: a candidate of exactly the smallest size must not be dropped for its last digit.
_SIZE_ROUNDING = 1e-6

# Pairs that are looked at together: some 30 MB.
_AT_ONCE = 1 << 20

# Doubles are worth a word from this share of candidates on, in scans that have enough of them to speak of a share.
_DOUBLED, _FEWEST = 0.2, 10

NEEDS_A_MAP = "which a table of detections does not have: they are scored boxes or points, and no map."


@dataclass(frozen=True, eq=False, repr=False)
class DetectedCandidates(Candidates):
    """The candidates of a detector, a row each in the order of its table. What needs voxels says so.

    Attributes
    ----------
    scores : ndarray of float
        What the detector says of each: the existence, before any correction.
    positions_mm : ndarray of float, shape (n, 3)
        Where each lies, in RAS millimetres; NaN where that is unknown.
    sizes_mm : ndarray of float, shape (n, 3)
        How far its box reaches along each axis; NaN where that is unknown, and along the third axis of pictures.
    positions : ndarray of float, shape (n, ndim)
        The same places as indices of voxels; without columns where that is unknown.
    sides : ndarray of float, shape (n, ndim)
        The same sizes in voxels; NaN where unknown.
    n_merged, n_near : int
        How many more there were that lay near one with a higher score; and how many had any such neighbour.
    is_in_mm : bool
        Whether distances between them are known, so that doubles are.
    """

    scores: Floats
    positions_mm: Floats
    sizes_mm: Floats
    positions: Floats
    sides: Floats
    n_merged: int
    n_near: int
    is_in_mm: bool

    @cached_property
    def n_voxels(self) -> NDArray[np.int64]:
        """None: boxes and points have no voxels."""
        return np.zeros(len(self), dtype=np.int64)

    @property
    def peak_probability(self) -> Floats:
        """The score."""
        return self.scores

    @cached_property
    def peak_index(self) -> NDArray[np.int64]:
        """The voxel in the middle of the box: (n, ndim); without columns where that is unknown."""
        index = np.rint(self.positions).astype(np.int64)
        return np.clip(index, 0, np.array(self.shape) - 1) if self._is_in_image else index

    @property
    def _is_in_image(self) -> bool:
        return bool(self.shape) and self.positions.shape[1] > 0

    @cached_property
    def saddle_index(self) -> NDArray[np.int64]:
        """Of no use: detections do not touch."""
        return np.full((len(self), max(1, self.positions.shape[1])), -1)

    @cached_property
    def bbox(self) -> NDArray[np.int64]:
        """The box in voxels, first index along each axis, then last plus one: (n, 2 ndim)."""
        half = np.nan_to_num(self.sides) / 2
        low = np.minimum(np.floor(self.positions - half + 0.5).astype(np.int64), self.peak_index)
        high = np.maximum(np.ceil(self.positions + half + 0.5).astype(np.int64), self.peak_index + 1)
        if self._is_in_image:
            low, high = np.clip(low, 0, None), np.minimum(high, self.shape)
        return np.concatenate([low, high], axis=1)

    @property
    def centroid(self) -> Floats:
        """The middle of the box, as an index."""
        return self.positions

    @cached_property
    def volume_mm3(self) -> Floats:
        """Volume of the ellipsoid in the box (in pictures, of a disc that is 1 mm thick); NaN where unknown."""
        flat = np.isnan(self.sizes_mm[:, 2])
        return np.where(flat, math.pi / 4, math.pi / 6) * _product(self.sizes_mm)

    @cached_property
    def equivalent_diameter_mm(self) -> Floats:
        """Diameter of the ball, or the disc, of the same volume; NaN where unknown."""
        flat = np.isnan(self.sizes_mm[:, 2])
        return np.asarray(_product(self.sizes_mm) ** np.where(flat, 1 / 2, 1 / 3))

    def voxels(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The middle voxel of each: all that distances to regions are measured from."""
        return np.arange(len(self), dtype=np.int32), self.peak_index

    def columns(self) -> Mapping[str, NDArray[Any]]:
        """All columns as one-dimensional arrays by name."""
        table = {name: column for name, column in super().columns().items() if name != "n_voxels"}
        return table | {f"{axis}_mm": column for axis, column in zip(AXES, self.positions_mm.T, strict=True)}

    def _kept_runs(self, what: str) -> NoReturn:
        raise RunsNotKeptError(f"{what}: that needs voxels, {NEEDS_A_MAP}")


def count_candidates(
    scores: ArrayLike | CandidateTable,
    /,
    *,
    positions_mm: ArrayLike | None = None,
    sizes_mm: ArrayLike | None = None,
    spacing_mm: ArrayLike | None = None,
    scale: float | None = None,
    logits: bool = False,
    protocol: CountingProtocol | str | None = None,
    **definition: Unpack[ProtocolFields],
) -> LesionCount:
    """The probability distribution of the number of lesions, from what a detector has found.

    Parameters
    ----------
    scores : array_like of float, or CandidateTable
        The score of each candidate, in [0, 1]; or the table of a scan, as `read_candidates` gives it.
    positions_mm : array_like, shape (n, 2) or (n, 3), optional
        Where each lies. Without it, doubles are not found.
    sizes_mm : array_like, shape (n,), (n, 2) or (n, 3), optional
        Its diameter, or the sides of its box.
    spacing_mm : array_like, optional
        Of a table in pixels: how large a pixel is along x, y and z.
    scale : float, optional
        What one unit of the scores is worth, such as ``0.01`` for percent.
    logits : bool, default False
        Whether scores are logits.
    protocol : CountingProtocol or str, optional
        What counts as one candidate. Default: ``"detections"``.
    **definition
        Fields of `CountingProtocol`, such as ``threshold=0.05``, ``merge_within_mm=3`` or ``min_diameter_mm=4``.

    Returns
    -------
    LesionCount
        As from a map. What needs one, such as ``candidates.label_map()``, says so.

    Notes
    -----
    A candidate exists with its score, less so after a `Calibration`. Of two that lie nearer than ``merge_within_mm``,
    the one with the lower score is dropped, the highest first: they are one lesion, and the second adds nothing.

    Examples
    --------
    >>> count = count_candidates([0.9, 0.6, 0.3], positions_mm=[[0, 0, 0], [2, 0, 0], [40, 0, 0]])
    >>> len(count.candidates), count.candidates.n_merged, count.distribution.mean()
    (2, 1, 1.2)
    """
    protocol = defined("detections" if protocol is None else protocol, definition, count_candidates)
    table = scores if isinstance(scores, CandidateTable) else _table(scores, positions_mm, sizes_mm, scale, logits)
    spacing = None if spacing_mm is None else checked_pixel(spacing_mm)
    return LesionCount.of(detected(table, protocol, VoxelGrid(Path(), (), spacing_mm=spacing)))


def checked_pixel(spacing_mm: ArrayLike) -> tuple[float, ...]:
    """The size of a pixel along x and y, or of a voxel along x, y and z, in the order of indices."""
    try:
        sizes = np.asarray(spacing_mm, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        sizes = np.empty(0)
    if len(sizes) not in (2, 3) or not (np.isfinite(sizes) & (sizes > 0)).all():
        raise SpacingError(f"Expected two or three sizes in millimetres, along x, y and z, but got {spacing_mm!r:.60}.")
    return tuple(sizes.tolist() if len(sizes) == 3 else sizes[::-1].tolist())


def detected(
    table: CandidateTable, protocol: CountingProtocol, grid: VoxelGrid, regions: Regions | None = None
) -> DetectedCandidates:
    """The candidates of a scan, of those in its table that are above the floor, large enough and no doubles.

    Parameters
    ----------
    table : CandidateTable
        With a place and a size of each candidate, where they are known: columns such as ``x_mm`` and ``dx_px``.
    protocol : CountingProtocol
    grid : VoxelGrid
        Of the image that they lie in. Its shape is empty if there is none.
    regions : Regions, optional
        For which a place must be known.
    """
    if not protocol.has_detections:
        raise ProtocolError(
            'A table of detections is counted with candidates="detections" (--protocol detections), not with a '
            "protocol for maps."
        )
    places = _Places.of(table.rows(table.peak > protocol.threshold), grid)
    if regions is not None and not places.positions.shape[1]:
        raise ShapeError("Regions need the place of each candidate in them, which this table does not have.")
    is_large = places.is_large(protocol)
    kept = places.rows(is_large)
    pairs = kept.near(protocol.merge_within_mm or 0.0)
    is_first = highest_of(pairs, kept.table.peak)
    last = kept.rows(is_first)
    return DetectedCandidates(
        shape=grid.shape,
        voxel_size=checked_spacing(grid.voxel_edges_mm, len(grid.shape), protocol) if grid.shape else None,
        protocol=protocol,
        n_dropped=int((~is_large).sum()),
        warning=None,
        _table=last.table.peak,
        _saddles=None,
        _plan=None,  # type: ignore[arg-type]  # nothing was swept
        _runs=None,
        scores=last.table.peak,
        positions_mm=last.positions_mm,
        sizes_mm=last.sizes_mm,
        positions=last.positions,
        sides=last.sides,
        n_merged=int((~is_first).sum()),
        n_near=len(np.unique(pairs)),
        is_in_mm=last.apart_mm is not None,
    )


@dataclass(frozen=True, eq=False)
class _Places:
    """A table of candidates, and where they lie: as in `DetectedCandidates`; and to measure distances, ``apart``."""

    table: CandidateTable
    positions_mm: Floats
    sizes_mm: Floats
    positions: Floats
    sides: Floats
    apart_mm: Floats | None

    @classmethod
    def of(cls, table: CandidateTable, grid: VoxelGrid) -> _Places:
        n = len(table)
        unknown = np.full((n, 3), np.nan)
        positions_mm, sizes_mm = (_columns(table, names, "mm") for names in (AXES, SIDES))
        if positions_mm is not None:
            positions, sides = _indices(positions_mm, sizes_mm, grid)
            return cls(table, _three(positions_mm, 0.0), _three(sizes_mm, np.nan, n), positions, sides, positions_mm)
        in_pixels = _in_pixels(table, grid)
        if in_pixels is None:
            flat = np.empty((n, 0))
            return cls(table, unknown, _three(sizes_mm, np.nan, n), flat, flat, None)
        positions, sides = in_pixels
        spacing = None if grid.spacing_mm is None else np.array(grid.spacing_mm)
        if spacing is not None and len(spacing) != positions.shape[1]:
            raise SpacingError(f"Expected a pixel size along {positions.shape[1]} axes, but got {len(spacing)}.")
        sizes = sizes_mm if spacing is None or sizes_mm is not None else sides * spacing
        apart = None if spacing is None else positions * spacing
        places = grid.to_ras_mm(positions) if grid.shape else unknown
        return cls(table, places, _three(sizes, np.nan, n), positions, sides, apart)

    def rows(self, which: NDArray[np.bool_]) -> _Places:
        """Some of them."""
        if which.all():
            return self
        apart = None if self.apart_mm is None else self.apart_mm[which]
        arrays = (one[which] for one in (self.positions_mm, self.sizes_mm, self.positions, self.sides))
        return replace(self, table=self.table.rows(which), **dict(zip(_ARRAYS, arrays, strict=True)), apart_mm=apart)

    def is_large(self, protocol: CountingProtocol) -> NDArray[np.bool_]:
        """Which reach the smallest size of the protocol."""
        if not protocol.needs_spacing:
            return np.ones(len(self.table), dtype=bool)
        sizes = self.sizes_mm
        n_unknown = int(np.isnan(sizes[:, 0]).sum())
        if n_unknown:
            raise SpacingError(
                f"A smallest size needs the size of each candidate in millimetres, which is unknown for {n_unknown} of "
                f"{len(sizes)}. Name its columns (--columns diameter=…), give the pixel size (--spacing), or leave the "
                "smallest size out."
            )
        flat = np.isnan(sizes[:, 2])
        diameter = _product(sizes) ** np.where(flat, 1 / 2, 1 / 3)
        volume = np.where(flat, math.pi / 4, math.pi / 6) * _product(sizes)
        least = [(diameter, protocol.min_diameter_mm), (volume, protocol.min_volume_mm3)]
        least.append((np.nanmax(sizes, axis=1, initial=0.0), protocol.min_length_mm))
        reached = [size >= at_least * (1 - _SIZE_ROUNDING) for size, at_least in least]
        return reached[0] & reached[1] & reached[2]

    def near(self, within_mm: float) -> NDArray[np.int64]:
        """All pairs that lie nearer to each other, (n, 2); none where places are not known in millimetres."""
        return np.empty((0, 2), dtype=np.int64) if self.apart_mm is None else pairs_within(self.apart_mm, within_mm)


_ARRAYS = ("positions_mm", "sizes_mm", "positions", "sides")


def pairs_within(places: Floats, distance: float) -> NDArray[np.int64]:
    """All pairs of points that lie nearer to each other than a distance, as rows of two indices."""
    n = len(places)
    if n < 2 or distance <= 0:
        return np.empty((0, 2), dtype=np.int64)
    axis = int(np.argmax(np.ptp(places, axis=0)))
    order = np.argsort(places[:, axis], kind="stable")
    sorted_places = places[order]
    along = sorted_places[:, axis]
    after = np.searchsorted(along, along + distance) - np.arange(n) - 1  # how many follow so closely
    ends = np.cumsum(after)
    found, begin = [], 0
    while begin < n:
        before = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + _AT_ONCE, side="right")))
        first = np.repeat(np.arange(begin, end), after[begin:end])
        second = (
            first + 1 + np.arange(len(first)) - np.repeat(ends[begin:end] - after[begin:end] - before, after[begin:end])
        )
        is_near = ((sorted_places[first] - sorted_places[second]) ** 2).sum(axis=1) < distance**2
        found.append(np.stack([order[first[is_near]], order[second[is_near]]], axis=1))
        begin = end
    return np.concatenate(found)


def highest_of(pairs: NDArray[np.int64], scores: Floats) -> NDArray[np.bool_]:
    """Which points stay if, from the highest score down, each that stays removes all that it is paired with."""
    stays = np.ones(len(scores), dtype=bool)
    if not len(pairs):
        return stays
    rank = np.empty(len(scores), dtype=np.int64)
    rank[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    is_turned = rank[pairs[:, 0]] > rank[pairs[:, 1]]
    higher = np.where(is_turned, pairs[:, 1], pairs[:, 0])
    lower = np.where(is_turned, pairs[:, 0], pairs[:, 1])
    for one, other in zip(
        *(side[np.argsort(rank[higher], kind="stable")].tolist() for side in (higher, lower)), strict=True
    ):
        if stays[one]:
            stays[other] = False
    return stays


def has_doubles(candidates: DetectedCandidates) -> bool:
    """Whether so many lie near another that one lesion seems to be found several times."""
    n = len(candidates) + candidates.n_merged
    return n >= _FEWEST and candidates.n_near > _DOUBLED * n


def _table(
    scores: ArrayLike, positions_mm: ArrayLike | None, sizes_mm: ArrayLike | None, scale: float | None, logits: bool
) -> CandidateTable:
    """A table from arrays, which are checked."""
    try:
        values = np.array(scores, dtype=np.float64)
        places = None if positions_mm is None else np.array(positions_mm, dtype=np.float64)
        sizes = None if sizes_mm is None else np.array(sizes_mm, dtype=np.float64)
    except (TypeError, ValueError):
        raise MapError("Expected arrays of numbers: scores, and places and sizes in millimetres.") from None
    if values.ndim != 1:
        raise ShapeError(
            f"Expected scores in one dimension, one for each candidate, but their shape is {values.shape}."
        )
    sizes = np.repeat(sizes[:, None], 3, axis=1) if sizes is not None and sizes.ndim == 1 else sizes
    columns: dict[str, Floats] = {}
    for names, given, what in ((AXES, places, "positions"), (SIDES, sizes, "sizes")):
        if given is None:
            continue
        if not len(values):
            continue
        if given.ndim != 2 or given.shape[0] != len(values) or given.shape[1] not in (2, 3):
            raise ShapeError(f"Expected {what} of {len(values)} candidates, two or three each, but got {given.shape}.")
        if not np.isfinite(given).all() or (names is SIDES and (given < 0).any()):
            raise MapError(f"Expected {what} in millimetres, but some are negative, NaN or infinite.")
        columns |= {f"{name}_mm": column for name, column in zip(names, given.T, strict=False)}
    return CandidateTable.of(probabilities_of(values, scale, logits=logits), **columns)


def _columns(table: CandidateTable, names: tuple[str, ...], unit: str) -> Floats | None:
    """Two or three columns of a table, as far as it has them; None if it has none."""
    found = [table[f"{name}_{unit}"] for name in names if f"{name}_{unit}" in table.names]
    return np.stack(found, axis=1) if found else None


def _three(values: Floats | None, fill: float, n: int = 0) -> Floats:
    """With a third column, if there are two."""
    if values is None:
        return np.full((n, 3), np.nan)
    return values if values.shape[1] == 3 else np.column_stack([values, np.full(len(values), fill)])


def _in_pixels(table: CandidateTable, grid: VoxelGrid) -> tuple[Floats, Floats] | None:
    """Places and sizes in pixels in the order of indices, x, y, z or row and column, where they are known."""
    positions, sides = (_columns(table, names, "px") for names in (AXES, SIDES))
    if positions is None and len(grid.shape) == 2:
        fractions, parts = (_columns(table, names, "fraction") for names in (AXES, SIDES))
        width = np.array(grid.shape[::-1])
        positions = None if fractions is None else fractions * width - 0.5
        sides = None if parts is None else parts * width
    if positions is None:
        return None
    if grid.shape and len(grid.shape) != positions.shape[1]:
        raise ShapeError(f"{grid.path} has {len(grid.shape)} axes, but detections have {positions.shape[1]}.")
    sides = np.full_like(positions, np.nan) if sides is None else sides
    if positions.shape[1] == 2:
        positions, sides = positions[:, ::-1], sides[:, ::-1]
    _check_inside(positions, grid)
    return positions, sides


def _indices(positions_mm: Floats, sizes_mm: Floats | None, grid: VoxelGrid) -> tuple[Floats, Floats]:
    """Places and sizes in voxels of an image, given those in millimetres; without columns where there is none."""
    if grid.affine is None or len(grid.shape) != 3 or positions_mm.shape[1] != 3:
        return np.empty((len(positions_mm), 0)), np.empty((len(positions_mm), 0))
    inverse = np.linalg.inv(grid.affine)
    index = positions_mm @ inverse[:3, :3].T + inverse[:3, 3]
    _check_inside(index, grid)
    if sizes_mm is None or sizes_mm.shape[1] != 3:
        return index, np.full_like(index, np.nan)
    return index, sizes_mm @ np.abs(inverse[:3, :3]).T


def _check_inside(index: Floats, grid: VoxelGrid) -> None:
    """Raise unless candidates lie in their image."""
    if not grid.shape:
        return
    n_out = int((~((index >= -1) & (index <= np.array(grid.shape))).all(axis=1)).sum())
    if n_out:
        raise ShapeError(
            f"{n_out} of {len(index)} detections lie outside of {grid.path}. Are their coordinates right? Say what "
            "they are (--coordinates ras, lps or pixels), or give the image that they were made from."
        )


def _product(sizes_mm: Floats) -> Floats:
    return np.asarray(np.where(np.isnan(sizes_mm[:, 2]), 1.0, sizes_mm[:, 2]) * sizes_mm[:, 0] * sizes_mm[:, 1])

"""Masks and label maps of regions in files, on the grid of the maps that they are for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ChannelError, MapFileError
from lesioncount.files.dicom import ENDINGS
from lesioncount.files.formats import files_of, map_ending, open_mask, version_of
from lesioncount.files.geometry import VoxelGrid, check_same_grid
from lesioncount.files.lattice import place
from lesioncount.files.remote_path import RemotePath
from lesioncount.files.source import MapSource
from lesioncount.regions.regions import whole_numbers

# A scale in a header is of single precision: a label of 14 175 may come out a thousandth off.
_DIGITS = 2

# Labels up to here are looked up in a table, others are sorted.
_TABLE = 1 << 16

WHAT = "the label map of regions"


@dataclass(frozen=True, eq=False)
class LabelMap:
    """A file of labels.

    Attributes
    ----------
    grid : VoxelGrid
    labels : ndarray of int
        Of all voxels, in the order of the file.
    present : tuple of int
        The labels that there are, without 0.
    """

    grid: VoxelGrid
    labels: NDArray[Any]
    present: tuple[int, ...]

    def on(self, grid: VoxelGrid) -> NDArray[Any]:
        """The labels on the grid of a map; raise if they do not lie on the same voxels."""
        if is_dicom_pair(grid, self.grid):
            return place(self.grid, grid, WHAT).on_grid(self.labels)
        check_same_grid(grid, self.grid, WHAT)
        return self.labels


def read_label_map(path: Path) -> LabelMap:
    """The labels in a file. That of a whole cohort is read once, not once for each of its scans."""
    return _read(path, _state(path))


def _state(path: Path) -> object:
    """What changes with its content; of a server that tells no version, always another."""
    if isinstance(path, RemotePath):
        return version_of(path) or object()
    return tuple((file, file.stat().st_size, file.stat().st_mtime_ns) for file in files_of(path))


@lru_cache(maxsize=1)
def _read(path: Path, _state: object) -> LabelMap:
    try:
        source = open_mask(path)
    except ChannelError:
        raise MapFileError(
            f"Expected {WHAT} to be a single volume in which each region has a number, but {path} holds several."
        ) from None
    labels = whole_numbers(_values(source), f"{WHAT} {path}")
    labels.flags.writeable = False
    return LabelMap(source.grid, labels, tuple(label for label in _present(labels) if label != 0))


def _values(source: MapSource) -> NDArray[Any]:
    return source.array() if source.scale is None else np.round(source.values(), _DIGITS)


def _present(labels: NDArray[Any]) -> list[int]:
    if labels.dtype.kind != "b" and int(labels.min()) >= 0 and int(labels.max()) < _TABLE:
        seen = np.zeros(_TABLE, dtype=bool)
        for plane in labels.transpose() if labels.flags.f_contiguous else labels:  # a copy of a plane, not of the map
            seen[plane] = True
        return np.flatnonzero(seen).tolist()
    return list(map(int, np.unique(labels)))


def is_dicom_pair(grid: VoxelGrid, other: VoxelGrid) -> bool:
    """Whether one of two files is DICOM, so that their voxels may be the same and yet in another order."""
    return any(map_ending(one.path) in ENDINGS for one in (grid, other))


def mask_on(grid: VoxelGrid, mask: MapSource) -> NDArray[np.bool_]:
    """What is inside of a mask, on the grid of a map; raise if it does not lie on the same voxels."""
    if is_dicom_pair(grid, mask.grid):
        return place(mask.grid, grid, "the mask").on_grid(mask.mask())
    check_same_grid(grid, mask.grid, "the mask")
    return mask.mask()

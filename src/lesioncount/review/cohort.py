"""A folder of results → the scans that can be reviewed, with their maps and images as NIfTI files."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.recount import counted_again, existing_map, painted_boxes
from lesioncount.cohort.item import states_of
from lesioncount.cohort.pairing import pair
from lesioncount.files import open_map
from lesioncount.files.geometry import VoxelGrid, check_same_grid
from lesioncount.files.nifti import nifti_bytes
from lesioncount.files.remote_path import RemotePath, to_path
from lesioncount.results.record import Entry, Record
from lesioncount.results.results import Results, read_counted

# Records and volumes that are kept: those of the scan on the screen, and of the next ones.
_RECORDS, _VOLUMES = 64, 6

# Labels that fit into 16 bits.
_MOST_SHORT = (1 << 16) - 1

# Of the map: as many as a screen shows, in a quarter of the bytes.
_SHADES = 255


# Of scans of which there is no picture: what is shown beside the list of their candidates.
LIST = (1, 1, 1)


class ReviewCohort:
    """The scans of a run, known by their numbers: a client never names a file.

    Parameters
    ----------
    out : Path
        The folder of results.
    images : Path, optional
        A folder with the image of each map, or a pattern, as `write_report` takes them.
    images_suffix : str
        What the name of an image adds to that of its map.
    """

    def __init__(self, out: Path, *, images: Path | None = None, images_suffix: str = "") -> None:
        self.results: Results = read_counted(out)
        self.scans: tuple[Entry, ...] = self.results.counted
        files = {scan.name: scan.files for scan in self.scans}
        self.images = {} if images is None else pair(files, images, role="image", suffix=images_suffix)
        self.record: Callable[[int], Record] = lru_cache(_RECORDS)(self._record)
        self.volume: Callable[[int, str], bytes] = lru_cache(_VOLUMES)(self._volume)
        self._seen: dict[int, object] = {}

    @property
    def out(self) -> Path:
        """The folder of results."""
        return self.results.out

    def has_image(self, number: int) -> bool:
        """Whether there is an image of a scan."""
        return self.scans[number].name in self.images

    def check_unchanged(self, number: int) -> None:
        """Raise if the map of a scan, or its mask, is another than was counted: decisions are about no other.

        Files are read only if they were touched since the last look. Those that are gone, or live elsewhere, are not.
        """
        files = self.scans[number].files
        if files is not None and files.is_table:  # all that counts is in the record
            return
        paths = [] if files is None else [to_path(path) for path in (files.path, files.mask) if path is not None]
        if files is None or any(isinstance(path, RemotePath) or not path.exists() for path in paths):
            return
        states = [states_of(path) for path in paths]
        if self._seen.get(number) != states:
            files.check_unchanged()
            self._seen[number] = states

    def _record(self, number: int) -> Record:
        return self.results.record(self.scans[number].name)

    def _volume(self, number: int, kind: str) -> bytes:
        """The content of a NIfTI file: "image", "map" or "labels" of a scan, all on the grid of the map."""
        voxels = {"image": self._image, "map": self._map, "labels": self._labels}[kind](number)
        return nifti_bytes(*_in_3d(voxels, self.scans[number].grid), slope=1 / _SHADES if kind == "map" else 1.0)

    def _is_list(self, number: int) -> bool:
        """Whether candidates of a scan lie in no picture: they are a list, beside one empty voxel."""
        return not self.scans[number].grid.shape

    def _image(self, number: int) -> NDArray[Any]:
        scan = self.scans[number]
        if self._is_list(number):
            return np.zeros(LIST, np.uint8)
        source = open_map(self.images[scan.name])
        check_same_grid(scan.grid, source.grid, "the image")
        values = source.values()
        return values if values.dtype in (np.uint8, np.int16) else values.astype(np.float32)

    def _map(self, number: int) -> NDArray[Any]:
        scan = self.scans[number]
        if scan.files is not None and scan.files.is_table:
            labels, record = self._labels(number), self.record(number)
            existence = [0.0, *(lesion.best_existence for lesion in record.lesions if lesion.is_of_first_member)]
            shades: NDArray[Any] = np.round(np.array(existence) * _SHADES).astype(np.uint8)
            return np.asarray(shades[labels])
        source = open_map(existing_map(scan), **self.results.run.settings.reading)
        return np.round(source.probabilities().clip(0, 1) * _SHADES).astype(np.uint8)

    def _labels(self, number: int) -> NDArray[Any]:
        """The candidates of a scan, painted with their labels; boxes of a detector, as far as there is an image."""
        if self._is_list(number):
            return np.zeros(LIST, np.uint16)
        if self.results.run.settings.protocol.has_detections:
            return painted_boxes(self.record(number).lesions, self.scans[number].grid).astype(np.int32)
        again = counted_again(self.scans[number], self.results.run.settings, keep_runs=True)
        found = again.result.candidates
        return found.label_map(np.uint16 if len(found) <= _MOST_SHORT else np.int32)


def _in_3d(voxels: NDArray[Any], grid: VoxelGrid) -> tuple[NDArray[Any], VoxelGrid]:
    """A volume, which for a picture has one slice, and where its voxels are shown."""
    sizes = grid.spacing_mm if grid.shape else None
    spacing = (*(sizes or (1.0,) * voxels.ndim), 1.0)[:3]
    affine = _as_printed(voxels.ndim, spacing) if grid.affine is None else grid.affine
    volume = voxels.reshape(*voxels.shape, *(1,) * (3 - voxels.ndim))
    return volume, VoxelGrid(grid.path, volume.shape, affine, spacing)


def _as_printed(n_axes: int, spacing: tuple[float, ...]) -> NDArray[np.float64]:
    """For arrays without a place, as reports show them: the last axis runs to the right, and the one before down."""
    right, down = n_axes - 1, n_axes - 2
    affine = np.diag([0.0, 0.0, 0.0, 1.0])
    for place, axis, sign in ((0, right, 1), (1, down, -1), (2, 3 - right - down, 1)):
        affine[place, axis] = sign * spacing[axis]
    return affine

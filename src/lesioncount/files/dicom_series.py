"""A folder of DICOM images → their headers in the order of the slices, and the grid of their voxels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapFileError
from lesioncount.files.byte_streams import explained
from lesioncount.files.dicom import read_header, to_ras
from lesioncount.files.dicom_header import SEGMENTATIONS, is_dicom, sop_class
from lesioncount.files.geometry import VoxelGrid
from lesioncount.optional import optional

# More than any series has: a folder that was not meant.
_MOST_FILES = 50_000

# By how much distances between slices may differ, as a share of them: positions are rounded.
_UNEVEN = 0.02

# Series that a message names.
_NAMED = 5


@dataclass(frozen=True, eq=False)
class ImageSeries:
    """The images of one series.

    Attributes
    ----------
    images : tuple of pydicom.Dataset
        Headers, without pixels, in the order of the slices; or that of one file with all of them.
    grid : VoxelGrid
        Along slices, rows and columns.
    """

    images: tuple[Any, ...]
    grid: VoxelGrid


def series_files(folder: Path) -> list[Path]:
    """All DICOM files in a folder and below that are no segmentations, whatever their names."""
    found = (path for path in sorted(folder.rglob("*")) if not path.name.startswith("."))
    return [path for path in found if is_dicom(path) and sop_class(path) not in SEGMENTATIONS]


def read_series(folder: Path) -> ImageSeries:
    """The only series of images in a folder; raise if there are several, or its slices make no volume."""
    series: dict[str, dict[str, Any]] = {}
    for of, identity, data in _headers(folder):
        series.setdefault(of, {})[identity] = data
    if not series:
        raise MapFileError(f"There are no DICOM images of slices in the folder {folder}.")
    if len(series) > 1:
        named = "; ".join(_title(images) for images in list(series.values())[:_NAMED])
        raise MapFileError(
            f"Expected the images of one series in {folder}, but there are {len(series)} series: {named}"
            f"{' …' if len(series) > _NAMED else ''}. Give the folder of the one that the map was made from."
        )
    (images,) = series.values()
    with explained(folder, "holds images that do not make a volume"):
        return _volume(folder, list(images.values()))


def _headers(folder: Path) -> Iterator[tuple[str, str, Any]]:
    """The header of each image, with the UIDs of its series and of itself."""
    files = series_files(folder)
    if len(files) > _MOST_FILES:
        raise MapFileError(f"The folder {folder} has {len(files):,} DICOM files. Give that of one series.")
    for path in files:
        with explained(path, "cannot be read as a DICOM image"):
            data = read_header(path)
            is_image = "Rows" in data and ("ImagePositionPatient" in data or "PerFrameFunctionalGroupsSequence" in data)
            identity = str(data.get("SeriesInstanceUID")), str(data.get("SOPInstanceUID"))
        if is_image:  # not a report, nor an index of the folder
            yield *identity, data


def _title(images: dict[str, Any]) -> str:
    with suppress(Exception):  # of a damaged header
        first = next(iter(images.values()))
        return f"{first.get('SeriesDescription') or 'without a description'} ({len(images)} images)"
    return f"{len(images)} images"


def _volume(folder: Path, images: list[Any]) -> ImageSeries:
    if len(images) == 1 and "PerFrameFunctionalGroupsSequence" in images[0]:
        image = optional("highdicom", "dicom", "Reading DICOM").Image.from_dataset(images[0], copy=False)
        geometry = image.get_volume_geometry()
        if geometry is None:
            raise MapFileError(f"The frames of the image in {folder} do not make a volume.")
        grid = VoxelGrid.placed(folder, geometry.spatial_shape, to_ras(geometry.affine))
        return ImageSeries(tuple(images), grid)
    if len({(*map(float, one.ImageOrientationPatient), one.Rows, one.Columns) for one in images}) > 1:
        raise MapFileError(f"The images in {folder} are not parallel, or not of one size: they do not make a volume.")
    along, down = np.reshape(np.array(images[0].ImageOrientationPatient, dtype=np.float64), (2, 3))
    images.sort(key=lambda one: float(_position(one) @ np.cross(along, down)))
    affine = np.eye(4)
    affine[:3, 0] = _step(folder, images, np.cross(along, down))
    affine[:3, 1] = float(images[0].PixelSpacing[0]) * down
    affine[:3, 2] = float(images[0].PixelSpacing[1]) * along
    affine[:3, 3] = _position(images[0])
    shape = len(images), int(images[0].Rows), int(images[0].Columns)
    return ImageSeries(tuple(images), VoxelGrid.placed(folder, shape, to_ras(affine)))


def _position(image: Any) -> NDArray[np.float64]:
    return np.array(image.ImagePositionPatient, dtype=np.float64)


def _step(folder: Path, images: list[Any], normal: NDArray[np.float64]) -> NDArray[np.float64]:
    """From slice to slice, which must be the same for all."""
    if len(images) == 1:
        return normal * float(images[0].get("SpacingBetweenSlices") or images[0].SliceThickness)
    steps = np.diff([_position(one) for one in images], axis=0)
    mean: NDArray[np.float64] = steps.mean(axis=0)
    if np.abs(steps - mean).max() > _UNEVEN * np.linalg.norm(mean):
        raise MapFileError(
            f"The slices in {folder} do not lie at equal distances: some are missing, or there are several of a place."
        )
    return mean

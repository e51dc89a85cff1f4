"""Folders, files and lists → the images that a network is to predict, checked against what it expects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ConfigError
from lesioncount.files.formats import open_map
from lesioncount.learning import layout
from lesioncount.learning.cohort import SEQUENCES
from lesioncount.learning.expected import Expected
from lesioncount.learning.folder import FolderCohort, read_cohort
from lesioncount.learning.own_data import size_of
from lesioncount.learning.own_scans import read_channels
from lesioncount.learning.picture_files import PictureFiles, find_pictures
from lesioncount.learning.pictures import is_nifti


@dataclass(frozen=True, eq=False)
class PreparedImage:
    """An image as a network is given it.

    Attributes
    ----------
    channels : ndarray of float32, shape (channels, *spatial)
    affine : ndarray, shape (4, 4), or None
        Where the voxels of a NIfTI file lie.
    spacing_mm : tuple of float, or None
        Of a NIfTI file, in its own order.
    """

    channels: NDArray[np.float32]
    affine: NDArray[np.float64] | None = None
    spacing_mm: tuple[float, ...] | None = None


@dataclass(frozen=True, eq=False)
class ImageToPredict:
    """An image that is read when its turn comes, and the name of its map."""

    map_name: str
    read: Callable[[], PreparedImage]


def images_to_predict(
    inputs: Sequence[str | Path], expected: Expected, network: Path, *, leave_out: Path
) -> list[ImageToPredict]:
    """All images that are meant; raises unless each has the channels and axes that the network expects.

    Parameters
    ----------
    inputs : sequence of path
        As in `find_pictures`; or a BIDS-like folder, for a network of its sequences.
    expected : Expected
    network : Path
        Of the checkpoint, for messages.
    leave_out : Path
        A folder that is not searched: that of the maps.
    """
    is_cohort = len(inputs) == 1 and (Path(inputs[0]) / layout.SCANS).is_file()
    if is_cohort and (expected.n_channels, expected.n_axes) == (len(SEQUENCES), 3) and not expected.suffixes:
        cohort = read_cohort(inputs[0], normalize=expected.intensities == "brain")
        return [
            ImageToPredict(f"{row.name}.nii.gz", partial(_visit, cohort, place))
            for place, row in enumerate(cohort.rows)
        ]
    pictures = find_pictures(inputs, channels=expected.suffixes, leave_out=[leave_out])
    for files in pictures:
        size = size_of(files)
        if not expected.allows(size):
            hint = ""
            if expected.n_axes == 3 and len(size.shape) == 3 and expected.n_channels == len(SEQUENCES):
                hint = f" Where sequences are files of their own, a table {layout.SCANS} says which belong together."
            raise ConfigError(
                f"The network of {network} was trained on images with {expected}, but {files.paths[0]} has {size}."
                f"{hint}"
            )
    ending = {True: ".nii.gz", False: ".npy"}
    return [
        ImageToPredict(
            f"{files.name}{ending[is_nifti(files.paths[0])]}", partial(_picture, files, expected.intensities)
        )
        for files in pictures
    ]


def _visit(cohort: FolderCohort, place: int) -> PreparedImage:
    scan = cohort.scan(place)
    return PreparedImage(scan.images, scan.affine)


def _picture(files: PictureFiles, intensities: str) -> PreparedImage:
    channels = read_channels(files, intensities)
    if not is_nifti(files.paths[0]):
        return PreparedImage(channels)
    first = open_map(files.paths[0], channel=0)
    return PreparedImage(channels, first.affine, first.spacing_mm)


def write_map(path: Path, probabilities: NDArray[np.float32], image: PreparedImage) -> None:
    """Write a map on the grid of its image: as ``.nii.gz`` where that has one, as ``.npy`` where not."""
    import nibabel

    if path.name.endswith(".npy"):
        with path.open("wb") as file:
            np.save(file, probabilities)
        return
    map_image = nibabel.Nifti1Image(probabilities.T, image.affine)  # files are in the order x, y, z
    if image.affine is None and image.spacing_mm is not None:
        map_image.header.set_zooms(image.spacing_mm)
    nibabel.save(map_image, path)

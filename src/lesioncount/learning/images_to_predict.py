"""Folders, files and lists → the images that a network is to predict, checked against what it expects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ConfigError
from lesioncount.files import nifti
from lesioncount.files.geometry import VoxelGrid
from lesioncount.learning.expected import Expected
from lesioncount.learning.picture_files import find_pictures
from lesioncount.learning.pictures import Picture, open_picture, picture_ending


def images_to_predict(
    inputs: Sequence[str | Path], expected: Expected, network: Path, *, leave_out: Path
) -> dict[str, Picture]:
    """All images that are meant, by the names of their maps; raises unless each has the channels and axes expected.

    Parameters
    ----------
    inputs : sequence of path
        As in `find_pictures`.
    expected : Expected
    network : Path
        Of the checkpoint, for messages.
    leave_out : Path
        A folder that is not searched: that of the maps.
    """
    images = {}
    for files in find_pictures(inputs, channels=expected.suffixes, leave_out=[leave_out]):
        picture = open_picture(files.paths)
        if not expected.allows(picture):
            raise ConfigError(
                f"The network of {network} was trained on images with {expected}, but {files.paths[0]} has {picture}."
            )
        ending = ".nii.gz" if picture_ending(files.paths[0]) in nifti.ENDINGS else ".npy"
        images[f"{files.name}{ending}"] = picture
    return images


def write_map(path: Path, probabilities: NDArray[np.float32], grid: VoxelGrid) -> None:
    """Write a map on the grid of its image: as ``.nii.gz`` where that is NIfTI, as ``.npy`` where not."""
    import nibabel

    if path.name.endswith(".npy"):
        with path.open("wb") as file:
            np.save(file, probabilities)
        return
    map_image = nibabel.Nifti1Image(probabilities.T, grid.affine)  # files are in the order x, y, z
    if grid.affine is None and grid.spacing_mm is not None:
        map_image.header.set_zooms(grid.spacing_mm)
    nibabel.save(map_image, path)

"""NRRD and MetaImage files, through SimpleITK."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lesioncount.errors import MapFileError
from lesioncount.io.arrays import source_of_array
from lesioncount.io.optional import optional
from lesioncount.io.source import MapSource, checked_affine

ENDINGS = (".nrrd", ".nhdr", ".mha", ".mhd")


def open_itk(path: Path, channel: int | None = None) -> MapSource:
    """A ``.nrrd``, ``.nhdr``, ``.mha`` or ``.mhd`` file."""
    sitk = optional("SimpleITK", "itk", f"Reading {path.suffix} files")
    try:
        image = sitk.ReadImage(str(path))
    except RuntimeError as error:
        raise MapFileError(f"{path} cannot be read: {str(error).strip().splitlines()[-1]}") from None
    array = sitk.GetArrayFromImage(image).T  # ITK arrays are (z, y, x), and (z, y, x, channel)
    if image.GetNumberOfComponentsPerPixel() == 1 and array.ndim == 4:
        array = np.moveaxis(array, -1, 0)
    n_axes = min(image.GetDimension(), 3)
    affine = np.eye(4)
    direction = np.array(image.GetDirection()).reshape(image.GetDimension(), -1)[:n_axes, :n_axes]
    affine[:n_axes, :n_axes] = direction * np.array(image.GetSpacing()[:n_axes])
    affine[:n_axes, 3] = image.GetOrigin()[:n_axes]
    affine[:2] *= -1  # ITK counts millimetres to the left and to the back: LPS
    return source_of_array(path, array, channel, "ITK", checked_affine(path, affine))

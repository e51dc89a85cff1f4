"""NRRD and MetaImage files, through SimpleITK."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from lesioncount.errors import MapFileError
from lesioncount.files.arrays import source_of_array
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.source import MapSource, chosen_channel
from lesioncount.optional import optional

ENDINGS = (".nrrd", ".nhdr", ".mha", ".mhd")
HEADERS = (".nhdr", ".mhd")  # whose voxels are in other files

_HEADER_BYTES = 1 << 16


def open_itk(path: Path, channel: int | None = None) -> MapSource:
    """A ``.nrrd``, ``.nhdr``, ``.mha`` or ``.mhd`` file."""
    sitk = optional("SimpleITK", "itk", f"Reading {path.suffix} files")
    try:
        image = sitk.ReadImage(str(path))
    except RuntimeError as error:
        raise MapFileError(f"{path} cannot be read: {str(error).strip().splitlines()[-1]}") from None
    array = sitk.GetArrayFromImage(image).T  # ITK arrays are (z, y, x) or (t, z, y, x), with components last
    n_components = image.GetNumberOfComponentsPerPixel()
    if n_components == 1 and image.GetDimension() == 4:
        array, n_components = np.moveaxis(array, -1, 0), array.shape[-1]
    chosen = chosen_channel(path, n_components, channel)
    if n_components > 1 or image.GetDimension() == 4:
        array = array[chosen]
    n_axes = min(image.GetDimension(), 3)
    affine = np.eye(4)
    direction = np.array(image.GetDirection()).reshape(image.GetDimension(), -1)[:n_axes, :n_axes]
    affine[:n_axes, :n_axes] = direction * np.array(image.GetSpacing()[:n_axes])
    affine[:n_axes, 3] = image.GetOrigin()[:n_axes]
    affine[:2] *= -1  # ITK counts millimetres to the left and to the back: LPS
    grid = VoxelGrid.placed(path, array.shape, affine)
    return replace(source_of_array(path, array, None, "ITK", grid), n_channels=n_components)


def data_files(path: Path) -> list[Path]:
    """The files that a header without voxels names."""
    text = path.read_bytes()[:_HEADER_BYTES].decode("latin-1")
    names = re.findall(r"^(?:ElementDataFile *= *|data *file: *)([^\r\n]+)", text, re.MULTILINE | re.IGNORECASE)
    return [file for name in names if (file := path.parent / name.strip()).is_file()]

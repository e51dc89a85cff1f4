"""Which reader a path belongs to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from lesioncount.errors import LesionCountError, MapFileError
from lesioncount.files import arrays, dicom, itk, nifti, nnunet, zarr_store
from lesioncount.files.source import MapSource

_READERS: dict[str, Callable[[Path, int | None], MapSource]] = {
    **dict.fromkeys(nifti.ENDINGS, nifti.open_nifti),
    **dict.fromkeys(itk.ENDINGS, itk.open_itk),
    **dict.fromkeys(dicom.ENDINGS, dicom.open_dicom),
    ".npy": arrays.open_npy,
    ".npz": arrays.open_npz,
    ".zarr": zarr_store.open_zarr,
}


def open_map(
    path: str | os.PathLike[str], *, channel: int | None = None, scale: float | None = None, logits: bool = False
) -> MapSource:
    """Open a file as a map; its voxels are read when they are asked for.

    Parameters
    ----------
    path : path
        A NIfTI (``.nii``, ``.nii.gz``), numpy (``.npy``, ``.npz``), nnU-Net (``.npz``), zarr, NRRD, MetaImage or
        DICOM SEG file.
    channel : int, optional
        Which map, where the file holds several.
    scale : float, optional
        What one unit of the values is worth, on top of a scale that the file itself has.
    logits : bool, default False
        Whether the values are logits.
    """
    path = Path(path)
    try:
        there = path.exists()
    except OSError as error:  # a name that is too long
        raise MapFileError(f"{str(path)[:80]} cannot be looked at: {error.strerror}.") from None
    if not there:
        raise MapFileError(f"{path} does not exist.")
    ending = map_ending(path)
    if ending is None:
        raise MapFileError(f"{path} is not a kind of file that is known. Known are {', '.join(_READERS)}.")
    try:
        return _open(path, ending, channel).read_as(scale=scale, logits=logits)
    except LesionCountError:
        raise
    except OSError as error:
        raise MapFileError(f"{path} cannot be read: {error.strerror or error}.") from None


def files_of(path: Path) -> list[Path]:
    """A file, and those without which it means something else: data files, segmentations."""
    ending = map_ending(path)
    if ending in itk.HEADERS:
        return [path, *itk.data_files(path)]
    return [path, *nnunet.files_beside(path)] if ending == ".npz" and nnunet.is_nnunet(path) else [path]


def map_ending(path: Path) -> str | None:
    """The ending of a path that may be a map, None for others."""
    name = path.name.lower()
    if any(os.path.isfile(path / meta) for meta in (".zarray", "zarr.json")):  # noqa: PTH113 - takes any name
        return ".zarr"  # whatever it is called, such as an array inside a group
    return next((ending for ending in _READERS if name.endswith(ending) and name != ending), None)


def scan_name(path: Path) -> str:
    """The name of the file without its ending."""
    ending = map_ending(path) or ""
    return path.name[: -len(ending)] if ending and path.name.lower().endswith(ending) else path.name


def _open(path: Path, ending: str, channel: int | None) -> MapSource:
    if ending != ".zarr" and not path.is_file():
        raise MapFileError(f"{path} is {'a folder' if path.is_dir() else 'not a regular file'}.")
    if ending != ".zarr" and path.stat().st_size == 0:
        raise MapFileError(f"{path} is empty.")
    if ending == ".npz" and nnunet.is_nnunet(path):
        return nnunet.open_nnunet(path, channel)
    return _READERS[ending](path, channel)

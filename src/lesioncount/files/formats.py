"""Which reader a path belongs to, and what tells whether a file that lives elsewhere was changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

from lesioncount.errors import LesionCountError, MapFileError
from lesioncount.files import (
    arrays,
    dicom,
    hdf5,
    metaimage,
    nifti,
    nnunet,
    nrrd,
    png,
    tiff,
    zarr_description,
    zarr_store,
)
from lesioncount.files.byte_streams import check_regular, short
from lesioncount.files.dicom import open_dicom_mask
from lesioncount.files.dicom_header import SEGMENTATIONS, is_other_dicom, sop_class
from lesioncount.files.remote_path import RemotePath, to_path
from lesioncount.files.source import MapSource
from lesioncount.files.zarr_listing import listing_of

_READERS: dict[str, Callable[[Path, int | None], MapSource]] = {
    **dict.fromkeys(nifti.ENDINGS, nifti.open_nifti),
    **dict.fromkeys(nrrd.ENDINGS, nrrd.open_nrrd),
    **dict.fromkeys(metaimage.ENDINGS, metaimage.open_metaimage),
    **dict.fromkeys(dicom.ENDINGS, dicom.open_dicom),
    **dict.fromkeys(tiff.ENDINGS, tiff.open_tiff),
    **dict.fromkeys(png.ENDINGS, png.open_png),
    **dict.fromkeys(hdf5.ENDINGS, hdf5.open_hdf5),
    ".npy": arrays.open_npy,
    ".npz": arrays.open_npz,
    **dict.fromkeys(zarr_store.ENDINGS, zarr_store.open_zarr),
}


def open_map(
    path: str | os.PathLike[str],
    *,
    channel: int | None = None,
    scale: float | None = None,
    logits: bool = False,
    level: int | None = None,
) -> MapSource:
    """Open a file as a map; its voxels are read when they are asked for.

    Parameters
    ----------
    path : path
        A NIfTI (``.nii``, ``.nii.gz``), numpy (``.npy``, ``.npz``), nnU-Net (``.npz``), zarr, NRRD, MetaImage,
        DICOM SEG, TIFF, OME-TIFF, PNG or HDF5 file; or the address of a NIfTI file or a zarr store: ``s3://``, ``gs://``,
        ``https://``.
    channel : int, optional
        Which map, where the file holds several.
    scale : float, optional
        What one unit of the values is worth, on top of a scale that the file itself has.
    logits : bool, default False
        Whether the values are logits.
    level : int, optional
        Which resolution of an OME-Zarr image, where 0, the default, is the finest.
    """
    return _explained(to_path(path), lambda file, ending: _open(file, ending, channel, level)).read_as(
        scale=scale, logits=logits
    )


def check_map(path: Path, *, channel: int | None = None, scale: float | None = None, **how: Any) -> None:
    """Raise what can be known to be wrong with a map, and with how it is to be read, before its voxels are."""
    if _checked_ending(path) != ".npz":
        open_map(path, channel=channel, scale=scale, **how).check_scale()
    elif nnunet.is_nnunet(path):
        nnunet.checked_channel(path, channel)


def open_mask(path: str | os.PathLike[str], /) -> MapSource:
    """Open a file as a mask, whose values are labels: as `open_map`, and also DICOM SEG that are no probabilities."""
    file = to_path(path)
    if not isinstance(file, RemotePath) and map_ending(file) in dicom.ENDINGS:
        return _explained(file, lambda file, _: open_dicom_mask(file))
    return open_map(path)


def files_of(path: Path) -> tuple[Path, ...]:
    """All files that are read for a map: the `MapSource.files` of it, without reading its voxels."""
    ending = _checked_ending(path)
    if ending == ".zarr":
        return tuple(listing_of(path).files)
    if ending in (*nrrd.ENDINGS, *metaimage.ENDINGS):
        return _READERS[ending](path, 0).files
    return nnunet.files_read(path) if ending == ".npz" and nnunet.is_nnunet(path) else (path,)


def map_ending(path: Path) -> str | None:
    """The ending of a path that may be a map, None for others."""
    if isinstance(path, RemotePath):  # asked only if its name does not say it
        ending = _ending_in(path.name) or (".zarr" if zarr_description.is_remote_zarr(path) else None)
        return ".zarr" if ending in zarr_store.ENDINGS else ending
    # Most are files, which a single look tells; a name that is too long is neither.
    return folder_ending(path) if os.path.isdir(path) else file_ending(path)  # noqa: PTH112 - takes any name


def folder_ending(path: Path) -> str | None:
    """The same of what is known to be a folder on this machine."""
    if any((path / meta).is_file() for meta in zarr_description.METADATA):
        return ".zarr"  # whatever it is called, such as an array inside a group
    if _ending_in(path.name) is None and zarr_description.is_ome_group(path):
        return ".zarr"
    return file_ending(path)


def file_ending(path: Path) -> str | None:
    """The same of what is known to be none."""
    ending = _ending_in(path.name)
    if ending is None:
        return ".dcm" if sop_class(path) in SEGMENTATIONS else None  # hospitals often write no ending
    if ending in zarr_store.ENDINGS:
        return ".zarr"
    return None if ending in dicom.ENDINGS and is_other_dicom(path) else ending


def is_large_volume(path: Path, level: int | None = None) -> bool:
    """Whether a map is an array that is never held as a whole. What is wrong with it is for others to say."""
    with suppress(LesionCountError, OSError, ValueError):  # no name of a file, a circle of links
        return map_ending(path) == ".zarr" and zarr_store.is_large(path, level)
    return False


def scan_name(path: PurePath) -> str:
    """The name of the file without its ending, whether it is there or not."""
    ending = _ending_in(path.name)
    return path.name if ending is None else path.name[: -len(ending)]


def _ending_in(name: str) -> str | None:
    lower = name.lower()
    for ending in _READERS:  # a generator takes twice as long, and very many are asked
        if lower.endswith(ending) and lower != ending:
            return ending
    return None


def _explained(path: Path, open_it: Callable[[Path, str], MapSource]) -> MapSource:
    """Open a file that is there and of a kind that is known; whatever goes wrong is said with its name."""
    ending = _checked_ending(path)
    try:
        return open_it(path, ending)
    except LesionCountError:
        raise
    except MemoryError:
        raise MapFileError(f"{path} does not fit into memory. It is damaged, or too large.") from None
    except OSError as error:
        raise MapFileError(f"{path} cannot be read: {error.strerror or error}.") from None


def _checked_ending(path: Path) -> str:
    """The ending of a map that is there, and of a kind that can be opened without waiting for anybody."""
    ending = map_ending(path)
    if isinstance(path, RemotePath):
        return _checked_remote(path, ending)
    if ending != ".zarr" or not _is_folder(path):
        try:
            check_regular(path)
        except MapFileError as error:
            if ending is None and _is_folder(path):
                raise MapFileError(_unknown(path)) from None
            raise error from None
    if ending is None:
        raise MapFileError(_unknown(path))
    return ending


def _checked_remote(path: RemotePath, ending: str | None) -> str:
    """The ending of a map elsewhere: of a kind that is read as it comes."""
    if ending == ".zarr":
        return ending
    if ending is None:
        raise MapFileError(_unknown(path))
    if ending not in nifti.ENDINGS:
        raise MapFileError(
            f"{path}: only NIfTI (.nii, .nii.gz) and zarr are read from elsewhere, not {ending}. Copy it to this "
            "machine first."
        )
    check_regular(path)
    return ending


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long
        return False


def _unknown(path: Path) -> str:
    if not isinstance(path, RemotePath) and is_other_dicom(path):
        return f"{short(path)} is not a DICOM segmentation (SEG), but a file of the class {dicom.class_name(path)}."
    listed = (
        ""
        if not isinstance(path, RemotePath) or path.is_listed
        else (" What is on a server cannot be listed: give the address of each map.")
    )
    return f"{short(path)} is not a kind of file that is known. Known are {', '.join(_READERS)}.{listed}"


def _open(path: Path, ending: str, channel: int | None, level: int | None) -> MapSource:
    if ending == ".zarr":
        return zarr_store.open_zarr(path, channel, level)
    if level is not None:
        raise MapFileError(f"{short(path)} has no resolution levels: leave --level out (from Python: level).")
    if ending == ".npz" and nnunet.is_nnunet(path):
        return nnunet.open_nnunet(path, channel)
    return _READERS[ending](path, channel)


def version_of(path: RemotePath) -> str | None:
    """The version of an object, or of all objects of a zarr store; None if the server tells none.

    It never looks like a SHA-256 of content: ``etag "9b2c…", 1234 bytes`` or ``etags 1f0e…, 512 objects``.
    """
    if map_ending(path) == ".zarr":
        return listing_of(path).version
    state = path.state()
    return None if state.version is None else f"etag {state.version}, {state.size} bytes"

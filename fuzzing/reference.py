"""The paper's count of a map, read without the library: what a count must equal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from fuzzing.cases import Numbers

# Values this close to the threshold may fall on either side of it, with a scale in single or double precision.
_CLOSE = 1e-6

# Larger maps are not counted again: they are accepted only if they are in the file, and none of ours is so large.
_MOST_VOXELS = 1 << 24


def plain_count(
    values: NDArray[Any], threshold: float = 0.1, neighbours: int = 2, min_voxels: int = 1
) -> Numbers | None:
    """Candidates and their peaks, by scipy; None where rounding decides."""
    if values.ndim not in (2, 3) or values.size == 0 or values.size > _MOST_VOXELS:
        return None
    if values.dtype.kind in "biu":
        values = values.astype(np.float32)
    if np.any(np.abs(values.astype(np.float64) - threshold) < _CLOSE):
        return None
    structure = ndimage.generate_binary_structure(values.ndim, min(neighbours, values.ndim))
    labels, n = ndimage.label(values > threshold, structure)
    index = np.arange(1, n + 1)
    peaks = np.atleast_1d(ndimage.maximum(values.astype(np.float64), labels, index)) if n else np.empty(0)
    peaks = np.minimum(peaks, 1)  # what is above 1 by rounding is taken as 1
    kept = np.bincount(labels.ravel(), minlength=n + 1)[1:] >= min_voxels
    return Numbers(int(kept.sum()), tuple(sorted(peaks[kept].tolist())))


def read_nifti(path: Path, channel: int | None) -> NDArray[Any]:
    """Through nibabel, scaled as it does."""
    import nibabel

    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        import gzip

        content = gzip.decompress(content)
    kind: Any = (
        nibabel.Nifti2Image if content[:4] in (b"\x1c\x02\x00\x00", b"\x00\x00\x02\x1c") else nibabel.Nifti1Image
    )
    image = kind.from_bytes(content)
    if image.header.get_data_offset() == 0:
        raise ValueError("nibabel takes the header for voxels")
    # As stored where there is no scale: a threshold is compared in the type of the map.
    values = np.asanyarray(image.dataobj)
    return _channel_last(values, channel)


def read_numpy(path: Path, channel: int | None) -> NDArray[Any]:
    """Through numpy."""
    loaded = np.load(path, allow_pickle=False)
    values: NDArray[Any] = loaded if isinstance(loaded, np.ndarray) else loaded[loaded.files[0]]
    return values if values.ndim < 4 else values[channel or 0]


def read_zarr(path: Path, channel: int | None) -> NDArray[Any]:
    """Through zarr, all at once."""
    import zarr

    array = zarr.open_array(str(path), mode="r")
    if int(np.prod(array.shape, dtype=object)) > _MOST_VOXELS:
        raise ValueError("too large to be read at once")
    values = np.asarray(array[:])
    return values if values.ndim < 4 else values[channel or 0]


def read_itk(path: Path, channel: int | None) -> NDArray[Any]:
    """Through SimpleITK."""
    import SimpleITK as sitk  # noqa: N813 - as its manual has it

    image = sitk.ReadImage(str(path))
    values: NDArray[Any] = sitk.GetArrayFromImage(image)
    if image.GetNumberOfComponentsPerPixel() > 1:
        return values[..., channel or 0]
    return values[channel or 0] if values.ndim == 4 else values


def read_tiff(path: Path, channel: int | None) -> NDArray[Any]:
    """Through SimpleITK, and with it libtiff; an error where it reads less than there is."""
    import tifffile

    with tifffile.TiffFile(path) as file:
        kind, n_pages = file.pages.first.dtype, len(file.pages)
    values = read_itk(path, channel)
    if channel is not None or n_pages != (len(values) if values.ndim == 3 else 1):
        raise ValueError("planes of which some are those of another channel, or are not described")
    if kind is None or values.dtype != kind or kind.str[1:] in ("f2", "b1"):
        raise ValueError("a type that it takes for another")
    return values[0] if values.ndim == 3 and len(values) == 1 else values


def read_metaimage(path: Path, channel: int | None) -> NDArray[Any]:
    """Through SimpleITK, which must be told how many compressed bytes there are in the file of the header.

    Where the header does not say so, it inflates from the wrong place, fails, and gives memory that nothing was
    written into.
    """
    head, last, voxels = path.read_bytes().partition(b"ElementDataFile = LOCAL\n")
    is_compressed = re.search(rb"^ *CompressedData *= *[Tt1]", head, re.MULTILINE)
    if not last or not is_compressed or re.search(rb"^ *CompressedDataSize *=", head, re.MULTILINE):
        return read_itk(path, channel)
    told = path.with_name("told.mha")
    told.write_bytes(head + b"CompressedDataSize = %d\n" % len(voxels) + last + voxels)
    return read_itk(told, channel)


def read_dicom(path: Path, _: int | None) -> NDArray[Any]:
    """The frames, through pydicom, in the order of their places; an error where they are not a plain stack."""
    import pydicom

    data = pydicom.dcmread(path)
    if data.PixelRepresentation != 0:
        raise ValueError("signed voxels, which no segmentation has")
    frames = np.asarray(data.pixel_array, dtype=np.float64) / float(data.MaximumFractionalValue)
    groups = data.PerFrameFunctionalGroupsSequence
    heights = [float(group.PlanePositionSequence[0].ImagePositionPatient[2]) for group in groups]
    # Where the distance is said to be another, frames that are not there are empty.
    said = data.SharedFunctionalGroupsSequence[0].PixelMeasuresSequence[0].SpacingBetweenSlices
    if frames.ndim != 3 or len(heights) != len(frames) or np.abs(np.diff(sorted(heights)) - said).max() > 1e-3:
        raise ValueError("no plain stack of frames")
    return frames[np.argsort(heights)].astype(np.float32)


def _channel_last(values: NDArray[Any], channel: int | None) -> NDArray[Any]:
    if values.ndim <= 3:
        return values
    return values.reshape(*values.shape[:3], -1, order="F")[..., channel or 0]

"""DICOM Segmentation objects through highdicom: fractional values as maps, segments as masks."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.errors import MapFileError
from lesioncount.files.arrays import source_of_array
from lesioncount.files.byte_streams import HIGHEST_RATIO, explained, inflated_size
from lesioncount.files.dicom_header import sop_class
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.source import MapSource, chosen_channel, planes_of
from lesioncount.optional import optional

ENDINGS = (".dcm",)

# What the standard has for fractional segmentations: eight bits allocated and stored, without a sign.
_BYTES = (8, 8, 7, 0)

# Frames without lesions may be left out of a file, and come back as slices of zeros: so many for each that is there.
_FEW_SLICES, _SLICES_PER_FRAME = 1000, 100

# What a small file may become, as a volume of bytes and where all of it is deflated: pydicom then holds it three times.
_MOST_VOXELS, _MOST_INFLATED = 1 << 30, 1 << 28

# The preamble, the letters DICM, and the element that says how long the rest of the file's own header is.
_BEFORE_META = 128 + 4 + 12


def open_dicom(path: Path, channel: int | None = None) -> MapSource:
    """A DICOM SEG of type FRACTIONAL; a channel is a segment, counted from 0."""
    highdicom = optional("highdicom", "dicom", "Reading DICOM")
    with explained(path, "is not a DICOM segmentation"):
        seg = segmentation(path)
        kind, n_segments = seg.segmentation_type, int(seg.number_of_segments)
        is_occupancy = seg.get("SegmentationFractionalType") == "OCCUPANCY"
    if kind != highdicom.seg.SegmentationTypeValues.FRACTIONAL:
        raise MapFileError(
            f"{path} is a {kind.value} segmentation, without probabilities. Export it as FRACTIONAL. (As a mask or as "
            "the truth it can be used as it is.)"
        )
    if is_occupancy:
        raise MapFileError(f"{path} says how much of a voxel is filled (OCCUPANCY), not how probable it is.")
    chosen = chosen_channel(path, n_segments, channel, "segments")
    with explained(path, "has frames that do not make a volume"):
        _check_bytes(path, seg)
        check_frames(path, seg)
        # The affine of the volume, not of the file: highdicom may reverse the slices, or add those that are empty.
        volume = seg.get_volume(
            segment_numbers=[seg.segment_numbers[chosen]],
            combine_segments=False,
            rescale_fractional=False,
            dtype=np.uint8,
        )
        stored, highest = np.asarray(volume.array)[..., 0], int(seg.MaximumFractionalValue)
    if not max(1, int(stored.max())) <= highest:
        raise MapFileError(f"{path}: the highest value is {stored.max()}, but the header says that it is {highest}.")
    grid = VoxelGrid.placed(path, stored.shape, to_ras(volume.affine))
    return MapSource(
        grid, "DICOM SEG", np.dtype(np.float32), 0, lambda: _pieces(stored, highest), n_channels=n_segments
    )


def segmentation(path: Path) -> Any:
    """The segmentation in a file, which is known to hold what it promises."""
    highdicom = optional("highdicom", "dicom", "Reading DICOM")
    return highdicom.seg.Segmentation.from_dataset(_dataset(path), copy=False)


def read_header(path: Path) -> Any:
    """All elements of an image but its pixels."""
    pydicom = optional("pydicom", "dicom", "Reading DICOM")
    _check_deflated(path)
    with _Bounded(path) as file:
        return pydicom.dcmread(file, stop_before_pixels=True)


def to_ras(affine: ArrayLike) -> NDArray[np.float64]:
    """An affine in the axes of DICOM (left, posterior, superior) in ours (right, anterior, superior), or back."""
    return np.diag([-1.0, -1.0, 1.0, 1.0]) @ np.asarray(affine, dtype=np.float64)


def check_frames(path: Path, seg: Any) -> None:
    """Raise if a frame is of no segment, or lies where no slice can be."""
    _check_segments(path, seg)
    _check_slices(path, seg)


def class_name(path: Path) -> str:
    """What a DICOM file says it is, in words where they are known."""
    uid = sop_class(path) or "unknown"
    with suppress(ImportError):
        from pydicom.uid import UID

        return UID(uid).name
    return uid


def _pieces(stored: NDArray[np.uint8], highest: int) -> Iterator[NDArray[np.float32]]:
    """Probabilities, some planes at a time: as a whole, they would take several times the memory of the bytes."""
    return (planes.astype(np.float32) / np.float32(highest) for planes in planes_of(stored, itemsize=4))


def _dataset(path: Path) -> Any:
    """All elements of a file, which is known to hold what it promises, before there is room made for it."""
    pydicom = optional("pydicom", "dicom", "Reading DICOM")
    _check_deflated(path)
    with _Bounded(path) as file:
        data = pydicom.dcmread(file)
    n_frames = int(data.get("NumberOfFrames") or 1)
    n_described = len(data.PerFrameFunctionalGroupsSequence)
    if n_frames != n_described:
        raise MapFileError(f"{path}: the header says {n_frames} frames, but describes {n_described}. It is damaged.")
    promised = int(data.Rows) * int(data.Columns) * n_frames * int(data.BitsAllocated) // 8
    held = len(data.PixelData)
    if data.file_meta.TransferSyntaxUID.is_encapsulated:
        held = min(held * HIGHEST_RATIO["gzip"], max(held, _MOST_VOXELS))
    if promised > held:
        raise MapFileError(
            f"{path}: the header promises {promised:,} bytes, but the file cannot hold more than {held:,}, so that its "
            "frames do not make a volume. It is truncated, or its header is damaged."
        )
    return data


class _Bounded(io.BufferedReader):
    """A file of which nobody asks for more than there is: pydicom asks for what an element claims, up to 4 GB."""

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path))
        self._size = path.stat().st_size

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(self._size - self.tell(), 0)
        return super().read(left if size is None or size < 0 else min(size, left))


def _check_deflated(path: Path) -> None:
    """Raise if a file is deflated and becomes too large: it would be inflated as a whole, whatever is read of it."""
    reader = optional("pydicom", "dicom", "Reading DICOM").filereader
    with _Bounded(path) as file:
        reader.read_preamble(file, force=False)
        meta = reader._read_file_meta_info(file)  # noqa: SLF001 - the public one takes nothing but names
    if not meta.TransferSyntaxUID.is_deflated:
        return
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(_BEFORE_META + int(meta.FileMetaInformationGroupLength))
        most = max(_MOST_INFLATED, size)
        if inflated_size(file, size, most, -zlib.MAX_WBITS) > most:
            raise MapFileError(f"{path} becomes more than {_MOST_INFLATED >> 20} MB when it is inflated.")


def _check_bytes(path: Path, seg: Any) -> None:
    stored = tuple(seg.get(name) for name in ("BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation"))
    if stored != _BYTES:
        raise MapFileError(f"{path}: a FRACTIONAL segmentation has unsigned bytes, but its header says otherwise.")


def _check_segments(path: Path, seg: Any) -> None:
    """Raise if a frame is of a segment that the file does not have: it would be missing in all of them."""
    if seg.SegmentationType == "LABELMAP":  # its voxels say which segment they are of
        return
    shared = seg.SharedFunctionalGroupsSequence[0]
    known = set(seg.segment_numbers)
    for frame in seg.PerFrameFunctionalGroupsSequence:
        group = frame if "SegmentIdentificationSequence" in frame else shared
        number = group.SegmentIdentificationSequence[0].ReferencedSegmentNumber
        if number not in known:
            raise MapFileError(
                f"{path}: a frame belongs to segment {number}, but the file has {sorted(known)}. It is damaged."
            )


def _check_slices(path: Path, seg: Any) -> None:
    """Raise if frames lie so far apart that what is between them is no part of a scan, or takes too much room."""
    geometry, n_frames = seg.get_volume_geometry(), int(seg.number_of_frames)
    n_slices = 0 if geometry is None else int(geometry.spatial_shape[0])
    n_voxels = n_slices * int(seg.Rows) * int(seg.Columns)
    if n_slices > max(_FEW_SLICES, _SLICES_PER_FRAME * n_frames) or n_voxels > max(_MOST_VOXELS, len(seg.PixelData)):
        raise MapFileError(
            f"{path}: its {n_frames} frames lie as far apart as {n_slices:,} slices. Their positions are damaged."
        )


# Of segment numbers, which have 16 bits.
_LABELS = np.dtype(np.uint16)


def open_dicom_mask(path: Path) -> MapSource:
    """A DICOM SEG of type BINARY or LABELMAP, with the numbers of its segments; one of type FRACTIONAL as it is."""
    with explained(path, "is not a DICOM segmentation"):
        seg = segmentation(path)
        kind, is_of_instances = str(seg.SegmentationType), _has_instances(seg)
    if kind == "FRACTIONAL":
        return open_dicom(path)
    with explained(path, "cannot be read as a mask"):
        check_frames(path, seg)
        volume = seg.get_volume(combine_segments=True, relabel=False, dtype=_LABELS)
        labels, known = np.asarray(volume.array), {0, *map(int, seg.segment_numbers)}
    unknown = sorted(set(np.unique(labels).tolist()) - known)
    if unknown:
        raise MapFileError(f"{path}: voxels belong to segment {unknown[0]}, but the file has {sorted(known - {0})}.")
    grid = VoxelGrid.placed(path, labels.shape, to_ras(volume.affine))
    source = source_of_array(path, labels, None, f"DICOM SEG, {kind}", grid)
    return source.with_instances() if is_of_instances else source


def _has_instances(seg: Any) -> bool:
    """Whether the segments of a file are things of one kind, such as lesions, each with an identity of its own."""
    segments = [
        item for item in seg.SegmentSequence if int(item.SegmentNumber) != 0
    ]  # 0: the background of a label map
    identities = {item.get("TrackingUID") for item in segments}
    kinds = {_code(item.SegmentedPropertyTypeCodeSequence[0]) for item in segments}
    return len(segments) > 1 and None not in identities and len(identities) == len(segments) and len(kinds) == 1


def _code(item: Any) -> tuple[str, str]:
    return str(item.get("CodeValue")), str(item.get("CodingSchemeDesignator"))

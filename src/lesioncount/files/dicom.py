"""DICOM Segmentation objects with fractional values, through highdicom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lesioncount.errors import MapFileError
from lesioncount.files.byte_streams import HIGHEST_RATIO
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.source import MapSource, chosen_channel
from lesioncount.optional import optional

ENDINGS = (".dcm",)

# What the standard has for fractional segmentations: eight bits allocated and stored, without a sign.
_BYTES = (8, 8, 7, 0)

# Frames without lesions may be left out of a file, and come back as slices of zeros: so many for each that is there.
_FEW_SLICES, _SLICES_PER_FRAME = 1000, 100


def open_dicom(path: Path, channel: int | None = None) -> MapSource:
    """A DICOM SEG of type FRACTIONAL; a channel is a segment, counted from 0."""
    highdicom = optional("highdicom", "dicom", "Reading DICOM")
    with _explained(path, "is not a DICOM segmentation"):
        seg = highdicom.seg.segread(str(path))
        kind, n_segments = seg.segmentation_type, int(seg.number_of_segments)
        is_occupancy = seg.get("SegmentationFractionalType") == "OCCUPANCY"
    if kind != highdicom.seg.SegmentationTypeValues.FRACTIONAL:
        raise MapFileError(f"{path} is a {kind.value} segmentation, without probabilities. Export it as FRACTIONAL.")
    if is_occupancy:
        raise MapFileError(f"{path} says how much of a voxel is filled (OCCUPANCY), not how probable it is.")
    chosen = chosen_channel(path, n_segments, channel, "segments")
    _check_promise(path, seg)
    with _explained(path, "has frames that do not make a volume"):
        # The affine of the volume, not of the file: highdicom may reverse the slices, or add those that are empty.
        volume = seg.get_volume(
            segment_numbers=[seg.segment_numbers[chosen]], combine_segments=False, rescale_fractional=True
        )
        values = np.asarray(volume.array)[..., 0].astype(np.float32)
    affine = np.array(volume.affine, dtype=np.float64)
    affine[:2] *= -1  # LPS → RAS
    grid = VoxelGrid.placed(path, values.shape, affine)
    return MapSource(grid, "DICOM SEG", values.dtype, 0, lambda: iter([values]), n_channels=n_segments)


def _check_promise(path: Path, seg: Any) -> None:
    """Raise if the header promises more voxels than the file can hold, before there is room made for them."""
    stored = tuple(seg.get(name) for name in ("BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation"))
    if stored != _BYTES:
        raise MapFileError(f"{path}: a FRACTIONAL segmentation has unsigned bytes, but its header says otherwise.")
    with _explained(path, "has frames that do not make a volume"):
        n_frames, bits = int(seg.number_of_frames), int(seg.BitsAllocated)
        promised = int(seg.Rows) * int(seg.Columns) * n_frames * bits // 8
        held = len(seg.PixelData) * (HIGHEST_RATIO["gzip"] if seg.file_meta.TransferSyntaxUID.is_encapsulated else 1)
        geometry = seg.get_volume_geometry()
        n_slices = 0 if geometry is None else int(geometry.spatial_shape[0])
    if promised > held:
        raise MapFileError(
            f"{path}: the header promises {promised:,} bytes, but the file cannot hold more than {held:,}, so that its "
            "frames do not make a volume. It is truncated, or its header is damaged."
        )
    if n_slices > max(_FEW_SLICES, _SLICES_PER_FRAME * n_frames):
        raise MapFileError(
            f"{path}: its {n_frames} frames lie as far apart as {n_slices:,} slices. Their positions are damaged."
        )


@contextmanager
def _explained(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - incomplete files fail in many ways
        raise MapFileError(f"{path} {what}: {str(error)[:300].rstrip('.') or type(error).__name__}.") from None

"""DICOM Segmentation objects with fractional values, through highdicom."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lesioncount.errors import MapFileError
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.source import MapSource, chosen_channel
from lesioncount.optional import optional

ENDINGS = (".dcm",)


def open_dicom(path: Path, channel: int | None = None) -> MapSource:
    """A DICOM SEG of type FRACTIONAL; a channel is a segment, counted from 0."""
    highdicom = optional("highdicom", "dicom", "Reading DICOM")
    try:
        seg = highdicom.seg.segread(str(path))
    except Exception as error:  # noqa: BLE001 - incomplete files fail in many ways
        raise MapFileError(f"{path} is not a DICOM segmentation: {error}.") from None
    if seg.segmentation_type != highdicom.seg.SegmentationTypeValues.FRACTIONAL:
        raise MapFileError(
            f"{path} is a {seg.segmentation_type.value} segmentation, without probabilities. Export it as FRACTIONAL."
        )
    if seg.get("SegmentationFractionalType") == "OCCUPANCY":
        raise MapFileError(f"{path} says how much of a voxel is filled (OCCUPANCY), not how probable it is.")
    chosen = chosen_channel(path, seg.number_of_segments, channel, "segments")
    try:
        # The affine of the volume, not of the file: highdicom may reverse the slices, or add those that are empty.
        volume = seg.get_volume(
            segment_numbers=[seg.segment_numbers[chosen]], combine_segments=False, rescale_fractional=True
        )
    except Exception as error:  # noqa: BLE001 - incomplete files fail in many ways
        raise MapFileError(f"{path}: its frames do not make a volume: {error}.") from None
    values = np.asarray(volume.array)[..., 0].astype(np.float32)
    affine = np.array(volume.affine, dtype=np.float64)
    affine[:2] *= -1  # LPS → RAS
    grid = VoxelGrid.placed(path, values.shape, affine)
    return MapSource(grid, "DICOM SEG", values.dtype, 0, lambda: iter([values]), n_channels=seg.number_of_segments)

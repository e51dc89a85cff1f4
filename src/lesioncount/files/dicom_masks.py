"""DICOM Segmentation objects as masks: each voxel has the number of its segment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lesioncount.errors import MapFileError
from lesioncount.files.arrays import source_of_array
from lesioncount.files.dicom import check_frames, explained, open_dicom, segmentation, to_ras
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.source import MapSource

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

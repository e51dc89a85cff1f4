"""Candidates → a DICOM Segmentation, a segment each, with identities that last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapFileError
from lesioncount.files.dicom import to_ras
from lesioncount.optional import optional
from lesioncount.outputs.colours import colour_of
from lesioncount.outputs.dicom.reference import DicomReference
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.trust.calibration import NOT_CHECKED
from lesioncount.version import __version__

# What our sentences have beyond ASCII.
_IN_ASCII = str.maketrans({"±": "+/-", "–": "-"})

# Segment numbers have 16 bits.
_MOST_SEGMENTS = (1 << 16) - 1

MAKER: dict[str, Any] = {
    "manufacturer": "lesioncount",
    "manufacturer_model_name": "lesioncount",
    "software_versions": __version__,
    "device_serial_number": "none",
}


def segmentation_of(
    labels: NDArray[np.integer],
    lesions: Sequence[LesionRow],
    tracked: Tracked,
    reference: DicomReference,
    kind: str,
    *,
    is_stated: bool = False,
) -> Any:
    """A segmentation of candidates.

    Parameters
    ----------
    labels : ndarray
        Along slices, rows and columns of the reference.
    lesions : sequence of LesionRow
        At least one, in the order of their labels.
    tracked : Tracked
    reference : DicomReference
    kind : {"labelmap", "binary"}
    is_stated : bool, default False
        Whether the calibration comes from no counted scan.
    """
    highdicom = optional("highdicom", "dicom", "Writing DICOM")
    uid = optional("pydicom.uid", "dicom", "Writing DICOM").generate_uid
    if len(lesions) > _MOST_SEGMENTS:
        raise MapFileError(
            f"{len(lesions):,} candidates are more than the {_MOST_SEGMENTS:,} segments of a DICOM segmentation. Raise "
            "the threshold, or set a smallest size."
        )
    volume = highdicom.Volume(
        np.ascontiguousarray(labels, dtype=np.uint16),
        to_ras(reference.affine),
        coordinate_system="PATIENT",
        frame_of_reference_uid=reference.frame_of_reference,
    )
    seg = highdicom.seg.Segmentation(
        source_images=reference.images,
        pixel_array=volume,
        segmentation_type=kind.upper(),
        segment_descriptions=[_described(highdicom, lesion, tracked, is_stated=is_stated) for lesion in lesions],
        series_instance_uid=uid(),
        series_number=int(reference.first.get("SeriesNumber") or 0) + 100,
        sop_instance_uid=uid(),
        instance_number=1,
        content_label="LESIONS",
        content_description="Candidate lesions",
        series_description="Candidate lesions",
        **MAKER,
    )
    reference.refer(seg)
    return seg


def words_of(lesion: LesionRow, *, is_stated: bool) -> str:
    """How probable a candidate is, in words."""
    caveat = f" ({NOT_CHECKED})" if is_stated else ""
    corrected = "" if lesion.existence_calibrated is None else f", calibrated {lesion.existence_calibrated:.4f}{caveat}"
    return f"existence {lesion.existence:.4f}{corrected}{', on the list' if lesion.on_list == 'yes' else ''}"


def _described(highdicom: Any, lesion: LesionRow, tracked: Tracked, *, is_stated: bool) -> Any:
    codes = optional("pydicom.sr.codedict", "dicom", "Writing DICOM").codes
    described = highdicom.seg.SegmentDescription(
        segment_number=lesion.label,
        segment_label=f"Candidate {lesion.label} ({lesion.best_existence:.2f})",
        segmented_property_category=codes.SCT.MorphologicallyAbnormalStructure,
        segmented_property_type=codes.SCT.Lesion,
        algorithm_type="AUTOMATIC",
        algorithm_identification=highdicom.AlgorithmIdentificationSequence(
            name="lesioncount", version=__version__, family=codes.DCM.ArtificialIntelligence
        ),
        tracking_uid=tracked.uid(lesion.label),
        tracking_id=tracked.name(lesion.label),
        display_color=highdicom.color.CIELabColor.from_rgb(*colour_of(lesion.best_existence)),
    )
    described.SegmentDescription = (
        f"Candidate lesion: {words_of(lesion, is_stated=is_stated)}, {lesion.n_voxels} voxels"
    )
    return described


@dataclass(frozen=True)
class Tracked:
    """Who the candidates of a scan are.

    Attributes
    ----------
    scan : str
        Name of the scan.
    origin : tuple of str
        All that they depend on: the hash of the map, the protocol, …
    """

    scan: str
    origin: tuple[str, ...]

    def uid(self, label: int) -> str:
        """The tracking UID of a candidate; 0 is the scan as a whole."""
        generate = optional("pydicom.uid", "dicom", "Writing DICOM").generate_uid
        return str(generate(entropy_srcs=["lesioncount", *self.origin, str(label)]))

    def name(self, label: int) -> str:
        """The tracking identifier of a candidate, for people."""
        scan = ascii_text(self.scan)[:40]
        return f"{scan} lesion {label}" if label else f"{scan} all candidates"


def ascii_text(text: str) -> str:
    """A text that can be written whatever the character set, which is that of the patient's name."""
    return text.translate(_IN_ASCII).encode("ascii", "replace").decode()

"""DICOM series and segmentations, made from scratch."""

import shutil
import subprocess

import highdicom
import numpy as np
import pytest
from highdicom.sr.coding import CodedConcept
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

SPACING = (2.0, 1.5, 0.5)  # between slices, rows, columns


def ct_slice(number, shape, series="1.2.3", study="1.2.4", frame="1.2.5", *, orientation=(1, 0, 0, 0, 1, 0)):
    ds = Dataset()
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    ds.SOPClassUID, ds.SOPInstanceUID = CTImageStorage, generate_uid()
    ds.SeriesInstanceUID, ds.StudyInstanceUID, ds.FrameOfReferenceUID = series, study, frame
    ds.PatientID, ds.PatientName, ds.PatientBirthDate, ds.PatientSex = "1", "A^B", "", ""
    ds.StudyID, ds.StudyDate, ds.StudyTime, ds.AccessionNumber, ds.ReferringPhysicianName = "1", "", "", "", ""
    ds.Modality, ds.InstanceNumber, ds.SeriesNumber = "CT", number + 1, 1
    ds.Rows, ds.Columns = shape[1:]
    along, down = np.reshape(orientation, (2, 3))
    ds.ImageOrientationPatient = list(map(float, orientation))
    ds.ImagePositionPatient = list(np.array([10.0, 20.0, 30.0]) + number * SPACING[0] * np.cross(along, down))
    ds.PixelSpacing, ds.SliceThickness = list(SPACING[1:]), SPACING[0]
    ds.SamplesPerPixel, ds.PhotometricInterpretation, ds.PixelRepresentation = 1, "MONOCHROME2", 0
    ds.BitsAllocated, ds.BitsStored, ds.HighBit = 16, 16, 15
    ds.PixelData = np.zeros(shape[1:], np.uint16).tobytes()
    return ds


def ct_series(shape, **place):
    """The slices of one series of one patient."""
    ids = [generate_uid() for _ in range(3)]
    return [ct_slice(i, shape, *ids, **place) for i in range(shape[0])]


def save_series(folder, slices, name="IM{:04}"):
    """As hospitals export them: no endings, and not in the order of the slices."""
    folder.mkdir(parents=True)
    for number, one in enumerate(slices):
        one.save_as(folder / name.format(len(slices) - number), enforce_file_format=True)
    return folder


def affine_of(slices):
    """From (slice, row, column) to RAS millimetres, by the definition of DICOM."""
    along, down = np.reshape(slices[0].ImageOrientationPatient, (2, 3)).astype(float)
    affine = np.eye(4)
    affine[:3, 0] = SPACING[0] * np.cross(along, down)
    affine[:3, 1], affine[:3, 2] = SPACING[1] * down, SPACING[2] * along
    affine[:3, 3] = np.array(slices[0].ImagePositionPatient, float)
    affine[:2] *= -1
    return affine


def lesion(number, *, tracking=False, kind=("52988006", "SCT", "Lesion")):
    return highdicom.seg.SegmentDescription(
        segment_number=number,
        segment_label=f"lesion {number}",
        segmented_property_category=CodedConcept("49755003", "SCT", "Morphologically Abnormal Structure"),
        segmented_property_type=CodedConcept(*kind),
        algorithm_type="MANUAL",
        **({"tracking_uid": generate_uid(), "tracking_id": f"lesion {number}"} if tracking else {}),
    )


def save_segmentation(path, slices, array, kind, segments=None, **options):
    """A segmentation of slices: probabilities, or the numbers of segments."""
    seg = highdicom.seg.Segmentation(
        source_images=slices, pixel_array=array, segmentation_type=kind, segment_descriptions=segments or [lesion(1)],
        series_instance_uid=generate_uid(), series_number=2, sop_instance_uid=generate_uid(), instance_number=1,
        manufacturer="m", manufacturer_model_name="m", software_versions="1", device_serial_number="1", **options,
    )  # fmt: skip
    seg.save_as(path)
    return path


def fractional_segmentation(folder, probabilities):
    """The path of the file, and the affine from (slice, row, column) to RAS millimetres."""
    slices = ct_series(probabilities.shape)
    return save_segmentation(folder / "seg.dcm", slices, probabilities, "FRACTIONAL"), affine_of(slices)


def errors_of(path):
    """What dciodvfy of dicom3tools finds wrong with a file; skips where it is not installed."""
    if shutil.which("dciodvfy") is None:
        pytest.skip("needs dciodvfy, of the package dicom3tools")
    found = subprocess.run(["dciodvfy", str(path)], capture_output=True, text=True, check=False)
    return [line for line in (found.stdout + found.stderr).splitlines() if line.startswith("Error")]

"""A DICOM Segmentation with fractional values, made from scratch."""

import highdicom
import numpy as np
from highdicom.sr.coding import CodedConcept
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

SPACING = (2.0, 1.5, 0.5)  # between slices, rows, columns


def ct_slice(number, shape, series="1.2.3", study="1.2.4", frame="1.2.5"):
    ds = Dataset()
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    ds.SOPClassUID, ds.SOPInstanceUID = CTImageStorage, generate_uid()
    ds.SeriesInstanceUID, ds.StudyInstanceUID, ds.FrameOfReferenceUID = series, study, frame
    ds.PatientID, ds.PatientName, ds.PatientBirthDate, ds.PatientSex = "1", "A^B", "", ""
    ds.StudyID, ds.StudyDate, ds.StudyTime, ds.AccessionNumber, ds.ReferringPhysicianName = "1", "", "", "", ""
    ds.Modality, ds.InstanceNumber, ds.SeriesNumber = "CT", number + 1, 1
    ds.Rows, ds.Columns = shape[1:]
    ds.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    ds.ImagePositionPatient = [10.0, 20.0, 30.0 + number * SPACING[0]]
    ds.PixelSpacing, ds.SliceThickness = list(SPACING[1:]), SPACING[0]
    ds.SamplesPerPixel, ds.PhotometricInterpretation, ds.PixelRepresentation = 1, "MONOCHROME2", 0
    ds.BitsAllocated, ds.BitsStored, ds.HighBit = 16, 16, 15
    ds.PixelData = np.zeros(shape[1:], np.uint16).tobytes()
    return ds


def fractional_segmentation(folder, probabilities):
    """The path of the file, and the affine from (slice, row, column) to RAS millimetres."""
    ids = [generate_uid() for _ in range(3)]
    slices = [ct_slice(i, probabilities.shape, *ids) for i in range(probabilities.shape[0])]
    lesion = highdicom.seg.SegmentDescription(
        segment_number=1,
        segment_label="lesion",
        segmented_property_category=CodedConcept("49755003", "SCT", "Morphologically Abnormal Structure"),
        segmented_property_type=CodedConcept("52988006", "SCT", "Lesion"),
        algorithm_type="MANUAL",
    )
    seg = highdicom.seg.Segmentation(
        source_images=slices, pixel_array=probabilities, segmentation_type="FRACTIONAL", segment_descriptions=[lesion],
        series_instance_uid=generate_uid(), series_number=2, sop_instance_uid=generate_uid(), instance_number=1,
        manufacturer="m", manufacturer_model_name="m", software_versions="1", device_serial_number="1",
    )  # fmt: skip
    path = folder / "seg.dcm"
    seg.save_as(path)
    affine = np.eye(4)
    affine[:3, :3] = [[0, 0, -SPACING[2]], [0, -SPACING[1], 0], [SPACING[0], 0, 0]]
    affine[:3, 3] = [-10, -20, 30]
    return path, affine

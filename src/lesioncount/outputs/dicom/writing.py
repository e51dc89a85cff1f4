"""The DICOM files of a scan, written beside its record."""

from __future__ import annotations

from pathlib import Path

from lesioncount.files.dicom import ENDINGS
from lesioncount.files.formats import map_ending
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.plain import plain_text
from lesioncount.outputs.dicom.measurement_report import report_of
from lesioncount.outputs.dicom.reference import DicomReference
from lesioncount.outputs.dicom.segments import segmentation_of
from lesioncount.outputs.dicom.tracking import Tracked
from lesioncount.results.record import ScanRecord
from lesioncount.results.scan_count import ScanCount


def dicom_names(name: str) -> tuple[str, str]:
    """The files of a scan: the segmentation, and the report."""
    return f"{name}_seg.dcm", f"{name}_sr.dcm"


def needs_series(path: Path) -> bool:
    """Whether a map does not say itself whose scan it is."""
    return map_ending(path) not in ENDINGS


def write_dicom(folder: OutputFolder, record: ScanRecord, count: ScanCount, series: Path | None, kind: str) -> None:
    """Write the candidates and the count of a scan; without candidates, the report alone.

    Parameters
    ----------
    folder : OutputFolder
    record : ScanRecord
    count : ScanCount
        With its runs; of an ensemble, that of the first member.
    series : Path or None
        Folder of the images that the map was made from.
    kind : {"labelmap", "binary"}
    """
    grid = count.source.grid
    reference = DicomReference.of(grid, series)
    lesions = [lesion for lesion in record.lesions if lesion.is_of_first_member]
    files, settings = record.summary.files, record.counted_with
    protocol = "" if settings is None else plain_text(settings.protocol.to_dict())
    tracked = Tracked(record.name, (str(files and files.sha256), str(files and files.mask_sha256), protocol))
    labels = reference.placed(count.result.candidates.label_map(), grid)
    seg = segmentation_of(labels, lesions, tracked, reference, kind) if lesions else None
    seg_name, report_name = dicom_names(record.name)
    report = report_of(record, tracked, reference, seg)
    if seg is None:
        folder.remove(seg_name)  # of another time
    else:
        with folder.replacing(seg_name) as temporary:
            seg.save_as(temporary)
    with folder.replacing(report_name) as temporary:
        report.save_as(temporary)

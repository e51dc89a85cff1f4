"""Which DICOM images belong to which map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lesioncount.errors import MapFileError
from lesioncount.files.formats import scan_name
from lesioncount.runs.dicom import needs_series
from lesioncount.runs.scan_files import ScanFiles
from lesioncount.runs.settings import DicomOutput


def with_series(scans: Sequence[ScanFiles], dicom: DicomOutput | None) -> list[ScanFiles]:
    """Scans with the folders of their images, where DICOM results are wanted; without one, a scan fails.

    A folder is that of the only scan, or has a folder for each scan, called as its map or its result.
    """
    if dicom is None:
        return list(scans)
    if dicom.series is None:
        if all(needs_series(scan.path) for scan in scans):
            raise MapFileError(
                "Maps that are not DICOM do not say whose scan they are. For DICOM results name the folder of the "
                "images they were made from: --dicom-series FOLDER."
            )
        return list(scans)
    if not dicom.series.is_dir():
        raise MapFileError(f"Expected a folder of DICOM images, but {dicom.series} is none.")
    return [_with_series(scan, dicom.series, is_only=len(scans) == 1) for scan in scans]


def _with_series(scan: ScanFiles, folder: Path, *, is_only: bool) -> ScanFiles:
    names = dict.fromkeys((scan_name(scan.path), scan.name))
    own = next((folder / name for name in names if (folder / name).is_dir()), None)
    if own is not None:
        return replace(scan, series=own)
    if is_only:
        return replace(scan, series=folder)
    if not needs_series(scan.path):  # it says itself whose scan it is
        return scan
    why = f"Expected a folder called {scan_name(scan.path)} with its images in {folder}, but there is none."
    return replace(scan, problem=scan.problem or why)

"""Which DICOM images belong to which map."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lesioncount.cohort.item import FileFacts, ScanFiles
from lesioncount.cohort.pairing import paired_scan
from lesioncount.cohort.patterns import PathPattern, is_pattern
from lesioncount.errors import MapFileError
from lesioncount.files.formats import scan_name
from lesioncount.outputs.dicom import needs_series
from lesioncount.results.settings import DicomOutput


def with_series(scans: Sequence[ScanFiles], dicom: DicomOutput | None) -> list[ScanFiles]:
    """Scans with the folders of their images, where DICOM results are wanted; without one, a scan fails.

    A folder is that of the only scan, or has a folder for each scan: in the place of its map, or called as its map or
    its result. A pattern such as ``dicom/{participant}/{session}`` names a folder for each scan.
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
    if not is_pattern(dicom.series) and not dicom.series.is_dir():
        raise MapFileError(f"Expected a folder of DICOM images, but {dicom.series} is none.")
    found = [_folders(scan, dicom.series, is_only=len(scans) == 1) for scan in scans]
    often = Counter(folders[0] for folders in found if folders)
    return [_with_series(scan, folders, often, dicom.series) for scan, folders in zip(scans, found, strict=True)]


def _folders(scan: ScanFiles, where: Path, *, is_only: bool) -> list[Path]:
    """The folders that may be that of a scan; of several places below a folder, the one that says most."""
    if is_pattern(where):
        fields = paired_scan(scan.name, FileFacts.unread(scan)).fields
        return [path for path in PathPattern(str(where)).matches(fields) if path.is_dir()]
    place = scan.relative
    own, parent = ("", "") if place is None else (str(place.with_name(scan_name(place))), str(place.parent))
    names = dict.fromkeys((own, scan.name, scan_name(scan.path), parent))
    below = [where / name for name in names if name not in ("", ".") and (where / name).is_dir()]
    return below[:1] or ([where] if is_only else [])


def _with_series(scan: ScanFiles, folders: Sequence[Path], often: Counter[Path], where: Path) -> ScanFiles:
    if len(folders) == 1 and often[folders[0]] == 1:
        return replace(scan, series=folders[0])
    if not folders and not needs_series(scan.path):  # it says itself whose scan it is
        return scan
    if not folders:
        why = f"Expected a folder called {scan_name(scan.path)} with its images in {where}, but there is none."
    elif len(folders) > 1:
        why = f"There are {len(folders)} folders that may hold its images: {folders[0]}, {folders[1]}. Name one."
    else:
        why = f"The images in {folders[0]} would be those of {often[folders[0]]} scans. Give each a folder of its own."
    return replace(scan, problem=scan.problem or why)

"""The DICOM files of a scan, written beside its record, and the images that they belong to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lesioncount.cohort.item import FileFacts, ScanFiles
from lesioncount.cohort.pairing import PairedFile
from lesioncount.cohort.patterns import PathPattern, is_pattern
from lesioncount.errors import MapFileError
from lesioncount.files.dicom import ENDINGS
from lesioncount.files.formats import map_ending, scan_name
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.plain import plain_text
from lesioncount.optional import optional
from lesioncount.outputs.dicom.measurement_report import report_of
from lesioncount.outputs.dicom.reference import DicomReference
from lesioncount.outputs.dicom.segments import Tracked, segmentation_of
from lesioncount.outputs.output import Keep, Output, check_not_large, lesions_of
from lesioncount.results.record import Record
from lesioncount.results.scan_count import ScanCount


def needs_series(path: Path) -> bool:
    """Whether a map does not say itself whose scan it is."""
    return map_ending(path) not in ENDINGS


class Dicom(Output):
    """The candidates of a scan as a DICOM segmentation, and its count as a report; its setting is a `DicomOutput`.

    Without candidates, there is the report alone; so it is of detections, in which it says where each lies.
    """

    endings = ("_seg.dcm", "_sr.dcm")
    keep = Keep(runs=True)

    def checked(self, items: Sequence[ScanFiles]) -> Sequence[ScanFiles]:
        """Scans with the folders of their images; without one, a scan fails.

        A folder is that of the only scan, or has a folder for each scan: in the place of its map, or called as its map
        or its result. A pattern such as ``dicom/{participant}/{session}`` names a folder for each scan.
        """
        optional("highdicom", "dicom", "Writing DICOM")  # said before anything is counted
        series = self.setting.series
        if series is None:
            if all(needs_series(scan.path) for scan in items):
                raise MapFileError(
                    "Maps that are not DICOM, and tables, do not say whose scan they are. For DICOM results name the "
                    "folder of the images they were made from: --dicom-series FOLDER."
                )
            return items
        if not is_pattern(series) and not series.is_dir():
            raise MapFileError(f"Expected a folder of DICOM images, but {series} is none.")
        found = [_folders(scan, series, is_only=len(items) == 1) for scan in items]
        often = Counter(folders[0] for folders in found if folders)
        return [_with_series(scan, folders, often, series) for scan, folders in zip(items, found, strict=True)]

    def expected(self, item: ScanFiles, record: Record) -> tuple[str, ...]:
        """Without candidates, there is no segmentation; nor of detections, which have no voxels."""
        return self.names(item) if lesions_of(record) and not item.tables else self.names(item)[1:]

    def write(self, folder: OutputFolder, item: ScanFiles, record: Record, found: ScanCount) -> None:
        """Write the candidates and the count."""
        check_not_large(found.source, "--write dicom")
        grid, lesions = found.source.grid, lesions_of(record)
        reference = DicomReference.of(grid, item.series)
        files, settings = record.files, record.settings
        protocol = "" if settings is None else plain_text(settings.protocol.to_dict())
        tracked = Tracked(record.name, (str(files and files.sha256), str(files and files.mask_sha256), protocol))
        seg = None
        if lesions and not item.tables:
            labels = reference.placed(found.result.candidates.label_map(), grid)
            is_stated = settings is not None and bool(settings.caveat)
            seg = segmentation_of(labels, lesions, tracked, reference, self.setting.kind, is_stated=is_stated)
        report = report_of(record, tracked, reference, seg)
        for name, content in zip(self.names(item), (seg, report), strict=True):
            if content is None:
                folder.remove(name)  # of another time
            else:
                with folder.replacing(name) as temporary:
                    content.save_as(temporary)


def _folders(scan: ScanFiles, where: Path, *, is_only: bool) -> list[Path]:
    """The folders that may be that of a scan; of several places below a folder, the one that says most."""
    if is_pattern(where):
        fields = PairedFile.of_scan(scan.name, FileFacts.unread(scan)).fields
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

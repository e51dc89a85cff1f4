"""A folder of results: what is counted, and how it is recorded."""

from lesioncount.cohort.courses import CourseSelection
from lesioncount.cohort.scans import Selection
from lesioncount.results.course_results import ChangeResults, read_changes
from lesioncount.results.course_settings import ChangeSettings
from lesioncount.results.results import RunResults, read_results
from lesioncount.results.scan_count import ScanCount
from lesioncount.results.settings import DicomOutput, Settings
from lesioncount.runs.compare import compare_batch
from lesioncount.runs.count import count_batch
from lesioncount.runs.count_table import CountTable, FileCount, count_files
from lesioncount.runs.file_counts import compare_files, count_file
from lesioncount.runs.volume_counts import count_volume

__all__ = [
    "ChangeResults",
    "ChangeSettings",
    "CountTable",
    "CourseSelection",
    "DicomOutput",
    "FileCount",
    "RunResults",
    "ScanCount",
    "Selection",
    "Settings",
    "compare_batch",
    "compare_files",
    "count_batch",
    "count_file",
    "count_files",
    "count_volume",
    "read_changes",
    "read_results",
]

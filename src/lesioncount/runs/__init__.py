"""Files → a folder of results: one engine, which counts or compares, here, in processes or on a cluster."""

from lesioncount.cohort.courses import CourseSelection
from lesioncount.cohort.scans import Selection
from lesioncount.results.counts_of import CountsOf
from lesioncount.results.results import Results, read_changes, read_results
from lesioncount.results.scan_count import ScanCount
from lesioncount.results.settings import ChangeSettings, DicomOutput, Settings
from lesioncount.runs.compare import compare_batch
from lesioncount.runs.count import count_batch
from lesioncount.runs.count_table import CountTable, FileCount, count_files
from lesioncount.runs.file_counts import compare_files, count_file
from lesioncount.runs.volume_counts import count_volume

__all__ = [
    "ChangeSettings",
    "CountTable",
    "CountsOf",
    "CourseSelection",
    "DicomOutput",
    "FileCount",
    "Results",
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

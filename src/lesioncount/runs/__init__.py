"""A folder of results: what is counted, and how it is recorded."""

from lesioncount.runs.batch import count_batch
from lesioncount.runs.count_table import CountTable, FileCount, count_files
from lesioncount.runs.file_counts import count_file
from lesioncount.runs.results import RunResults, read_results
from lesioncount.runs.scan_count import ScanCount
from lesioncount.runs.scans import Selection
from lesioncount.runs.settings import DicomOutput, Settings
from lesioncount.runs.volume_counts import count_volume

__all__ = [
    "CountTable",
    "DicomOutput",
    "FileCount",
    "RunResults",
    "ScanCount",
    "Selection",
    "Settings",
    "count_batch",
    "count_file",
    "count_files",
    "count_volume",
    "read_results",
]

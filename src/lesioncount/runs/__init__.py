"""A folder of results: what is counted, how it is recorded, and how it compares with the truth."""

from lesioncount.runs.batch import count_batch
from lesioncount.runs.count_table import CountTable, FileCount, count_files
from lesioncount.runs.file_counts import ScanCount, count_file
from lesioncount.runs.groups import TrialSummary, summarize
from lesioncount.runs.results import RunResults, read_results
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
    "TrialSummary",
    "count_batch",
    "count_file",
    "count_files",
    "count_volume",
    "read_results",
    "summarize",
]

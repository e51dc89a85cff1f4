"""A folder of results: what is counted, how it is recorded, and how it compares with the truth."""

from lesioncount.runs.batch import BatchResult, count_batch
from lesioncount.runs.count_file import ScanCount, count_file
from lesioncount.runs.records import Settings

__all__ = ["BatchResult", "ScanCount", "Settings", "count_batch", "count_file"]

"""Maps of patients at several times → what is new, gone and persisting: pairing, records, tables."""

from lesioncount.runs.changes.batch import compare_batch
from lesioncount.runs.changes.courses import CourseSelection
from lesioncount.runs.changes.files import compare_files
from lesioncount.runs.changes.results import ChangeResults, read_changes
from lesioncount.runs.changes.settings import ChangeSettings

__all__ = ["ChangeResults", "ChangeSettings", "CourseSelection", "compare_batch", "compare_files", "read_changes"]

"""A folder of comparisons → a page that shows them, with both scans side by side: ``changes.html``."""

from lesioncount.report.changes.page import write_changes_page
from lesioncount.report.changes.section_files import CourseSectionWriter

__all__ = ["CourseSectionWriter", "write_changes_page"]

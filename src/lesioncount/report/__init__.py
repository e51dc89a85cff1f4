"""A folder of results → an HTML page that shows them: ``report.html``, or ``changes.html`` of a comparison."""

from lesioncount.report.change_page import write_changes_page
from lesioncount.report.change_section_files import CourseSectionWriter
from lesioncount.report.page import write_report
from lesioncount.report.section_files import SectionWriter
from lesioncount.report.templates import check_can_report

__all__ = ["CourseSectionWriter", "SectionWriter", "check_can_report", "write_changes_page", "write_report"]

"""A folder of results → an HTML page that shows them: ``report.html``."""

from lesioncount.report.page import write_report
from lesioncount.report.section_files import SectionWriter
from lesioncount.report.templates import check_can_report

__all__ = ["SectionWriter", "check_can_report", "write_report"]

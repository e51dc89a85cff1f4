"""A folder of results → an HTML page that shows them: ``report.html``, or ``changes.html`` of a comparison."""

from lesioncount.report.page import SectionWriter, write_report
from lesioncount.report.templates import check_can_report

__all__ = ["SectionWriter", "check_can_report", "write_report"]

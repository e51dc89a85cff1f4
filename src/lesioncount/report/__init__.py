"""A folder of results → one HTML page that shows them: ``report.html``."""

from lesioncount.report.page import write_report
from lesioncount.report.templates import check_can_report

__all__ = ["check_can_report", "write_report"]

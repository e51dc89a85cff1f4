"""A folder of results → one HTML page that shows them: ``report.html``."""

from lesioncount.report.page import write_report

__all__ = ["write_report"]

"""Files ↔ maps with geometry: one module per format, and the tables that results are written to."""

from lesioncount.io.formats import open_map
from lesioncount.io.scan import ScanCount, count_file
from lesioncount.io.source import MapSource

__all__ = ["MapSource", "ScanCount", "count_file", "open_map"]

"""Files ↔ arrays with geometry: one module per format, all giving a `MapSource`."""

from lesioncount.files.formats import open_map, open_mask
from lesioncount.files.source import MapSource

__all__ = ["MapSource", "open_map", "open_mask"]

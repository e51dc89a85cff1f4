"""Memory that counting takes beyond the map itself."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import lesioncount as lc


def share_of_array(p: NDArray[np.float32]) -> float:
    """Highest resident memory while counting, less what was resident before, as a share of the map."""
    lc.count_lesions(p[:2])  # whatever is loaded on first use is no cost of the map
    Path("/proc/self/clear_refs").write_text("5")  # forgets the highest value so far
    before = _kilobytes("VmRSS")
    lc.count_lesions(p)
    return (_kilobytes("VmHWM") - before) * 1024 / p.nbytes


def _kilobytes(name: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith(name)).split()[1])

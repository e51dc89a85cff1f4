"""Memory that counting takes beyond what was there before."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import lesioncount as lc


def share_of_array(p: NDArray[np.float32]) -> float:
    """Highest resident memory while counting, less what was resident before, as a share of the map."""
    lc.count_lesions(p[:2])  # whatever is loaded on first use is no cost of the map
    before = reset_highest()
    lc.count_lesions(p)
    return highest_since(before) / p.nbytes


def reset_highest() -> int:
    """Forget the highest resident memory so far; the kilobytes that are resident now."""
    Path("/proc/self/clear_refs").write_text("5")
    return _kilobytes("VmRSS")


def highest_since(before: int) -> int:
    """Bytes of resident memory above ``before`` kilobytes, at the highest."""
    return (_kilobytes("VmHWM") - before) * 1024


def _kilobytes(name: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith(name)).split()[1])

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


def share_of_peaks(p: NDArray[np.float32]) -> float:
    """The same of peaks, as a share of what they may take: 5 % of the map, and 40 bytes a voxel above the threshold."""
    lc.count_lesions(p[:2], protocol="peaks")
    allowed = 0.05 * p.nbytes + 40 * np.count_nonzero(p > 0.1)
    before = reset_highest()
    lc.count_lesions(p, protocol="peaks")
    return highest_since(before) / allowed


def megabytes_of_training(way: str) -> float:
    """Memory that the count of a batch of two takes, forward and backward: the gradient of the maps included."""
    import torch
    from contenders import dense_masks_with_gradient
    from maps import boxes

    from lesioncount.torch import CountLoss

    torch.set_num_threads(1)
    loss = CountLoss(protocol=lc.CountingProtocol(connectivity="corners"), spatial_dims=3)
    ways = {
        "ours": lambda logits, counts: loss(logits, torch.tensor(counts)).backward(),
        "dense": dense_masks_with_gradient,
    }
    p = np.stack([boxes((64, 192, 192), 20)] * 2)
    logits = torch.logit(torch.from_numpy(p).clamp(1e-4, 1 - 1e-4))
    ways[way](logits[:, :8].clone().requires_grad_(), [0, 0])  # whatever is loaded on first use is no cost of the maps
    before = reset_highest()
    ways[way](logits.requires_grad_(), [12, 13])
    return highest_since(before) / 1e6


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

"""Step 2, the twin: positions of peaks → their logits. This is where the gradient enters the map."""

from __future__ import annotations

import torch
from torch import Tensor

from lesioncount.torch.candidates import NO_CANDIDATE


def existence_logits(maps: Tensor, positions: Tensor, *, logits: bool) -> Tensor:
    """Logits of the existence probabilities, in double precision; -inf where an item has no more candidates.

    Parameters
    ----------
    maps : Tensor, shape (n, *spatial)
        Logits or probabilities.
    positions : Tensor of int64, shape (n, k)
        From `peak_positions`.
    logits : bool
        Which of the two.

    Notes
    -----
    Logits, because in probabilities a saturated peak (1 - p = 0) makes an infinite loss and a gradient of NaN. Double
    precision, because the sums over many candidates must keep the digits of single precision; there are few peaks.
    """
    flat = maps.reshape(len(maps), -1)
    peaks = flat.gather(1, positions.clamp(min=0)).double()
    if not logits:
        tiny = torch.finfo(torch.float64).eps
        peaks = torch.logit(peaks, eps=tiny)
    return torch.where(positions == NO_CANDIDATE, -torch.inf, peaks)

"""Step 2, the twin: positions of peaks → their logits. This is where the gradient enters the map."""

from __future__ import annotations

import torch
from torch import Tensor

from lesioncount.torch.candidates import NO_CANDIDATE
from lesioncount.torch.precision import working_dtype


def existence_logits(maps: Tensor, positions: Tensor, *, logits: bool) -> Tensor:
    """Logits of the existence probabilities, in the `working_dtype`; -inf where an item has no more candidates.

    Parameters
    ----------
    maps : Tensor, shape (n, *spatial)
        Logits or probabilities.
    positions : Tensor of int64, shape (n, k)
        From `peak_positions`.
    logits : bool
        Whether the maps hold logits rather than probabilities.

    Notes
    -----
    Logits, because a probability that is saturated (1 - p = 0) gives an infinite loss and a gradient of NaN. Double
    precision where the device has it, because sums over many candidates must keep the digits of single precision; it
    costs little, since there are few peaks.
    """
    flat = maps.reshape(len(maps), -1)
    peaks = flat.gather(1, positions.clamp(min=0)).to(working_dtype(maps.device))
    if not logits:
        peaks = torch.logit(peaks, eps=torch.finfo(peaks.dtype).eps)
    return torch.where(positions == NO_CANDIDATE, -torch.inf, peaks)

"""Step 1, the twin: a batch of maps → positions of the candidates' peaks, found without gradient on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lesioncount.candidates import find_candidates
from lesioncount.protocol import CountingProtocol

# How an unused place in a batch is marked: items have different numbers of candidates.
NO_CANDIDATE = -1


def peak_positions(
    maps: Tensor, *, protocol: CountingProtocol, logits: bool, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The highest voxel of each candidate.

    Parameters
    ----------
    maps : Tensor, shape (n, *spatial)
        Logits or probabilities, with two or three spatial axes.
    protocol : CountingProtocol
        What counts as one candidate. Sizes in millimetres are not known here.
    logits : bool
        Whether the maps hold logits rather than probabilities.
    mask : Tensor of bool, shape (n, *spatial), optional
        Only these voxels are looked at.

    Returns
    -------
    positions : Tensor of int64, shape (n, most candidates of a map)
        In the flattened map, in the order of the candidates; `NO_CANDIDATE` where an item has fewer than others.
    n_candidates : Tensor of int64, shape (n,)
    """
    values = _to_numpy(maps)
    inside = None if mask is None else _to_numpy(mask)
    found = [
        find_candidates(
            item, protocol=protocol, logits=logits, mask=None if inside is None else inside[i], warn=False
        ).peak_position
        for i, item in enumerate(values)
    ]
    counts = [len(positions) for positions in found]
    padded = np.full((len(found), max(counts, default=0)), NO_CANDIDATE, dtype=np.int64)
    for row, positions in zip(padded, found, strict=True):
        row[: len(positions)] = positions
    return torch.from_numpy(padded).to(maps.device), torch.tensor(counts, device=maps.device)


def with_rescued(
    maps: Tensor, positions: Tensor, wanted: Tensor, *, threshold: float, mask: Tensor | None = None
) -> Tensor:
    """Add the strongest local peaks below the threshold to maps that have fewer candidates than wanted.

    A label above the number of candidates is impossible and teaches nothing, although the map may well have a faint
    peak where the missing lesion is. With that peak among the candidates, the gradient can raise it.

    Parameters
    ----------
    maps : Tensor, shape (n, *spatial)
    positions : Tensor of int64, shape (n, k)
        From `peak_positions`.
    wanted : Tensor of int64, shape (n,)
        How many candidates each map should have.
    threshold : float
        In the units of the maps: a logit where they hold logits.
    mask : Tensor of bool, shape (n, *spatial), optional
        Only these voxels are looked at.
    """
    n_found = (positions != NO_CANDIDATE).sum(1)
    rows = [row[: int(n)] for row, n in zip(positions, n_found, strict=True)]
    for i in torch.nonzero(wanted > n_found).flatten().tolist():
        inside = None if mask is None else mask[i].cpu()
        faint = _faint_peaks(maps[i].detach().cpu(), int(wanted[i] - n_found[i]), threshold, inside)
        rows[i] = torch.cat([rows[i], faint.to(rows[i].device)])
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=NO_CANDIDATE)


def _faint_peaks(item: Tensor, n: int, threshold: float, inside: Tensor | None) -> Tensor:
    """Positions of the n strongest voxels that are the highest of their neighbourhood, and not above the threshold.

    Of a plateau, the first voxel in C order stands for its neighbourhood; a flat map has no peak at all. On the CPU,
    because not every device has pooling that says where the maximum was.
    """
    values = item.float()
    if inside is not None:
        values = values.masked_fill(~inside, -torch.inf)
    highest, first = _neighbourhood(values, item.ndim)
    lowest = -_neighbourhood(-values, item.ndim)[0]
    own = torch.arange(values.numel(), device=values.device).reshape(values.shape)
    is_peak = (values == highest) & (first == own) & (lowest < highest) & (values <= threshold) & values.isfinite()
    peaks = torch.nonzero(is_peak.flatten()).flatten()
    strongest = values.flatten()[peaks].topk(min(n, len(peaks))).indices
    return peaks[strongest]


def _neighbourhood(values: Tensor, ndim: int) -> tuple[Tensor, Tensor]:
    """The highest value of each voxel and its neighbours, and the position of the first that has it."""
    pool = torch.nn.functional.max_pool2d if ndim == 2 else torch.nn.functional.max_pool3d
    highest, first = pool(values[None, None], kernel_size=3, stride=1, padding=1, return_indices=True)
    return highest[0, 0], first[0, 0]


def _to_numpy(tensor: Tensor) -> NDArray[Any]:
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()  # numpy has no bfloat16

"""Step 1, the twin: a batch of maps → positions of peaks and saddles, found without gradient on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lesioncount.candidates import find_candidates
from lesioncount.protocol import CountingProtocol

# How an unused place in a batch is marked: items have different numbers of candidates, and not every peak has a saddle.
NO_CANDIDATE = -1


@dataclass(frozen=True, eq=False)
class Positions:
    """Where the candidates of a batch of maps are, in the flattened maps and in the order of the candidates.

    Attributes
    ----------
    peaks : Tensor of int64, shape (n, most candidates of a map)
        The highest voxel of each candidate; `NO_CANDIDATE` where an item has fewer than others.
    saddles : Tensor of int64, shape (n, most candidates of a map), or None
        Where each peak joins a higher one; `NO_CANDIDATE` where it does not. None where candidates are regions.
    """

    peaks: Tensor
    saddles: Tensor | None = None


def candidate_positions(
    maps: Tensor, *, protocol: CountingProtocol, logits: bool, mask: Tensor | None = None
) -> Positions:
    """The highest voxel of each candidate and, where candidates are peaks, the voxel of its saddle.

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
    """
    values = _to_numpy(maps)
    inside = None if mask is None else _to_numpy(mask)
    found = [
        find_candidates(item, protocol=protocol, logits=logits, mask=None if inside is None else inside[i], warn=False)
        for i, item in enumerate(values)
    ]
    peaks = _padded([candidates.peak_position for candidates in found], maps.device)
    if not protocol.has_peaks:
        return Positions(peaks)
    return Positions(peaks, _padded([candidates.saddle_position for candidates in found], maps.device))


def _padded(rows: Sequence[NDArray[np.int64]], device: torch.device) -> Tensor:
    table = np.full((len(rows), max(map(len, rows), default=0)), NO_CANDIDATE, dtype=np.int64)
    for padded, positions in zip(table, rows, strict=True):
        padded[: len(positions)] = positions
    return torch.from_numpy(table).to(device)


def with_rescued(
    maps: Tensor, positions: Positions, wanted: Tensor, *, threshold: float, mask: Tensor | None = None
) -> Positions:
    """Add the strongest local peaks below the threshold to maps that have fewer candidates than wanted.

    A label above the number of candidates is impossible and teaches nothing, although the map may well have a faint
    peak where the missing lesion is. With that peak among the candidates, the gradient can raise it. It has no saddle,
    because it joins nothing above the threshold.

    Parameters
    ----------
    maps : Tensor, shape (n, *spatial)
    positions : Positions
        From `candidate_positions`.
    wanted : Tensor of int64, shape (n,)
        How many candidates each map should have.
    threshold : float
        In the units of the maps: a logit where they hold logits.
    mask : Tensor of bool, shape (n, *spatial), optional
        Only these voxels are looked at.
    """
    n_found = (positions.peaks != NO_CANDIDATE).sum(1)
    rows = [row[: int(n)] for row, n in zip(positions.peaks, n_found, strict=True)]
    for i in torch.nonzero(wanted > n_found).flatten().tolist():
        inside = None if mask is None else mask[i].cpu()
        faint = _faint_peaks(maps[i].detach().cpu(), int(wanted[i] - n_found[i]), threshold, inside)
        rows[i] = torch.cat([rows[i], faint.to(rows[i].device)])
    peaks = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=NO_CANDIDATE)
    saddles = positions.saddles
    if saddles is not None:
        more = peaks.shape[1] - saddles.shape[1]
        saddles = torch.nn.functional.pad(saddles, (0, more), value=NO_CANDIDATE)
    return Positions(peaks, saddles)


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

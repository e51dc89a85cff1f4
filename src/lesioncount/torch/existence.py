"""Step 2, the twin: positions of candidates → logits of their existence. This is where the gradient enters the map."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lesioncount.torch.candidates import NO_CANDIDATE, Positions
from lesioncount.torch.precision import working_dtype

_LOG_2 = math.log(2)


def existence_logits(maps: Tensor, positions: Positions, *, logits: bool) -> Tensor:
    """Logits of the existence probabilities, in the `working_dtype`; -inf where an item has no more candidates.

    Parameters
    ----------
    maps : Tensor, shape (n, *spatial)
        Logits or probabilities.
    positions : Positions
        From `candidate_positions`.
    logits : bool
        Whether the maps hold logits rather than probabilities.

    Notes
    -----
    Logits, because a probability that is saturated (1 - p = 0) gives an infinite loss and a gradient of NaN. Double
    precision where the device has it, because sums over many candidates must keep the digits of single precision; it
    costs little, since there are few candidates.
    """
    if positions.saddles is None:
        own = _gathered(maps, positions.peaks)
    else:
        # Gathered together: backwards, each gathering costs as much as reading all maps.
        both = _gathered(maps, torch.cat([positions.peaks, positions.saddles], dim=1))
        peaks, saddles = both.chunk(2, dim=1)
        less = _own_logits if logits else _own_probabilities
        own = less(peaks, saddles, positions.saddles != NO_CANDIDATE)
    if not logits:
        own = torch.logit(own, eps=torch.finfo(own.dtype).eps)
    return torch.where(positions.peaks == NO_CANDIDATE, -torch.inf, own)


def persistence_logits(peaks: Tensor, saddles: Tensor, /) -> Tensor:
    """The logit of σ(b) - σ(d), given the logits b of peaks and d < b of saddles.

    Notes
    -----
    With p = σ(b) - σ(d), both sides over the common denominator (1 + e^b) (1 + e^d) give::

        p = (e^b - e^d) / …        1 - p = (1 + 2 e^d + e^{b+d}) / …
        logit p = log(1 - e^{-(b-d)}) - log(e^{-b} + 2 e^{d-b} + e^d)

    No two numbers of like size are subtracted but b and d themselves. The terms of the derivative by b are all
    positive, those of the derivative by d all negative: peaks are told to rise where saddles are told to fall.

    Examples
    --------
    >>> b, d = torch.logit(torch.tensor([0.75, 0.5], dtype=torch.float64))
    >>> persistence_logits(b, d).sigmoid()
    tensor(0.2500, dtype=torch.float64)
    >>> persistence_logits(b + 50, d + 50)  # where probabilities have no digits left to tell them apart
    tensor(-50.4055, dtype=torch.float64)
    """
    not_own = torch.stack([-peaks, saddles - peaks + _LOG_2, saddles])
    return _log_one_minus_exp(peaks - saddles) - not_own.logsumexp(0)


def _log_one_minus_exp(x: Tensor) -> Tensor:
    """log(1 - e^{-x}) for x > 0, by whichever of two forms keeps its digits, and those of its derivative."""
    near = torch.log(-torch.expm1(-x.clamp(max=_LOG_2)))
    far = torch.log1p(-torch.exp(-x.clamp(min=_LOG_2)))
    return torch.where(x < _LOG_2, near, far)


def _own_logits(peaks: Tensor, saddles: Tensor, has_saddle: Tensor) -> Tensor:
    is_below = saddles < peaks
    # What is not chosen must still be a number, or its gradient, times 0, would be NaN.
    apart = persistence_logits(peaks, torch.where(has_saddle & is_below, saddles, peaks.detach() - 1))
    # For the sweep, 0.0 beside -0.0 is a peak; here it is none.
    return torch.where(has_saddle, torch.where(is_below, apart, -torch.inf), peaks)


def _own_probabilities(peaks: Tensor, saddles: Tensor, has_saddle: Tensor) -> Tensor:
    # Rounding may have pushed both above 1, where the core takes them as 1.
    return peaks.clamp(max=1) - torch.where(has_saddle, saddles, 0.0).clamp(max=1)


def _gathered(maps: Tensor, positions: Tensor) -> Tensor:
    flat = maps.reshape(len(maps), -1)
    return flat.gather(1, positions.clamp(min=0)).to(working_dtype(maps.device))

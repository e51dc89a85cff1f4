"""The epoch of a training → the weight of its count loss."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class CountWeight:
    """The weight of the count loss: 0 while masks are learned, then α e^{β (epoch − masks_only)}.

    Parameters
    ----------
    alpha, beta : float
        Weight in the first epoch with counts, and how fast it grows.
    masks_only : float, default 20
        Number of epochs without counts.
    epochs : float, default 120
        Length of the training that the other numbers are meant for. They are stretched to the length of the actual one.

    Notes
    -----
    Appendix B of the paper, whose training has 20 epochs on masks and then 100 with counts.

    Examples
    --------
    >>> weight = CountWeight()
    >>> [round(weight.at(epoch, 120), 4) for epoch in (0, 19, 20, 70, 119)]
    [0.0, 0.0, 0.001, 0.0201, 0.3799]
    >>> weight.at(700, 1200) == weight.at(70, 120)
    True
    """

    alpha: float = 0.001
    beta: float = 0.06
    masks_only: float = 20
    epochs: float = 120

    def at(self, epoch: int, n_epochs: int) -> float:
        """The weight in an epoch, counted from 0, of a training of ``n_epochs``."""
        with_counts = epoch * self.epochs / n_epochs - self.masks_only
        return 0.0 if with_counts < 0 else self.alpha * math.exp(self.beta * with_counts)

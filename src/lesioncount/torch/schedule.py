"""The epoch of a training → the weight of its count loss; the loss of many batches → one line of a log."""

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


@dataclass
class CountTally:
    """What a count loss has met since the tally was last taken.

    Attributes
    ----------
    loss : float
        Sum over the labels whose maps were finite.
    n_labels, n_impossible, n_not_finite : int
        All labels, and those of them that `CountLoss` reports under these names.
    """

    loss: float = 0.0
    n_labels: int = 0
    n_impossible: int = 0
    n_not_finite: int = 0

    def add(self, loss: float, n_labels: int, n_impossible: int, n_not_finite: int = 0) -> None:
        """Add a batch: its mean loss, and how many labels it had."""
        self.loss += loss * (n_labels - n_not_finite)
        self.n_labels += n_labels
        self.n_impossible += n_impossible
        self.n_not_finite += n_not_finite

    def __str__(self) -> str:
        """In words, for a log."""
        mean = self.loss / max(self.n_labels - self.n_not_finite, 1)
        overflow = f", {self.n_not_finite} left out because the output was not finite" if self.n_not_finite else ""
        return f"{mean:.4f}, {self.n_impossible} of {self.n_labels} labels impossible{overflow}"

"""The count loss of many batches → one line of a log."""

from __future__ import annotations

from dataclasses import dataclass


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

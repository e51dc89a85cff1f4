"""Count labels → a loss: the negative log-likelihood of the count, known exactly or within bounds."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from lesioncount.checks import checked_protocol
from lesioncount.protocol import CountingProtocol
from lesioncount.torch.compilation import outside_of_compilation
from lesioncount.torch.counting import count_distribution

# The loss of a label that the map makes impossible: as finite as that of binary_cross_entropy, which stops at 100 too.
IMPOSSIBLE = 100.0

Reduction = Literal["mean", "sum", "none"]


class CountLoss(nn.Module):
    """Negative logarithm of the probability that the count is what the label says.

    Parameters
    ----------
    max_count : int, optional
        Labels from here on are all the same, "so many or more". The paper has 4. Default: none are.
    protocol, spatial_dims, probabilities
        As in `count_distribution`.
    rescue : bool, default False
        Take the strongest local peaks below the threshold as candidates too, where a label asks for more than there
        are: the gradient can then raise them. As published, such labels teach nothing. Not the default, because on
        synthetic scans it cost a little accuracy; it keeps a training at a high learning rate from losing all
        candidates (``benchmarks/rescue.py``).
    reduction : {"mean", "sum", "none"}

    Attributes
    ----------
    n_impossible : int
        How many labels of the last call were impossible: more lesions than the map has candidates. Their loss is 100,
        and they have no gradient.

    Examples
    --------
    >>> logits = torch.full((2, 16, 16), -6.0)
    >>> logits[0, 4, 4] = 2.0
    >>> _ = logits.requires_grad_()
    >>> loss = CountLoss(max_count=4)
    >>> loss(logits, torch.tensor([1, 0])).backward()
    >>> int((logits.grad != 0).sum())
    1
    >>> loss(logits, at_least=torch.tensor([1, 0])).shape  # "some" in the first, nothing known of the second
    torch.Size([])
    """

    def __init__(
        self,
        max_count: int | None = None,
        *,
        protocol: CountingProtocol | str | None = None,
        spatial_dims: int | None = None,
        probabilities: bool = False,
        rescue: bool = False,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"Expected reduction to be mean, sum or none, but got {reduction!r}.")
        self.max_count = max_count
        self.protocol = checked_protocol(protocol)
        self.spatial_dims = spatial_dims
        self.probabilities = probabilities
        self.rescue = rescue
        self.reduction = reduction
        self.n_impossible = 0

    @outside_of_compilation
    def forward(
        self,
        maps: Tensor,
        counts: Tensor | None = None,
        *,
        at_least: Tensor | None = None,
        at_most: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """The loss of maps, given counts, or bounds of them.

        Parameters
        ----------
        maps : Tensor
            As in `count_distribution`.
        counts : Tensor of int, shape (batch,) or (batch, classes), optional
            The number of lesions in each map.
        at_least, at_most : Tensor of int, optional
            Bounds, both included, where the number is not known. "Some" is at least 1, "none" at most 0; one bound may
            be left out.
        mask : Tensor, optional
            Only voxels where it is not zero are looked at.
        """
        low, high = self._bounds(counts, at_least, at_most)
        distribution = count_distribution(
            maps,
            protocol=self.protocol,
            spatial_dims=self.spatial_dims,
            mask=mask,
            probabilities=self.probabilities,
            rescue=self._wanted(low) if self.rescue else None,
        )
        low = torch.zeros(distribution.batch_shape, dtype=torch.long, device=maps.device) if low is None else low
        highest = int(low.max()) if high is None else max(int(low.max()), int(high.max()))
        highest = min(highest, distribution.logits.shape[-1])  # larger counts are all impossible
        loss, impossible = bounded_nll(
            distribution.log_bins(highest + 1 if self.max_count is None else self.max_count), low, high
        )
        self.n_impossible = int(impossible.sum())
        if self.reduction == "none":
            return loss
        return loss.mean() if self.reduction == "mean" else loss.sum()

    def _wanted(self, low: Tensor | None) -> Tensor | None:
        """How many candidates make a label possible: of "4 or more" lesions, four."""
        return low if low is None or self.max_count is None else low.clamp(max=self.max_count)

    def _bounds(
        self, counts: Tensor | None, at_least: Tensor | None, at_most: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None]:
        if (counts is None) == (at_least is None and at_most is None):
            raise ValueError("Expected either counts, or bounds of them (at_least, at_most).")
        for labels in (counts, at_least, at_most):
            if labels is not None and (labels.is_floating_point() or bool((labels < 0).any())):
                raise ValueError("Expected labels to be whole numbers of at least 0.")
        if counts is not None:
            return counts, counts
        if at_least is not None and at_most is not None and bool((at_least > at_most).any()):
            raise ValueError("Expected at_least not to be above at_most.")
        return at_least, at_most


def bounded_nll(log_p: Tensor, at_least: Tensor, at_most: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """-log P(at_least ≤ count ≤ at_most), given log-probabilities of which the last holds all larger counts.

    Parameters
    ----------
    log_p : Tensor, shape (..., n_bins)
    at_least, at_most : Tensor of int, shape (...)
        Bounds, both included; those in the last bin or beyond are all the same.

    Returns
    -------
    loss : Tensor, shape (...)
        100 where the bounds are impossible; no gradient there, nor through any bin that is impossible.
    impossible : Tensor of bool, shape (...)
    """
    last = log_p.shape[-1] - 1
    bins = torch.arange(last + 1, device=log_p.device)
    shape = log_p.shape[:-1]
    inside = bins >= at_least.to(log_p.device).reshape(shape).clamp(max=last).unsqueeze(-1)
    if at_most is not None:
        inside &= bins <= at_most.to(log_p.device).reshape(shape).unsqueeze(-1)
    usable = inside & ~torch.isneginf(log_p)
    possible = usable.any(-1)
    terms = torch.where(usable, log_p, torch.finfo(log_p.dtype).min / 4)
    return torch.where(possible, -terms.logsumexp(-1), IMPOSSIBLE), ~possible

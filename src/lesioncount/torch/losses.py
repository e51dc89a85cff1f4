"""Count labels → a loss: the negative log-likelihood of the count, known exactly or within bounds."""

from __future__ import annotations

import warnings
from typing import Literal

import torch
from torch import Tensor, nn

from lesioncount.checks import checked_protocol
from lesioncount.errors import NoGradientWarning, NonFiniteError, ShapeError
from lesioncount.protocol import CountingProtocol
from lesioncount.torch.activation import Activation, checked_activation, lesion_maps
from lesioncount.torch.counting import axes, count_distribution, mask_of_maps, same_axes
from lesioncount.torch.poisson_binomial import PoissonBinomial
from lesioncount.torch.precision import has_only_numbers, outside_of_compilation

# The loss of a label that the map makes impossible. Finite, like that of binary_cross_entropy, which stops at 100 too.
IMPOSSIBLE = 100.0

Reduction = Literal["mean", "sum", "none"]


class CountLoss(nn.Module):
    """Negative logarithm of the probability that the count is what the label says.

    Parameters
    ----------
    max_count : int, optional
        Labels from here on are all the same, "this many or more". The paper has 4. Default: no such limit.
    protocol, spatial_dims, logits, activation
        As in `count_distribution`.
    rescue : bool, default False
        Where a label asks for more lesions than there are candidates, take the strongest local peaks below the
        threshold as candidates too, so that the gradient can raise them. As published, such labels teach nothing. Not
        the default, because on synthetic scans it cost a little accuracy; it keeps a training at a high learning rate
        from losing all candidates (``benchmarks/rescue.py``).
    reduction : {"mean", "sum", "none"}
    ignore_index : int, default -100
        The label of a map of which nothing is known, as in torch's ``nll_loss``. Its loss is 0, it has no gradient, and
        the mean is taken over the others. With two bounds, either of them may have it.

    Attributes
    ----------
    n_impossible : int
        How many labels of the last call were impossible: more lesions than the map has candidates. Their loss is 100,
        and they have no gradient. The first time that this is so of every label of a batch, there is a
        `NoGradientWarning`.
    n_not_finite : int
        How many maps of the last call had voxels that are NaN or infinite, as when half precision overflows. Their loss
        is 0, they have no gradient, and the mean is taken over the others.

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
        logits: bool = True,
        activation: Activation = "sigmoid",
        rescue: bool = False,
        reduction: Reduction = "mean",
        ignore_index: int = -100,
    ) -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"Expected reduction to be mean, sum or none, but got {reduction!r}.")
        if max_count is not None and (not isinstance(max_count, int) or max_count < 1):
            raise ValueError(f"Expected max_count to be a whole number of at least 1, but got {max_count!r}.")
        self.max_count = max_count
        self.activation = checked_activation(activation)
        self.protocol = checked_protocol(protocol)
        self.spatial_dims = spatial_dims
        self.logits = logits
        self.rescue = rescue
        self.reduction = reduction
        self.ignore_index = ignore_index
        self.n_impossible = 0
        self.n_not_finite = 0
        self._has_warned = False

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
        """The loss of maps, given their counts or bounds on them.

        Parameters
        ----------
        maps : Tensor
            As in `count_distribution`.
        counts : Tensor of int, shape (batch,) or (batch, classes), optional
            The number of lesions in each map, or ``ignore_index``.
        at_least, at_most : Tensor of int, optional
            Bounds, both included, where the number is not known. "Some" is at least 1, "none" at most 0; one bound may
            be left out.
        mask : Tensor, optional
            Only voxels where it is neither 0 nor NaN are looked at.
        """
        low, high, known = self._bounds(counts, at_least, at_most)
        maps, spatial_dims = lesion_maps(
            maps, activation=self.activation, logits=self.logits, spatial_dims=self.spatial_dims
        )
        batch, classes, _ = axes(maps, spatial_dims)
        _check_shapes((batch, classes) if classes > 1 else (batch,), counts, at_least, at_most)
        wanted = self._wanted(low) if self.rescue else None
        try:  # the search for candidates looks at every voxel anyway: maps are not searched beforehand
            distribution = self._distribution(maps, mask, wanted, spatial_dims)
            finite = torch.ones(distribution.batch_shape, dtype=torch.bool, device=maps.device)
        except NonFiniteError:
            maps, finite = self._without_overflow(maps, mask, spatial_dims)
            distribution = self._distribution(maps, mask, wanted, spatial_dims)
        low = torch.zeros(distribution.batch_shape, dtype=torch.long, device=maps.device) if low is None else low
        highest = int(low.max()) if high is None else max(int(low.max()), int(high.max()))
        highest = min(highest, distribution.logits.shape[-1])  # larger counts are all impossible
        # One more bin than there are candidates is impossible already, whatever max_count is.
        most = distribution.logits.shape[-1] + 1
        log_probs = distribution.log_bins(highest + 1 if self.max_count is None else min(self.max_count, most))
        return self._reduced(log_probs, low, high, known, finite.reshape(distribution.batch_shape))

    @outside_of_compilation
    def of_log_probs(
        self,
        log_probs: Tensor,
        counts: Tensor | None = None,
        *,
        at_least: Tensor | None = None,
        at_most: Tensor | None = None,
    ) -> Tensor:
        """The same loss, of a network that predicts the count by itself.

        Parameters
        ----------
        log_probs : Tensor, shape (..., n_bins)
            Logarithms of P(0), P(1), …; the last bin holds all larger counts.
        counts, at_least, at_most
            As in `forward`.

        Examples
        --------
        >>> CountLoss().of_log_probs(torch.tensor([[0.5, 0.25, 0.25]]).log(), at_least=torch.tensor([1]))
        tensor(0.6931)
        """
        if self.max_count is not None and log_probs.shape[-1] != self.max_count + 1:
            raise ValueError(
                f"Expected {self.max_count + 1} log-probabilities, of 0 to {self.max_count} or more, but got "
                f"{log_probs.shape[-1]}."
            )
        low, high, known = self._bounds(counts, at_least, at_most)
        _check_shapes(tuple(log_probs.shape[:-1]), counts, at_least, at_most)
        low = torch.zeros(log_probs.shape[:-1], dtype=torch.long, device=log_probs.device) if low is None else low
        finite = (log_probs < torch.inf).all(-1)  # an impossible count is -inf, and NaN is not below anything
        return self._reduced(torch.where(finite[..., None], log_probs, 0.0), low, high, known, finite)

    def _bounds(
        self, counts: Tensor | None, at_least: Tensor | None, at_most: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, Tensor]:
        """The labels as bounds, both included, and which are known; the bounds of the others are 0."""
        if (counts is None) == (at_least is None and at_most is None):
            raise ValueError("Expected either counts, or bounds on them (at_least, at_most).")
        low, high = (at_least, at_most) if counts is None else (counts, counts)
        given = [labels for labels in (low, high) if labels is not None]
        for labels in given:
            if not isinstance(labels, Tensor):
                raise TypeError(f"Expected labels as a tensor of whole numbers, but got {type(labels).__name__}.")
            if labels.is_floating_point() or bool(((labels < 0) & (labels != self.ignore_index)).any()):
                raise ValueError(
                    f"Expected labels to be whole numbers of at least 0, or {self.ignore_index} where nothing is known."
                )
        if given[0].shape != given[-1].shape:
            raise ShapeError(
                "Expected at_least and at_most of one shape, but got "
                f"{tuple(given[0].shape)} and {tuple(given[-1].shape)}."
            )
        known = (given[0] != self.ignore_index) & (given[-1] != self.ignore_index)
        low, high = (None if labels is None else torch.where(known, labels, 0) for labels in (low, high))
        if low is not None and high is not None and bool((low > high).any()):
            raise ValueError("Expected at_least not to be above at_most.")
        return low, high, known

    def _distribution(
        self, maps: Tensor, mask: Tensor | None, wanted: Tensor | None, spatial_dims: int | None
    ) -> PoissonBinomial:
        return count_distribution(
            maps,
            protocol=self.protocol,
            spatial_dims=spatial_dims,
            mask=mask,
            logits=self.logits,
            rescue=wanted,
        )

    def _without_overflow(self, maps: Tensor, mask: Tensor | None, spatial_dims: int | None) -> tuple[Tensor, Tensor]:
        """Maps of which those that are not finite are flat, and which ones are finite."""
        batch, classes, spatial = axes(maps, spatial_dims)
        flat = maps.reshape(batch * classes, *spatial)
        inside = None if mask is None else mask_of_maps(mask, batch, classes, spatial)
        finite = has_only_numbers(flat, inside)
        return torch.where(finite.reshape(-1, *(1,) * len(spatial)), flat, 0.0).reshape(maps.shape), finite

    def _reduced(self, log_probs: Tensor, low: Tensor, high: Tensor | None, known: Tensor, finite: Tensor) -> Tensor:
        loss, impossible = bounded_nll(log_probs, low, high)
        used = finite & known.to(finite.device).reshape(finite.shape)
        loss = torch.where(used, loss, 0.0)
        self.n_impossible = int((impossible & used).sum())
        self.n_not_finite = int((~finite).sum())
        n_used = int(used.sum())
        if log_probs.requires_grad and 0 < n_used == self.n_impossible and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"The count loss has no gradient: no label of this batch ({n_used} known) is possible, mostly because "
                "maps have fewer candidates. A network that has not learned what a lesion looks like begins like "
                "this: train on masks first, or pass rescue=True. This is said once; n_impossible is kept up to date.",
                NoGradientWarning,
                stacklevel=2,
            )
        if self.reduction == "none":
            return loss
        return loss.sum() / max(n_used, 1) if self.reduction == "mean" else loss.sum()

    def _wanted(self, low: Tensor | None) -> Tensor | None:
        """How many candidates make a label possible: for "4 or more" lesions, four."""
        return low if low is None or self.max_count is None else low.clamp(max=self.max_count)


def _check_shapes(
    expected: tuple[int, ...], counts: Tensor | None, at_least: Tensor | None, at_most: Tensor | None
) -> None:
    """A label for each map; axes of length 1 make no difference."""
    for name, given in (("counts", counts), ("at_least", at_least), ("at_most", at_most)):
        if given is not None and not same_axes(given.shape, expected):
            each = "map and class" if len(expected) > 1 else "map"
            raise ShapeError(
                f"Expected {name} of shape {expected}, one for each {each}, but {name} has shape {tuple(given.shape)}."
            )


def bounded_nll(log_p: Tensor, at_least: Tensor, at_most: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """-log P(at_least ≤ count ≤ at_most), given log-probabilities of which the last holds all larger counts.

    Parameters
    ----------
    log_p : Tensor, shape (..., n_bins)
    at_least, at_most : Tensor of int, shape (...)
        Bounds, both included. Those in the last bin or beyond are all the same.

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

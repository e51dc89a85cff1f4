"""Step 3, the twin: existence logits → the distribution of the count, with gradient."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Distribution, constraints

from lesioncount._kernels.log_recursion import backward, forward
from lesioncount.distributions.count_distribution import MAX_COUNT
from lesioncount.errors import DistributionError
from lesioncount.torch.precision import working_dtype

# Of the recursion, which are kept for the gradient: 2 GB.
_MOST_NUMBERS = 1 << 28

_Size = torch.Size | list[int] | tuple[int, ...]


def log_bins(logits: Tensor, n_bins: int) -> Tensor:
    """Logarithms of P(0), … P(n_bins - 2), P(n_bins - 1 or more), for the logits of independent trials.

    Parameters
    ----------
    logits : Tensor, shape (..., k)
        -inf marks a trial that is not there.
    n_bins : int

    Returns
    -------
    Tensor, shape (..., n_bins)
        With the type of the logits. -inf for counts that are not possible; no gradient passes through them.

    Notes
    -----
    The recursion f_k(c) = f_{k-1}(c) (1 - p_k) + f_{k-1}(c - 1) p_k on logarithms: log p and log(1 - p) come straight
    from the logit and never saturate. Backwards, each value is split over the two it came from, in shares that are
    probabilities: no gradient can exceed that of the bins.
    """
    n_items = math.prod(logits.shape[:-1])
    n_numbers = n_items * (logits.shape[-1] + 1) * n_bins
    if n_numbers > _MOST_NUMBERS:
        raise DistributionError(
            f"Expected a max_count that fits into memory, but {n_bins} bins for {n_items} distributions of "
            f"{logits.shape[-1]} trials are {n_numbers} numbers. Larger counts than trials are impossible."
        )
    result: Tensor = _LogBins.apply(logits.reshape(n_items, logits.shape[-1]), n_bins)  # type: ignore[no-untyped-call]  # torch's own
    return result.reshape(*logits.shape[:-1], n_bins)


class _LogBins(torch.autograd.Function):
    """The compiled recursion. There are few candidates: going through the CPU costs less than many small operations."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, n_bins: int) -> Tensor:
        # A copy: the caller may write into the tensor before the gradient is asked for.
        given = np.array(logits.detach().cpu().numpy(), dtype=np.float64, order="C")
        steps = np.empty((len(given), given.shape[1] + 1, n_bins))
        forward(given, steps)
        ctx.given, ctx.steps, ctx.logits = given, steps, logits
        return _like(steps[:, -1], logits)

    @staticmethod
    def backward(ctx: Any, *above: Tensor) -> tuple[Tensor, None]:
        gradient = np.zeros_like(ctx.given)
        asked = above[0].detach().cpu().double().numpy()
        # What is not possible has no gradient, whatever is asked of it.
        asked = np.where(np.isneginf(ctx.steps[:, -1]), 0.0, asked)
        backward(ctx.given, ctx.steps, np.ascontiguousarray(asked), gradient)
        result: Tensor = _DifferentiableOnce.apply(_like(gradient, ctx.logits), ctx.logits)  # type: ignore[no-untyped-call]  # torch's own
        return result, None


class _DifferentiableOnce(torch.autograd.Function):
    """A gradient that cannot be differentiated again.

    Torch's `once_differentiable` looks at the gradient from above only: where that is a constant, second derivatives
    would silently be 0. Here they hang on the logits.
    """

    @staticmethod
    def forward(_ctx: Any, gradient: Tensor, _logits: Tensor) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(_ctx: Any, *_above: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError(
            "The distribution of a count can be differentiated once only: its second derivatives are not implemented."
        )


def _like(values: NDArray[np.float64], tensor: Tensor) -> Tensor:
    # Converted before it is moved: the device may have no double precision.
    return torch.from_numpy(values.copy()).to(tensor.dtype).to(tensor.device)


class PoissonBinomial(Distribution):
    """The number of successes in independent trials, as ``torch.distributions`` has its distributions.

    Parameters
    ----------
    logits, probs : Tensor, shape (..., k)
        One of the two, for each trial. -inf as a logit marks a trial that is not there: items of a batch may have
        different numbers of them.
    validate_args : bool, optional
        Whether to check that probabilities lie in [0, 1] and that logits are numbers. Default: as torch has it for all
        distributions.

    Examples
    --------
    >>> count = PoissonBinomial(probs=torch.tensor([0.5189, 0.7840]))
    >>> count.log_prob(torch.tensor([0, 1, 2])).exp()
    tensor([0.1039, 0.4893, 0.4068])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}
    support = constraints.nonnegative_integer
    has_enumerate_support = True

    def __init__(
        self, logits: Tensor | None = None, *, probs: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        if (logits is None) == (probs is None):
            raise ValueError("Expected either logits or probs, and not both.")
        given = logits if probs is None else probs
        assert given is not None  # noqa: S101 - for the type checker: one of the two is there
        self._dtype = given.dtype
        kept = given.to(working_dtype(given.device))
        self.logits = kept if probs is None else torch.logit(kept, eps=torch.finfo(kept.dtype).eps)
        super().__init__(batch_shape=given.shape[:-1], validate_args=validate_args)
        if self._validate_args:
            _check_parameters(logits, probs)

    @property
    def probs(self) -> Tensor:
        """Probability of each trial."""
        return torch.sigmoid(self.logits).to(self._dtype)

    @property
    def n_trials(self) -> Tensor:
        """How many trials there are."""
        return (~torch.isneginf(self.logits)).sum(-1)

    @property
    def mean(self) -> Tensor:
        """Expected count, Σ p."""
        return torch.sigmoid(self.logits).sum(-1).to(self._dtype)

    @property
    def variance(self) -> Tensor:
        """Variance, Σ p (1 - p)."""
        p = torch.sigmoid(self.logits)
        return (p * (1 - p)).sum(-1).to(self._dtype)

    @property
    def mode(self) -> Tensor:
        """The most probable count, the smallest of them if there are several."""
        return self._log_pmf().argmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Logarithm of P(C = value); -inf where it is not possible."""
        value = torch.as_tensor(value, device=self.logits.device)
        highest = int(value.max().clamp(min=0)) if value.numel() else 0
        highest = min(highest, self.logits.shape[-1])  # larger counts are in the last bin, which is impossible then
        table = log_bins(self.logits, highest + 2)
        shape = torch.broadcast_shapes(value.shape, self.batch_shape)
        index = value.long().clamp(min=0, max=highest + 1).expand(shape).unsqueeze(-1)
        picked = table.expand(*shape, highest + 2).gather(-1, index).squeeze(-1)
        return torch.where((value >= 0) & (value == value.long()), picked, -torch.inf).to(self._dtype)

    def log_bins(self, max_count: int = MAX_COUNT) -> Tensor:
        """Logarithms of P(0), … P(max_count or more): (..., max_count + 1)."""
        return log_bins(self.logits, max_count + 1).to(self._dtype)

    def cdf(self, value: Tensor) -> Tensor:
        """P(C ≤ value)."""
        value = torch.as_tensor(value, device=self.logits.device)
        pmf = self._log_pmf().exp()
        below = torch.arange(pmf.shape[-1], device=pmf.device) <= value.unsqueeze(-1)
        return (pmf * below).sum(-1).clamp(max=1.0).to(self._dtype)

    def entropy(self) -> Tensor:
        """Entropy in nats."""
        logs = self._log_pmf()
        terms = torch.where(torch.isneginf(logs), 0.0, logs)
        return -(terms.exp() * terms * ~torch.isneginf(logs)).sum(-1).to(self._dtype)

    def sample(self, sample_shape: _Size = torch.Size()) -> Tensor:  # noqa: B008 - the signature of torch
        """Draw counts."""
        with torch.no_grad():
            p = torch.sigmoid(self.logits).expand(*sample_shape, *self.logits.shape)
            return torch.bernoulli(p).sum(-1).to(self._dtype)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All counts that the batch can have: (n, *batch)."""
        counts = torch.arange(self.logits.shape[-1] + 1, dtype=self._dtype, device=self.logits.device)
        counts = counts.reshape(-1, *(1,) * len(self.batch_shape))
        return counts.expand(-1, *self.batch_shape) if expand else counts

    def as_type(self, dtype: torch.dtype) -> PoissonBinomial:
        """The same distribution, whose methods give numbers of another type. It is still computed as before."""
        twin = PoissonBinomial(self.logits, validate_args=False)
        twin._dtype = dtype
        return twin

    def expand(self, batch_shape: _Size, _instance: Any = None) -> PoissonBinomial:
        """The same distribution for a larger batch."""
        logits = self.logits.expand(*batch_shape, self.logits.shape[-1])
        return PoissonBinomial(logits, validate_args=False).as_type(self._dtype)

    def _log_pmf(self) -> Tensor:
        return log_bins(self.logits, self.logits.shape[-1] + 1)


def _check_parameters(logits: Tensor | None, probs: Tensor | None) -> None:
    if logits is not None and bool(logits.isnan().any()):
        raise ValueError("Expected logits to be numbers, but some are NaN.")
    if probs is not None and not bool(((probs >= 0) & (probs <= 1)).all()):
        raise ValueError("Expected probs to lie in [0, 1], but some do not, or are NaN.")

"""torchmetrics: a metric whose states are sums, so that batches and processes add up."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torchmetrics import Metric

from lesioncount.torch.precision import working_dtype


class SummedMetric(Metric):
    """A metric that keeps nothing but sums, in double precision: many voxels must not be lost in rounding.

    Parameters
    ----------
    **options
        Passed on to `torchmetrics.Metric`.
    """

    is_differentiable = False
    full_state_update = False

    def __init__(self, **options: bool) -> None:
        super().__init__(**options)
        for name, shape in self._sums().items():
            self.add_state(name, default=torch.zeros(shape, dtype=torch.float64), dist_reduce_fx="sum")

    @abstractmethod
    def _sums(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the sums."""

    def _add(self, *sums: NDArray[Any] | Tensor | float) -> None:
        for name, value in zip(self._sums(), sums, strict=True):
            state = getattr(self, name)
            added = torch.as_tensor(value).cpu().to(torch.float64)
            setattr(self, name, state + added.to(state.device))

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = "") -> nn.Module:
        # On a device without double precision the sums stay on the CPU.
        can_hold_sums = working_dtype(fn(torch.zeros(1)).device) == torch.float64
        return super()._apply(fn, exclude_state if can_hold_sums else tuple(self._defaults))

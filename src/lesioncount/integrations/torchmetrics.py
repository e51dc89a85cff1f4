"""torchmetrics: how good counts are during validation, as sums, so that batches and processes add up."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torchmetrics import Metric

from lesioncount.distributions.count_distribution import MAX_COUNT
from lesioncount.errors import ShapeError
from lesioncount.torch.precision import working_dtype
from lesioncount.trust.scores import Confusion, Reliability, confusion, count_reliability, nll, reliability, rps

_BINS = 10

# Some metrics keep a table of this size squared.
_MOST_COUNTS = 10_000
_Sums = tuple[NDArray[Any] | float, ...]


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


class CountScore(SummedMetric):
    """What metrics of counts share: a batch is its log-probabilities and its true counts, as for `nll_loss`.

    Parameters
    ----------
    max_count : int, default 4
        The last bin holds this count and all larger ones, as in `count_log_probs`.
    **options
        Passed on to `torchmetrics.Metric`.
    """

    def __init__(self, max_count: int = MAX_COUNT, **options: bool) -> None:
        if not 1 <= max_count <= _MOST_COUNTS:
            raise ValueError(f"Expected max_count to be at least 1 and at most {_MOST_COUNTS}, but got {max_count!r}.")
        self.max_count = max_count
        super().__init__(**options)

    def update(self, log_probs: Tensor, counts: Tensor) -> None:
        """Add a batch: log-probabilities (n, max_count + 1) and true counts (n,)."""
        p = log_probs.detach().cpu().double().exp().numpy().reshape(-1, log_probs.shape[-1])
        if p.shape[1] != self.max_count + 1:
            raise ValueError(f"Expected {self.max_count + 1} log-probabilities, but got {p.shape[1]}: see max_count.")
        if counts.numel() != len(p):
            raise ShapeError(
                f"Expected a count for each of {tuple(log_probs.shape[:-1])} scans, but got {tuple(counts.shape)}."
            )
        self._add(*self._sums_of(p, counts.detach().cpu().numpy().reshape(-1)))

    def _sums(self) -> dict[str, tuple[int, ...]]:
        return {"total": (), "n": ()}

    @abstractmethod
    def _sums_of(self, p: NDArray[np.float64], counts: NDArray[np.int64]) -> _Sums:
        """What a batch adds to each of the sums."""

    def compute(self) -> Tensor | dict[str, Tensor]:
        """The mean over all scans."""
        total, n = (getattr(self, name) for name in self._sums())
        return torch.as_tensor(total / n).float()


class CountNLL(CountScore):
    """Mean negative log-likelihood of the true count, floored as in `scores.nll`."""

    higher_is_better = False

    def _sums_of(self, p: NDArray[np.float64], counts: NDArray[np.int64]) -> _Sums:
        return float(nll(p, counts).sum()), len(p)


class CountRPS(CountScore):
    """Mean ranked probability score."""

    higher_is_better = False

    def _sums_of(self, p: NDArray[np.float64], counts: NDArray[np.int64]) -> _Sums:
        return float(rps(p, counts).sum()), len(p)


class CountF1(CountScore):
    """F1 of the most probable count, averaged over classes."""

    higher_is_better = True
    matrix: Tensor

    def _sums(self) -> dict[str, tuple[int, ...]]:
        return {"matrix": (self.max_count + 1, self.max_count + 1)}

    def _sums_of(self, p: NDArray[np.float64], counts: NDArray[np.int64]) -> _Sums:
        return (confusion(p.argmax(1), counts, max_count=self.max_count).matrix,)

    def compute(self) -> Tensor:
        """The score of all scans."""
        return torch.tensor(self._score(Confusion(self.matrix.cpu().numpy())))

    @staticmethod
    def _score(of: Confusion) -> float:
        return float(of.f1)


class CountAccuracy(CountF1):
    """Share of scans whose most probable count is right."""

    @staticmethod
    def _score(of: Confusion) -> float:
        return float(of.accuracy)


class CountCalibrationError(CountScore):
    """Calibration of the most probable count: ``{"ece": …, "mce": …}``."""

    higher_is_better = False

    def _sums(self) -> dict[str, tuple[int, ...]]:
        return {"n": (_BINS,), "confidence": (_BINS,), "hits": (_BINS,)}

    def _sums_of(self, p: NDArray[np.float64], counts: NDArray[np.int64]) -> _Sums:
        found = count_reliability(p, counts, bins=_BINS)
        return found.n, found.confidence_sum, found.hit_sum

    def compute(self) -> dict[str, Tensor]:
        """Expected and maximum calibration error."""
        of = Reliability(*(getattr(self, name).cpu().numpy() for name in self._sums()))
        return {"ece": torch.tensor(float(of.ece)), "mce": torch.tensor(float(of.mce))}


class VoxelCalibrationError(CountCalibrationError):
    """Calibration of the map itself, over all voxels: ``{"ece": …, "mce": …}``."""

    def update(self, logits: Tensor, masks: Tensor) -> None:
        """Add a batch: logits, and masks of the same shape."""
        found = reliability(torch.sigmoid(logits.detach().cpu().double()).numpy(), masks.detach().cpu().numpy() > 0)
        self._add(found.n, found.confidence_sum, found.hit_sum)

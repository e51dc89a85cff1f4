"""torchmetrics: how good counts are during validation. States are sums, so that processes and batches add up."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torchmetrics import Metric

from lesioncount.trust.scores import Confusion, Reliability, confusion, count_reliability, nll, reliability, rps

_BINS = 10
_Sums = tuple[NDArray[Any] | float, ...]


class CountMetric(Metric):
    """What is common to metrics of counts: a batch is its log-probabilities and its true counts, as `nll_loss` has it.

    Parameters
    ----------
    max_count : int, default 4
        The last bin holds all counts from there on, as in `count_log_probs`.
    **options
        Those of `torchmetrics.Metric`.
    """

    is_differentiable = False
    full_state_update = False

    def __init__(self, max_count: int = 4, **options: bool) -> None:
        super().__init__(**options)
        self.max_count = max_count
        for name, shape in self._sums().items():
            self.add_state(name, default=torch.zeros(shape, dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, log_probs: Tensor, counts: Tensor) -> None:
        """Add a batch: log-probabilities (n, max_count + 1) and true counts (n,)."""
        p = log_probs.detach().double().exp().cpu().numpy().reshape(-1, log_probs.shape[-1])
        if p.shape[1] != self.max_count + 1:
            raise ValueError(f"Expected {self.max_count + 1} log-probabilities, but got {p.shape[1]}: see max_count.")
        self._add(*self._sums_of(p, counts.detach().cpu().numpy().reshape(-1)))

    def _sums(self) -> dict[str, tuple[int, ...]]:
        return {"total": (), "n": ()}

    @abstractmethod
    def _sums_of(self, p: NDArray[np.float64], counts: NDArray[np.int64]) -> _Sums:
        """What a batch adds to each of the sums."""

    def _add(self, *sums: NDArray[Any] | float) -> None:
        for name, value in zip(self._sums(), sums, strict=True):
            state = getattr(self, name)
            setattr(self, name, state + torch.as_tensor(value, dtype=torch.float64).to(state.device))

    def compute(self) -> Tensor | dict[str, Tensor]:
        """The mean over all scans."""
        total, n = (getattr(self, name) for name in self._sums())
        return torch.as_tensor(total / n).float()


class CountNLL(CountMetric):
    """Mean negative log-likelihood of the true count, floored as `scores.nll` has it."""

    higher_is_better = False

    def _sums_of(self, p: NDArray[np.float64], counts: NDArray[np.int64]) -> _Sums:
        return float(nll(p, counts).sum()), len(p)


class CountRPS(CountMetric):
    """Mean ranked probability score."""

    higher_is_better = False

    def _sums_of(self, p: NDArray[np.float64], counts: NDArray[np.int64]) -> _Sums:
        return float(rps(p, counts).sum()), len(p)


class CountF1(CountMetric):
    """Class average of F1, of the most probable counts."""

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


class CountCalibrationError(CountMetric):
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
    """Calibration of the map itself, of all voxels: ``{"ece": …, "mce": …}``."""

    def update(self, logits: Tensor, masks: Tensor) -> None:
        """Add a batch: logits, and masks of the same shape."""
        found = reliability(torch.sigmoid(logits.detach().double()).cpu().numpy(), masks.detach().cpu().numpy() > 0)
        self._add(found.n, found.confidence_sum, found.hit_sum)

"""Scores of several trainings → an estimate, its interval over patients, and its spread over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from lesioncount.trust.scores.bootstrap import CONFIDENCE, N_RESAMPLES, interval_of, resampled_weights

# A score by seed (rows), of the scans as they are (first column) and of each resample of patients (the others).
Samples = NDArray[np.float64]

_BIASED = ("ece", "mce", "voxel_ece", "voxel_mce")


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, its 95 % interval over patients, and the value of each seed."""

    value: float
    low: float
    high: float
    seeds: tuple[float, ...]

    @classmethod
    def of(cls, samples: Samples, /, *, n: float | None = None, biased: bool = False) -> Self:
        """From samples: patients are drawn anew, the trained networks stay.

        Parameters
        ----------
        samples : Samples
        n : float, optional
            Of a share: how many patients it stands on. Where all of them agree, resamples do as well, and the interval
            is the exact one of so many trials.
        biased : bool, default False
            Of calibration errors and ranges, which cannot be below 0 and are larger in resamples than in what was
            resampled: move the interval by the difference between the estimate and the mean of the resamples.
        """
        mean = samples.mean(axis=0)
        value, drawn = float(mean[0]), mean[1:]
        low, high = interval_of(drawn)
        if n is not None and low == high and value in (0.0, 1.0):
            # Clopper and Pearson: what would leave no exception among n in 2.5 % of cases.
            reach = 1 - ((1 - CONFIDENCE) / 2) ** (1 / max(n, 1.0))
            low, high = (0.0, reach) if value == 0 else (1 - reach, 1.0)
        if biased and np.isfinite(drawn).any():
            bias = float(np.nanmean(drawn)) - value
            low, high = max(low - bias, 0.0), max(high - bias, 0.0)
        return cls(value, low, high, tuple(float(one) for one in samples[:, 0]))

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self) | {"seeds": list(self.seeds)}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """From plain values."""
        numbers = {name: float("nan") if content[name] is None else content[name] for name in ("value", "low", "high")}
        return cls(**numbers, seeds=tuple(float("nan") if one is None else one for one in content["seeds"]))


def estimates_of(samples: dict[str, Samples], scores: Iterable[str], /, *, n: float | None = None) -> list[Estimate]:
    """Estimates of some scores, each as its kind wants it."""
    return [Estimate.of(samples[score], n=n, biased=score in _BIASED) for score in scores]


class Scorable(Protocol):
    """Something with scores that can be computed again for other weights of its scans."""

    @property
    def groups(self) -> Sequence[str]:
        """The patient of each scan."""

    def scores(self, weights: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Every score, for each row of weights (m, n): shape (m,)."""


@dataclass(frozen=True, eq=False)
class Resampling:
    """The same resamples of patients for everything that is compared.

    Attributes
    ----------
    patients : tuple of str
    n_resamples : int
    """

    patients: tuple[str, ...]
    n_resamples: int = N_RESAMPLES

    @classmethod
    def of(cls, groups: Sequence[Sequence[str]]) -> Self:
        """Of all patients that occur in some seed."""
        return cls(tuple(sorted({patient for of_seed in groups for patient in of_seed})))

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        drawn = np.concatenate(list(resampled_weights(self.patients, n_resamples=self.n_resamples)))
        return np.concatenate([np.ones((1, len(self.patients))), drawn])

    def samples(self, seeds: Sequence[Scorable]) -> dict[str, Samples]:
        """Samples of every score, from what the networks of each seed said."""
        place = {patient: i for i, patient in enumerate(self.patients)}
        found = [one.scores(self._weights[:, [place[patient] for patient in one.groups]]) for one in seeds]
        return {name: np.stack([of_seed[name] for of_seed in found]) for name in found[0]}

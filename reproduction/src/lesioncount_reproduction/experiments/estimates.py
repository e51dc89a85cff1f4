"""Scores of several trainings → an estimate, its interval over patients, and its spread over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from lesioncount.trust.scores.bootstrap import CONFIDENCE, N_RESAMPLES, interval_of, resampled_weights
from lesioncount.trust.scores.estimate import Estimate

_BIASED = ("ece", "mce", "voxel_ece", "voxel_mce")


@dataclass(frozen=True, eq=False)
class Samples:
    """A score of every seed, for the patients as they are and for each resample of them.

    Attributes
    ----------
    values : ndarray of float, shape (n_seeds, 1 + n_resamples)
        The first column is of the patients as they are.
    n_patients : float
        Of a share: how many patients it stands on, as `Resampling.samples` has it. NaN: it is no share.
    is_biased : bool
        Whether it cannot be below 0 and is larger in resamples than in what was resampled, as calibration errors and
        ranges are.
    """

    values: NDArray[np.float64]
    n_patients: float = math.nan
    is_biased: bool = False

    @property
    def seeds(self) -> tuple[float, ...]:
        """The score of each seed."""
        return tuple(float(value) for value in self.values[:, 0])

    def __sub__(self, other: Samples) -> Samples:
        """Paired differences, which are no shares and can be below 0."""
        return Samples(self.values - other.values)


def estimate_of(samples: Samples, /) -> Estimate:
    """The mean over seeds with its 95 % interval: patients are drawn anew, the trained networks stay.

    Where all patients agree, so do all resamples. The interval of a share is then the exact one of `n_patients`
    trials (Clopper and Pearson), and that of anything else has no width. The interval of a biased score is moved by
    the difference between the score and its mean over resamples.
    """
    mean = samples.values.mean(axis=0)
    value, drawn = float(mean[0]), mean[1:]
    low, high = interval_of(drawn)
    if not math.isnan(samples.n_patients) and low == high and value in (0.0, 1.0):
        # The rate that would leave no exception among so many in 2.5 % of cases.
        reach = 1 - ((1 - CONFIDENCE) / 2) ** (1 / max(samples.n_patients, 1.0))
        low, high = (0.0, reach) if value == 0 else (1 - reach, 1.0)
    if samples.is_biased and np.isfinite(drawn).any():
        bias = float(np.nanmean(drawn)) - value
        low, high = max(low - bias, 0.0), max(high - bias, 0.0)
    return Estimate(value, low, high, samples.seeds)


def estimates_of(samples: Mapping[str, Samples], scores: Iterable[str], /) -> list[Estimate]:
    """Estimates of some scores."""
    return [estimate_of(samples[score]) for score in scores]


class Scorable(Protocol):
    """Something with scores that can be computed again for other weights of its scans."""

    @property
    def groups(self) -> Sequence[str]:
        """The patient of each scan."""

    @property
    def shares(self) -> Mapping[str, float]:
        """The scores that are shares of scans, and the part of all scans that each is a share of."""

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
    def of(cls, seeds: Sequence[Scorable]) -> Self:
        """Of all patients that occur in some seed."""
        return cls(tuple(sorted({patient for one in seeds for patient in one.groups})))

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        drawn = np.concatenate(list(resampled_weights(self.patients, n_resamples=self.n_resamples)))
        return np.concatenate([np.ones((1, len(self.patients))), drawn])

    def samples(self, seeds: Sequence[Scorable]) -> dict[str, Samples]:
        """Samples of every score, from what the networks of each seed said.

        A share stands on as many patients as there are distinct ones, however many scans, folds and seeds each has;
        and if it is a share of some scans only, such as those that were counted right, on that part of the patients.
        """
        place = {patient: i for i, patient in enumerate(self.patients)}
        found = [one.scores(self._weights[:, [place[patient] for patient in one.groups]]) for one in seeds]
        parts = {name: np.mean([one.shares[name] for one in seeds]) for name in seeds[0].shares}
        return {
            name: Samples(
                np.stack([of_seed[name] for of_seed in found]),
                len(self.patients) * float(parts.get(name, math.nan)),
                name in _BIASED,
            )
            for name in found[0]
        }

"""Scores of several trainings → an estimate, its interval over patients, and its spread over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from lesioncount.scores.bootstrap import N_RESAMPLES, interval_of, resampled_weights

# A score by seed (rows), of the scans as they are (first column) and of each resample of patients (the others).
Samples = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, its 95 % interval over patients, and the value of each seed."""

    value: float
    low: float
    high: float
    seeds: tuple[float, ...]

    @classmethod
    def of(cls, samples: Samples, /) -> Self:
        """From samples: patients are drawn anew, the trained networks stay."""
        mean = samples.mean(axis=0)
        return cls(float(mean[0]), *interval_of(mean[1:]), tuple(float(value) for value in samples[:, 0]))

    @property
    def spread(self) -> tuple[float, float]:
        """Lowest and highest value of a seed."""
        return min(self.seeds), max(self.seeds)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self) | {"seeds": list(self.seeds)}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """From plain values."""
        numbers = {name: float("nan") if content[name] is None else content[name] for name in ("value", "low", "high")}
        return cls(**numbers, seeds=tuple(float("nan") if one is None else one for one in content["seeds"]))


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

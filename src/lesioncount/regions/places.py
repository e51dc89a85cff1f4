"""Where each candidate of a map lies, and the distribution of the count in each region."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.regions.region_names import OUTSIDE, no_such_region
from lesioncount.regions.within import SEPARATOR, Within

__all__ = ["OUTSIDE", "Places"]


@dataclass(frozen=True, eq=False)
class Places:
    """The regions of all candidates of a map. Made by `Regions.places`.

    Attributes
    ----------
    names : tuple of str
        The regions of the label map, and ``outside`` at the end: each candidate lies in one of them.
    region : ndarray of int, shape (K,)
        Which of them that is: where the peak of the candidate lies.
    within : tuple of Within
        Regions by distance, which overlap with the others.
    distance_mm : ndarray of float, shape (len(within), K)
        From the nearest voxel of each candidate; infinite where that is farther away than is asked for.
    unnamed : tuple of str
        Regions that are called by their number, although others have names.
    """

    names: tuple[str, ...]
    region: NDArray[np.intp]
    within: tuple[Within, ...]
    distance_mm: NDArray[np.float64]
    unnamed: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.region)

    @cached_property
    def members(self) -> dict[str, NDArray[np.bool_]]:
        """For each region by its name, those by distance last: which candidates lie in it."""
        of_map = {name: self.region == number for number, name in enumerate(self.names)}
        return of_map | {one.name: np.isfinite(mm) for one, mm in zip(self.within, self.distance_mm, strict=True)}

    @property
    def region_names(self) -> list[str]:
        """The region of each candidate."""
        return [self.names[number] for number in self.region.tolist()]

    def columns(self) -> dict[str, list[Any]]:
        """What ``lesions.tsv`` has of it: the region, regions by distance, and the distances."""
        near = [self._near(row) for row in range(len(self))]
        return {
            "region": self.region_names,
            "within": [None if one is None else one[0] for one in near],
            "within_mm": [None if one is None else one[1] for one in near],
        }

    def _near(self, row: int) -> tuple[str, str] | None:
        """The regions by distance that a candidate lies in, and the distances, as cells of a table; None if in none."""
        found = [(one.name, mm) for one, mm in zip(self.within, self.distance_mm[:, row], strict=True) if mm < np.inf]
        if not found:
            return None
        between = f"{SEPARATOR} "
        return between.join(name for name, _ in found), between.join(f"{mm:.3g}" for _, mm in found)


class RegionCounts(Mapping[str, CountDistribution]):
    """The number of lesions in each region, as a mapping; a distribution is made when it is asked for.

    Parameters
    ----------
    numbers : mapping of str to array
        What the distribution of each region is made of.
    kind : callable
        Makes it, such as `PoissonBinomial` of existence probabilities.
    """

    def __init__(
        self, numbers: Mapping[str, NDArray[np.float64]], kind: Callable[[NDArray[np.float64]], CountDistribution]
    ) -> None:
        self._numbers, self._kind = dict(numbers), kind
        self._known: dict[str, CountDistribution] = {}

    def __getitem__(self, name: str) -> CountDistribution:
        if name not in self._numbers:
            hint = "" if self._numbers else " Count with regions=, a label map of the shape of the map."
            raise KeyError(f"{no_such_region(str(name), self._numbers)}{hint}")
        if name not in self._known:
            self._known[name] = self._kind(self._numbers[name])
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        means = ", ".join(f"{name}: {count.mean():.4g}" for name, count in self.items())
        return f"RegionCounts({means})"

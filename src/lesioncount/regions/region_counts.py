"""Regions by name → the distribution of the count in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.regions.region_names import no_such_region


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

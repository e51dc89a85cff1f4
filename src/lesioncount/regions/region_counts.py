"""Regions by name → the distribution of the count in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.regions.region_names import no_such_region


class RegionCounts(Mapping[str, CountDistribution]):
    """The number of lesions in each region, as a mapping; a distribution is made when it is asked for.

    Parameters
    ----------
    names : tuple of str
    count_in : callable
        The distribution of a region, given its name.
    """

    def __init__(self, names: tuple[str, ...], count_in: Callable[[str], CountDistribution]) -> None:
        self._names, self._count_in = names, count_in
        self._known: dict[str, CountDistribution] = {}

    def __getitem__(self, name: str) -> CountDistribution:
        if name not in self._names:
            hint = "" if self._names else " Count with regions=, a label map of the shape of the map."
            raise KeyError(f"{no_such_region(str(name), self._names)}{hint}")
        if name not in self._known:
            self._known[name] = self._count_in(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        means = ", ".join(f"{name}: {count.mean():.4g}" for name, count in self.items())
        return f"RegionCounts({means})"

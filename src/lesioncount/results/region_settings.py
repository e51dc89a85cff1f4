"""What regions a run counts in: names and distances as they are given, and what is recorded of them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from lesioncount.cohort.tables import read_region_names
from lesioncount.errors import RegionError
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.masks import read_label_map
from lesioncount.regions import Regions, Within
from lesioncount.regions.region_names import checked_names
from lesioncount.regions.within import all_within, check_known


class CountedRegions(Struct, frozen=True):
    """What is recorded of them with every scan; which label map it was is among its files.

    Attributes
    ----------
    names_sha256 : str or None
        Of labels and their names; None if they had none.
    within : tuple of str
        Regions by distance.
    """

    names_sha256: str | None = None
    within: tuple[str, ...] = ()


@dataclass(frozen=True)
class RegionSettings:
    """The names of regions, and those that are defined by distance.

    Attributes
    ----------
    names : mapping of int to str, or None
        What labels are called. None: by their numbers.
    within : tuple of Within
    """

    names: Mapping[int, str] | None = None
    within: tuple[Within, ...] = ()

    @classmethod
    def of(
        cls,
        names: Mapping[int, str] | str | Path | None = None,
        within: str | Within | Iterable[str | Within] = (),
    ) -> Self:
        """From names or the table that has them, and distances as text; raise if they do not fit together."""
        known = read_region_names(Path(names)) if isinstance(names, str | Path) else names
        found = all_within(within)
        if known is not None:
            known = checked_names(known)
            numbers = [name for one in found for name in one.regions if name.isdecimal()]  # labels without a name
            check_known(found, [*known.values(), *numbers])
        return cls(known, found)

    def on(self, path: Path, grid: VoxelGrid) -> Regions:
        """The regions of a map, whose labels are in this file."""
        label_map = read_label_map(path)
        return Regions(label_map.on(grid), self.names, self.within, present=label_map.present)

    @property
    def recorded(self) -> CountedRegions:
        """What is recorded of them."""
        return CountedRegions(_sha256(self.names), tuple(map(str, self.within)))


def region_settings(
    regions: object,
    names: RegionSettings | Mapping[int, str] | str | os.PathLike[str] | None,
    within: str | Within | Iterable[str | Within],
) -> RegionSettings | None:
    """What is known of regions, where there are any; raise if something is known of regions that are not given."""
    if regions is None:
        if names is not None or within:
            raise RegionError(
                "Names of regions and distances to them need a label map of the regions (--regions; from Python: "
                "regions=)."
            )
        return None
    if isinstance(names, RegionSettings):
        return names
    return RegionSettings.of(Path(names) if isinstance(names, str | os.PathLike) else names, within)


def _sha256(names: Mapping[int, str] | None) -> str | None:
    if names is None:
        return None
    content: list[Any] = [[int(label), name] for label, name in names.items()]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()

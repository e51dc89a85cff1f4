"""Sensitivity by the size of true lesions: thirds of all lesions, or ranges that a user asks for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from lesioncount.errors import TruthError
from lesioncount.results.record import Entry
from lesioncount.sweep.sizes import VoxelSize
from lesioncount.trust.scores.bootstrap import resampled_ratios
from lesioncount.trust.scores.estimate import Estimate
from lesioncount.trust.scores.lesions import LesionMatch

Unit = Literal["voxels", "mm³"]


class LesionSizes(Struct, frozen=True):
    """True lesions of a range of sizes, and the share that has a candidate of its own.

    Thirds go from their smallest to their largest lesion. Of ranges that were asked for, the upper end does not belong
    to the range, and the last one has none.
    """

    low: float = 0
    high: float | None = 0
    n_lesions: int = 0
    sensitivity: Estimate = Estimate()
    unit: Unit = "voxels"
    is_third: bool = True

    @property
    def in_words(self) -> str:
        """Such as "3 to 40 voxels" or "50 to below 500 mm³"."""
        if self.high is None:
            return f"{self.low:g} {self.unit} or more"
        if self.is_third:
            return f"{self.low:g} to {self.high:g} {self.unit}"
        return f"{f'{self.low:g} to ' if self.low else ''}below {self.high:g} {self.unit}"


@dataclass(frozen=True)
class SizeEdges:
    """Sizes at which one range ends and the next begins, such as 50 and 500 mm³."""

    edges: tuple[float, ...]
    unit: Unit = "mm³"


def by_size(
    scans: Sequence[Entry],
    matches: Sequence[LesionMatch],
    groups: Sequence[str],
    asked: SizeEdges | None = None,
    *,
    seed: int,
) -> tuple[LesionSizes, ...]:
    """Sensitivity in ranges of sizes, without those that no lesion is in; empty unless masks were compared.

    Parameters
    ----------
    scans, matches, groups
        A row for each mask that was compared.
    asked : SizeEdges, optional
        Default: thirds of the number of voxels; equal sizes stay together.
    seed : int
        Of resamples.
    """
    in_voxels = [match.lesion_voxels for match in matches if match.lesion_voxels is not None]
    if len(in_voxels) < len(matches) or not any(map(len, in_voxels)):
        return ()
    unit: Unit = "voxels" if asked is None else asked.unit
    sizes = [n * (1 if unit == "voxels" else _voxel_mm3(scan)) for n, scan in zip(in_voxels, scans, strict=True)]
    together = np.sort(np.concatenate(sizes))
    edges = np.unique(together[[len(together) // 3, 2 * len(together) // 3]]) if asked is None else asked.edges
    place = [np.searchsorted(edges, one, side="right") for one in sizes]
    found = range(len(edges) + 1)
    parts = [[int(((of == k) & (m.owner_of >= 0)).sum()) for k in found] for of, m in zip(place, matches, strict=True)]
    wholes = [[int((of == k).sum()) for k in found] for of in place]
    shares = resampled_ratios(np.array(parts, np.float64), np.array(wholes, np.float64), groups, seed=seed)
    at = np.searchsorted(edges, together, side="right")
    return tuple(
        LesionSizes(*_ends(k, together[at == k], asked), int((at == k).sum()), shares[k], unit, asked is None)
        for k in found
        if (at == k).any()
    )


def _ends(k: int, sizes: NDArray[np.float64], asked: SizeEdges | None) -> tuple[float, float | None]:
    if asked is None:
        return float(sizes[0]), float(sizes[-1])
    return (0.0, *asked.edges)[k], (*asked.edges, None)[k]


def _voxel_mm3(scan: Entry) -> float:
    edges = scan.grid.voxel_edges_mm
    if edges is None:
        raise TruthError(
            f"The size of a voxel of {scan.shown} is not known: give --size-edges in voxels, as 5vox,50vox."
        )
    volume = VoxelSize(np.asarray(edges, dtype=np.float64), len(scan.grid.shape)).volume_mm3
    # Voxel sizes come from files as single precision: a lesion of exactly 50 mm³ is not below it.
    return float(f"{volume:.6g}") if math.isfinite(volume) else volume

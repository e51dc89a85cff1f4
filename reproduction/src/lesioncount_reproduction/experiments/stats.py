"""A network's map of a scan → the few numbers that every table and figure is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lesioncount.candidates import find_candidates
from lesioncount.protocol import CountingProtocol
from lesioncount.trust.scores.lesions import match_lesions
from lesioncount.trust.scores.reliability import reliability

# At which connected components are counted, and candidates found.
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

# Arrays of every scan that differ in length.
_RAGGED = ("hills", "saddles", "owns", "touches")

# Bins of the probabilities of voxels, from which their F1 at any threshold follows.
VOXEL_BINS = 100


@dataclass(frozen=True, eq=False)
class ScanStats:
    """What a network predicted for the scans of a part, beside the truth.

    Attributes
    ----------
    names, patients : tuple of str
    counts : array of int, shape (n,)
        True counts.
    log_probs : array of float, shape (n, 5)
        Of the count, by the network's own method.
    peaks : tuple of tuple of array
        For each threshold and scan, the highest probability of each connected region above it: existence
        probabilities of our method, and as many as connected components count.
    hills, saddles : tuple of array of float
        For each scan, the peaks of the map, and the saddle at which each joins a higher one (0: at none above the
        lowest threshold): candidates that may touch.
    owns, touches : tuple of array of bool
        Of the regions at the lowest threshold: whether each has a true lesion to itself, or shares a voxel with one.
    lesion_voxels, other_voxels : array of int, shape (n, 100)
        Histograms of the probabilities of voxels inside and outside of lesions.
    voxel_n, voxel_confidence, voxel_hits : array, shape (n, 10)
        Reliability of the map.
    """

    names: tuple[str, ...]
    patients: tuple[str, ...]
    counts: NDArray[np.int64]
    log_probs: NDArray[np.float64]
    peaks: tuple[tuple[NDArray[np.float64], ...], ...] = field(repr=False)
    hills: tuple[NDArray[np.float64], ...] = field(repr=False)
    saddles: tuple[NDArray[np.float64], ...] = field(repr=False)
    owns: tuple[NDArray[np.bool_], ...] = field(repr=False)
    touches: tuple[NDArray[np.bool_], ...] = field(repr=False)
    lesion_voxels: NDArray[np.int64] = field(repr=False)
    other_voxels: NDArray[np.int64] = field(repr=False)
    voxel_n: NDArray[np.int64] = field(repr=False)
    voxel_confidence: NDArray[np.float64] = field(repr=False)
    voxel_hits: NDArray[np.float64] = field(repr=False)

    def __len__(self) -> int:
        return len(self.names)

    def existence(self, threshold: float) -> tuple[NDArray[np.float64], ...]:
        """Existence probabilities of each scan, of candidates above a threshold."""
        return self.peaks[THRESHOLDS.index(threshold)]

    def components(self, threshold: float) -> NDArray[np.int64]:
        """Connected components of each scan above a threshold."""
        return np.array([len(peaks) for peaks in self.existence(threshold)], dtype=np.int64)

    @classmethod
    def of(
        cls,
        numbers: Sequence[MapNumbers],
        /,
        *,
        names: tuple[str, ...],
        patients: tuple[str, ...],
        counts: NDArray[np.int64],
        log_probs: NDArray[np.float64],
    ) -> Self:
        """From the numbers of each map."""
        arrays: dict[str, Any] = {name: tuple(getattr(one, name) for one in numbers) for name in _RAGGED}
        for name in ("lesion_voxels", "other_voxels", "voxel_n", "voxel_confidence", "voxel_hits"):
            arrays[name] = np.stack([getattr(one, name) for one in numbers])
        peaks = tuple(zip(*(one.peaks for one in numbers), strict=True))
        return cls(names, patients, counts, log_probs, peaks=peaks, **arrays)

    @classmethod
    def joined(cls, parts: Sequence[ScanStats]) -> ScanStats:
        """The scans of several folds, one after the other."""
        values: dict[str, Any] = {}
        for one in fields(cls):
            of_parts = [getattr(part, one.name) for part in parts]
            if one.name == "peaks":
                values["peaks"] = tuple(
                    tuple(scan for part in of_parts for scan in part[i]) for i in range(len(THRESHOLDS))
                )
            elif isinstance(of_parts[0], tuple):
                values[one.name] = tuple(item for part in of_parts for item in part)
            else:
                values[one.name] = np.concatenate(of_parts)
        return cls(**values)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As plain arrays, to be saved."""
        ragged = {f"peaks{i}": of for i, of in enumerate(self.peaks)} | {name: getattr(self, name) for name in _RAGGED}
        arrays: dict[str, NDArray[Any]] = {
            name: np.array(getattr(self, name), dtype=np.str_) for name in ("names", "patients")
        }
        for name, rows in ragged.items():
            arrays[name] = np.concatenate(rows) if rows else np.empty(0)
            arrays[f"{name}_n"] = np.array([len(row) for row in rows], dtype=np.int64)
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, np.ndarray):
                arrays[one.name] = value
        return arrays

    @classmethod
    def of_arrays(cls, found: Mapping[str, NDArray[Any]]) -> Self:
        """From what `arrays` gave."""

        def rows(name: str) -> tuple[NDArray[Any], ...]:
            return tuple(np.split(found[name], np.cumsum(found[f"{name}_n"])[:-1]))

        values: dict[str, Any] = {name: tuple(found[name].tolist()) for name in ("names", "patients")}
        values["peaks"] = tuple(rows(f"peaks{i}") for i in range(len(THRESHOLDS)))
        values |= {name: rows(name) for name in _RAGGED}
        values |= {one.name: found[one.name] for one in fields(cls) if one.name not in values}
        return cls(**values)


@dataclass(frozen=True, eq=False)
class MapNumbers:
    """The numbers of one map."""

    peaks: tuple[NDArray[np.float64], ...]
    hills: NDArray[np.float64]
    saddles: NDArray[np.float64]
    owns: NDArray[np.bool_]
    touches: NDArray[np.bool_]
    lesion_voxels: NDArray[np.int64]
    other_voxels: NDArray[np.int64]
    voxel_n: NDArray[np.int64]
    voxel_confidence: NDArray[np.float64]
    voxel_hits: NDArray[np.float64]


def map_numbers(probabilities: NDArray[np.float32], mask: NDArray[np.uint8]) -> MapNumbers:
    """The numbers that are kept of a map, compared with the true mask."""
    found = [
        find_candidates(probabilities, protocol=CountingProtocol(threshold=threshold), warn=False)
        for threshold in THRESHOLDS
    ]
    hills = find_candidates(probabilities, protocol="peaks", warn=False)
    lesions = find_candidates(mask.astype(np.float32), protocol=CountingProtocol(threshold=0.5), warn=False)
    match = match_lesions(found[0].label_map(), lesions.label_map(), n_candidates=len(found[0]), n_lesions=len(lesions))
    inside = mask > 0
    bins = np.minimum((probabilities * VOXEL_BINS).astype(np.int64), VOXEL_BINS - 1)
    reliable = reliability(probabilities, inside)
    return MapNumbers(
        tuple(np.asarray(candidates.peak_probability) for candidates in found),
        np.asarray(hills.peak_probability),
        np.asarray(hills.saddle_probability),
        match.owns,
        match.touches,
        np.bincount(bins[inside], minlength=VOXEL_BINS),
        np.bincount(bins[~inside], minlength=VOXEL_BINS),
        reliable.n,
        reliable.confidence_sum,
        reliable.hit_sum,
    )

"""Ways to count that learn from known counts: each scan is counted by what scans of other patients say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.tabulated import TabulatedCount
from lesioncount.errors import CalibrationError
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.fitting import KnownTruth, fit_calibration
from lesioncount_reproduction.experiments.classes import CountClasses
from lesioncount_reproduction.experiments.stats import THRESHOLDS as AT
from lesioncount_reproduction.experiments.stats import VOXEL_BINS, ScanStats
from lesioncount_reproduction.lidc import DetectedScan

# Parts of the patients: each is counted by what was learned from the others.
N_PARTS = 5

# At which components are counted. A network that is too sure of itself merges all that touches below 0.9.
THRESHOLDS = (0.1, *np.arange(0.2, 0.9, 0.05).tolist(), 0.9, 0.92, 0.94, 0.96, 0.98, 0.99, 0.995, 0.999)

# Seed that chooses the reader of each scan; scores are clipped to these, as 0 and 1 have no logit.
_READER_SEED, _SURE = 772, (1e-7, 1 - 1e-7)

# Above which the volume is measured.
_VOLUMES = (0.1, 0.5, 0.9)


@dataclass(frozen=True, eq=False)
class KnownScans:
    """Scans with known counts, and the maps of a network.

    Attributes
    ----------
    stats : ScanStats
    """

    stats: ScanStats

    @property
    def counts(self) -> NDArray[np.int64]:
        """The truth."""
        return self.stats.counts

    @cached_property
    def parts(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Scans that are learned from, and those that are counted; no patient is in both."""
        patients = sorted(set(self.stats.patients))
        place = {name: i % N_PARTS for i, name in enumerate(np.random.default_rng(0).permutation(patients).tolist())}
        part = np.array([place[patient] for patient in self.stats.patients])
        return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(N_PARTS)]

    @cached_property
    def components(self) -> NDArray[np.int64]:
        """Connected components above each of `THRESHOLDS`: peaks that are above it and have not joined another."""
        return np.array(
            [
                [int(((hills > t) & (saddles <= t)).sum()) for t in THRESHOLDS]
                for hills, saddles in zip(self.stats.hills, self.stats.saddles, strict=True)
            ]
        )

    @cached_property
    def features(self) -> NDArray[np.float64]:
        """What a statistician would measure: components above many thresholds, and volumes."""
        voxels = self.stats.lesion_voxels + self.stats.other_voxels
        above = [voxels[:, round(t * VOXEL_BINS) :].sum(axis=1) for t in _VOLUMES]
        expected = voxels @ ((np.arange(VOXEL_BINS) + 0.5) / VOXEL_BINS)
        return np.column_stack([self.components, *above, expected]).astype(np.float64)

    @classmethod
    def of_detections(cls, scans: Sequence[DetectedScan]) -> Self:
        """Of candidates with scores, each a lesion of its own; a random reader of each scan is the truth."""
        readers = np.random.default_rng(_READER_SEED).integers(len(scans[0].readings), size=len(scans))
        n, scores = len(scans), tuple(np.clip(scan.scores, *_SURE) for scan in scans)
        none, nothing = tuple(np.zeros(len(one), dtype=bool) for one in scores), np.zeros((n, VOXEL_BINS), np.int64)
        stats = ScanStats(
            tuple(scan.name for scan in scans),
            tuple(scan.patient for scan in scans),
            np.array([scan.readings[reader] for scan, reader in zip(scans, readers, strict=True)], dtype=np.int64),
            np.zeros((n, 1)),
            peaks=(scores, *(tuple(one[one > t] for one in scores) for t in AT[1:])),
            hills=scores,
            saddles=tuple(np.zeros(len(one)) for one in scores),
            owns=none,
            touches=none,
            lesion_voxels=nothing,
            other_voxels=nothing,
            voxel_n=nothing,
            voxel_confidence=nothing.astype(np.float64),
            voxel_hits=nothing.astype(np.float64),
        )
        return cls(stats)

    def regions(self) -> KnownTruth:
        """Candidates as in the paper."""
        return KnownTruth.of(self.stats.existence(0.1), self.counts, groups=self.stats.patients)

    def peaks(self) -> KnownTruth:
        """Candidates that may touch."""
        hills = zip(self.stats.hills, self.stats.saddles, strict=True)
        tables = [CandidateTable.of(peak, saddle=saddle) for peak, saddle in hills]
        return KnownTruth.of(tables, self.counts, groups=self.stats.patients)


def counted_as_they_are(candidates: KnownTruth, calibration: Calibration | None = None) -> list[CountDistribution]:
    """The distributions of candidates as they are, or corrected by what is known without any count."""
    return candidates.distributions(calibration or Calibration())


def counted_calibrated(known: KnownScans, candidates: KnownTruth) -> list[CountDistribution]:
    """The distributions after a fit to the counts of other patients; as they are where none can be fitted."""

    def fitted(rest: NDArray[np.int64], part: NDArray[np.int64]) -> Sequence[CountDistribution]:
        try:
            calibration = fit_calibration(candidates[rest.tolist()])
        except CalibrationError:
            calibration = Calibration()
        return candidates[part.tolist()].distributions(calibration)

    return _of_parts(known, fitted)


def components_tuned(known: KnownScans) -> NDArray[np.int64]:
    """Components above the threshold with the least mean error on other patients."""
    found = np.zeros(len(known.counts), dtype=np.int64)
    for rest, part in known.parts:
        errors = np.abs(known.components[rest] - known.counts[rest][:, None]).mean(axis=0)
        found[part] = known.components[part, int(errors.argmin())]
    return found


def counted_by_forest(known: KnownScans) -> list[CountDistribution]:
    """A regression on components above many thresholds and on volumes, with its distribution (`forest_weights`)."""

    def grown(rest: NDArray[np.int64], part: NDArray[np.int64]) -> Iterator[CountDistribution]:
        weights = forest_weights(known.features[rest], known.counts[rest], known.features[part])
        return (table_of(known.counts[rest], row) for row in weights)

    return _of_parts(known, grown)


def counted_by_head(known: KnownScans, classes: CountClasses) -> list[CountDistribution]:
    """What a head says, in counts: within a class, counts are as frequent as among other patients."""
    log_probs = known.stats.log_probs

    def spread(rest: NDArray[np.int64], part: NDArray[np.int64]) -> Iterator[CountDistribution]:
        seen, of_class = known.counts[rest], classes.of(known.counts[rest])
        alone = [name for name in range(classes.n) if not (of_class == name).any()]
        # A class that nobody else is in: its first count.
        seen = np.concatenate([seen, np.array(classes.begins)[alone]])
        of_class = np.concatenate([of_class, np.array(alone, dtype=np.int64)])
        share = 1 / np.bincount(of_class, minlength=classes.n)
        return (table_of(seen, (row * share)[of_class]) for row in np.exp(log_probs[part]))

    return _of_parts(known, spread)


def table_of(counts: NDArray[np.int64], weights: NDArray[np.float64]) -> CountDistribution:
    """The distribution in which each of some counts has a weight."""
    table = np.bincount(counts, weights=weights)
    return TabulatedCount(table / table.sum())


def _of_parts(
    known: KnownScans,
    count: Callable[[NDArray[np.int64], NDArray[np.int64]], Sequence[CountDistribution] | Iterator[CountDistribution]],
) -> list[CountDistribution]:
    found: dict[int, CountDistribution] = {}
    for rest, part in known.parts:
        found |= dict(zip(part.tolist(), count(rest, part), strict=True))
    return [found[i] for i in range(len(known.counts))]


_TREES, _SMALLEST_LEAF, _SEED = 300, 3, 0


def forest_weights(
    features: NDArray[np.float64], counts: NDArray[np.int64], wanted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How much each known scan says about each wanted one.

    Parameters
    ----------
    features : array of float, shape (n, d)
        Of scans with known counts.
    counts : array of int, shape (n,)
    wanted : array of float, shape (m, d)

    Returns
    -------
    array of float, shape (m, n)
        Rows add up to 1: the share of trees in which two scans fall into the same leaf, each leaf shared equally.

    Notes
    -----
    Meinshausen, "Quantile Regression Forests", Journal of Machine Learning Research 7 (2006): the forest as usual, but
    what is kept of a leaf is all its counts and not their mean.
    """
    ensemble: Any = import_module("sklearn.ensemble")  # takes a second: only when it is needed
    forest = ensemble.RandomForestRegressor(_TREES, min_samples_leaf=_SMALLEST_LEAF, random_state=_SEED)
    forest.fit(features, counts)
    known, asked = forest.apply(features), forest.apply(wanted)
    weights = np.zeros((len(wanted), len(features)))
    for tree in range(_TREES):
        same = asked[:, tree, None] == known[None, :, tree]
        weights += same / same.sum(axis=1, keepdims=True)
    return np.asarray(weights / _TREES)

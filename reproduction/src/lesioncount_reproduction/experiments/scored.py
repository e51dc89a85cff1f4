"""What a method said of the test scans, as something that can be scored: its counts, its map, its robustness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lesioncount.trust.scores.classification import ratio
from lesioncount.trust.scores.predictions import Predictions
from lesioncount.trust.scores.reliability import Reliability
from lesioncount_reproduction.experiments.stats import VOXEL_BINS, ScanStats

# The part of the scans that a method is most certain of.
CERTAIN_SHARE = 0.25

# Of scans, in curves.
SHARES = np.arange(1, 21) / 20

_SHARES_OF_COUNTS = {
    **dict.fromkeys(("accuracy", "zero_mass", "coverage90", "no_entropy"), 1.0),
    **dict.fromkeys(("certain_accuracy", "uncertain_accuracy"), CERTAIN_SHARE),
}


@dataclass(frozen=True, eq=False)
class Counted:
    """Counts of a method."""

    predictions: Predictions
    groups: Sequence[str]

    @property
    def shares(self) -> Mapping[str, float]:
        """Of all scans, or of the most certain quarter."""
        return _SHARES_OF_COUNTS

    def scores(self, weights: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Accuracy, F1, calibration and so on; and the accuracy on the most certain quarter."""
        found = self.predictions.scores(weights)
        if self.predictions.entropy is not None:
            found["certain_accuracy"] = self._certain(weights, most=False)
            found["uncertain_accuracy"] = self._certain(weights, most=True)
            found["no_entropy"] = np.asarray(ratio(weights @ (self.predictions.entropy == 0), weights.sum(axis=1)))
        return found

    def _certain(self, weights: NDArray[np.float64], *, most: bool) -> NDArray[np.float64]:
        return self.accuracy_among(weights, np.array([CERTAIN_SHARE]), most_uncertain=most)[:, 0]

    def accuracy_among(
        self, weights: NDArray[np.float64], shares: NDArray[np.float64], *, most_uncertain: bool = False
    ) -> NDArray[np.float64]:
        """Accuracy on the most certain, or most uncertain, shares of scans: (m, len(shares)). Ties count alike."""
        entropy, hits = self.predictions.entropy, self.predictions.hits.astype(np.float64)
        if entropy is None:
            return np.full((len(weights), len(shares)), np.nan)
        values, level = np.unique(-entropy if most_uncertain else entropy, return_inverse=True)
        of_level = np.eye(len(values))[level]
        n, right = np.cumsum(weights @ of_level, axis=1), np.cumsum((weights * hits) @ of_level, axis=1)
        nothing = np.zeros((len(weights), 1))
        n, right = np.concatenate([nothing, n], axis=1), np.concatenate([nothing, right], axis=1)
        kept = np.maximum(shares * n[:, -1:], 1)
        return np.array([np.interp(k, x, y) / k for k, x, y in zip(kept, n, right, strict=True)])


@dataclass(frozen=True, eq=False)
class Certainty:
    """Accuracy among the most certain scans, share by share, as scores: ``"0.05"``, … ``"1"``."""

    counted: Counted
    most_uncertain: bool = False

    @property
    def groups(self) -> Sequence[str]:
        """The patient of each scan."""
        return self.counted.groups

    @property
    def shares(self) -> Mapping[str, float]:
        """Each of as many scans as its name says."""
        return {f"{share:g}": float(share) for share in SHARES}

    def scores(self, weights: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """One for each share."""
        found = self.counted.accuracy_among(weights, SHARES, most_uncertain=self.most_uncertain)
        return dict(zip(self.shares, found.T, strict=True))


@dataclass(frozen=True, eq=False)
class Segmented:
    """The maps of a network.

    Attributes
    ----------
    stats : ScanStats
        Of test scans.
    thresholds : array of float, shape (n,)
        At which the voxel F1 of each scan is taken: chosen on the validation scans of its fold.
    """

    stats: ScanStats
    thresholds: NDArray[np.float64]

    @property
    def groups(self) -> Sequence[str]:
        """The patient of each scan."""
        return self.stats.patients

    @property
    def shares(self) -> Mapping[str, float]:
        """None of its scores is a share of scans."""
        return {}

    def scores(self, weights: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Voxel F1, ECE and MCE; false positives per scan, of all candidates and of those above one half."""
        hits, claimed, lesion = (weights @ part for part in self._voxels)
        reliable = Reliability(
            *(weights @ part for part in (self.stats.voxel_n, self.stats.voxel_confidence, self.stats.voxel_hits))
        )
        total = weights.sum(axis=1)
        return {
            "voxel_f1": np.asarray(ratio(2 * hits, claimed + lesion)),
            "voxel_ece": reliable.ece,
            "voxel_mce": reliable.mce,
            "false_positives": ratio(weights @ self._false(0.0), total),
            "false_positives_above_half": ratio(weights @ self._false(0.5), total),
        }

    @cached_property
    def _voxels(self) -> tuple[NDArray[np.float64], ...]:
        """Voxels of each scan that are lesion and claimed, that are claimed, and that are lesion."""
        first = np.round(self.thresholds * VOXEL_BINS).astype(int)
        above = np.arange(VOXEL_BINS) >= first[:, None]
        inside, outside = self.stats.lesion_voxels, self.stats.other_voxels
        hits = (inside * above).sum(axis=1)
        return hits, hits + (outside * above).sum(axis=1), inside.sum(axis=1)

    def _false(self, above: float) -> NDArray[np.float64]:
        peaks, touches = self.stats.peaks[0], self.stats.touches
        return np.array([float(((p > above) & ~t).sum()) for p, t in zip(peaks, touches, strict=True)])


def best_voxel_threshold(validation: ScanStats) -> float:
    """The threshold with the best voxel F1 on validation scans."""
    inside = validation.lesion_voxels.sum(axis=0)[::-1].cumsum()[::-1]
    outside = validation.other_voxels.sum(axis=0)[::-1].cumsum()[::-1]
    f1 = 2 * inside / np.maximum(inside + outside + inside[0], 1)
    return float(f1.argmax()) / VOXEL_BINS


@dataclass(frozen=True, eq=False)
class Withstood:
    """What attacks on scans achieved.

    Attributes
    ----------
    right_before, fooled, blind : array of bool, shape (n,)
        Whether a scan was counted right before the attack, and wrong after it; whether the attack had no gradient.
    groups : sequence of str
    """

    right_before: NDArray[np.bool_]
    fooled: NDArray[np.bool_]
    blind: NDArray[np.bool_]
    groups: Sequence[str]

    @property
    def shares(self) -> Mapping[str, float]:
        """Of all attacked scans; rates are of those that were counted right before."""
        right = float(self.right_before.mean())
        everywhere = dict.fromkeys(("accuracy_before", "accuracy_after", "accuracy_drop"), 1.0)
        return everywhere | {"success_rate": right, "blind": right}

    def scores(self, weights: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Accuracy after, accuracy drop, success rate of attacks, and the share of them without a gradient."""
        total, right = weights.sum(axis=1), weights @ self.right_before
        return {
            "accuracy_before": np.asarray(ratio(right, total)),
            "accuracy_after": np.asarray(ratio(weights @ (self.right_before & ~self.fooled), total)),
            "accuracy_drop": np.asarray(ratio(weights @ self.fooled, total)),
            "success_rate": np.asarray(ratio(weights @ self.fooled, right)),
            "blind": np.asarray(ratio(weights @ self.blind, right)),
        }

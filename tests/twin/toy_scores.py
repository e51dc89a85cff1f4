"""How well a toy network counts, segments and detects, and whether one is better than another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from torch import Tensor, nn
from twin.toy_scans import Scans
from twin.toy_training import MAX_COUNT, seeded

import lesioncount as lc
from lesioncount.torch import count_log_probs

# An impossible count would have an infinite likelihood; it is scored as if it had this probability.
LEAST_PROBABILITY = 1e-3
THRESHOLDS = np.linspace(0.05, 0.95, 19)


@dataclass(frozen=True)
class Scores:
    """On held-out scans. Counts are 0, 1, 2, 3 and 4 or more."""

    accuracy: float
    class_f1: float
    rps: float
    nll: float
    voxel_f1: float
    false_positives: float
    sensitivity: float


def score(network: nn.Module, scans: Scans, *, protocol: str = "paper") -> Scores:
    """Count, segment and detect."""
    with torch.no_grad(), seeded(0):
        logits = torch.cat([network(part) for part in scans.images.split(64)])
        pmf = count_log_probs(logits, max_count=MAX_COUNT, protocol=protocol, spatial_dims=2).exp().double().numpy()
    labels = scans.counts.clamp(max=MAX_COUNT).numpy()
    false_positives, sensitivity = _detection(logits, scans.masks)
    return Scores(
        accuracy=float(np.mean(pmf.argmax(1) == labels)),
        class_f1=_class_f1(pmf.argmax(1), labels),
        rps=_ranked_probability_score(pmf, labels),
        nll=float(-np.log(pmf[np.arange(len(labels)), labels].clip(min=LEAST_PROBABILITY)).mean()),
        voxel_f1=_voxel_f1(logits, scans.masks),
        false_positives=false_positives,
        sensitivity=sensitivity,
    )


def paired_interval(after: ArrayLike, before: ArrayLike) -> tuple[float, float, float]:
    """Mean of the differences, and the ends of its 95 % t-interval."""
    differences = np.subtract(after, before)
    half = stats.t.ppf(0.975, len(differences) - 1) * stats.sem(differences)
    mean = float(differences.mean())
    return mean, float(mean - half), float(mean + half)


def _class_f1(predicted: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """The mean over the bins of 2 TP / (predicted + labelled)."""
    hits = np.bincount(labels[predicted == labels], minlength=MAX_COUNT + 1)
    both = np.bincount(predicted, minlength=MAX_COUNT + 1) + np.bincount(labels, minlength=MAX_COUNT + 1)
    return float(np.mean(2 * hits / both.clip(min=1)))


def _ranked_probability_score(pmf: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    reached = np.arange(MAX_COUNT + 1) >= labels[:, None]
    return float(((pmf.cumsum(1) - reached) ** 2).sum(1).mean())


def _voxel_f1(logits: Tensor, masks: Tensor) -> float:
    """The best over thresholds, of all voxels of all scans."""
    p, truth = torch.sigmoid(logits).numpy().ravel(), masks.numpy().ravel() > 0
    found = [p > threshold for threshold in THRESHOLDS]
    return float(max(2 * (f & truth).sum() / (f.sum() + truth.sum()) for f in found))


def _detection(logits: Tensor, masks: Tensor) -> tuple[float, float]:
    """Candidates above one half that touch no lesion, per scan; share of lesions that such a candidate touches."""
    more_likely_than_not = lc.CountingProtocol(threshold=0.5)
    n_false = n_hit = n_lesions = 0
    for item, mask in zip(logits[:, 0].numpy(), masks[:, 0].numpy(), strict=True):
        found = lc.find_candidates(item, logits=True, protocol=more_likely_than_not, warn=False)
        lesions = lc.find_candidates(mask, warn=False)
        candidate_of, lesion_of = found.label_map(), lesions.label_map()
        both = (candidate_of > 0) & (lesion_of > 0)
        n_false += len(found) - len(np.unique(candidate_of[both]))
        n_hit += len(np.unique(lesion_of[both]))
        n_lesions += len(lesions)
    return n_false / len(masks), n_hit / max(n_lesions, 1)

"""Scores and scans → the parts of ``evaluation.json``."""

from __future__ import annotations

from typing import Any

import numpy as np

from lesioncount.runs.comparison import THRESHOLDS, Compared
from lesioncount.runs.evaluation.compared_methods import N_FOLDS, cc_table, true_counts
from lesioncount.trust.scores.classification import confusion
from lesioncount.trust.scores.estimate import Estimate
from lesioncount.trust.scores.proper import NLL_FLOOR
from lesioncount.trust.scores.reliability import Reliability
from lesioncount.trust.scores.selective import certainty_curve
from lesioncount.trust.scores.summary import MAX_COUNT, Predictions

_ABOUT = {
    "raw": ("lesioncount", "the distribution of the count, as the maps have it"),
    "calibrated": ("calibrated lesioncount", "the same after the calibration that the scans were counted with"),
    "cc": ("CC above 0.5", "connected components above 0.5: what everyone does today"),
    "cc_tuned": ("CC, tuned", "connected components above the threshold that is best on the other folds"),
    "all_zero": ("all zero", "no lesion anywhere"),
}

# When so many of the candidates are within this of 0 or 1, the map says that it is sure of nearly everything.
_POLARISED_SHARE, _NEAR_CERTAIN = 0.8, 0.02


def method_content(name: str, method: Predictions, scores: dict[str, Estimate]) -> dict[str, Any]:
    """What is said of one method."""
    certainty = None
    if method.entropy is not None:
        shares, accuracy = certainty_curve(method.entropy, method.hits)
        certainty = {"share": shares.tolist(), "accuracy": accuracy.tolist()}
    return {
        "name": _ABOUT[name][0],
        "about": _ABOUT[name][1],
        "scores": {key: score.to_dict() for key, score in scores.items()},
        "confusion": method.confusion.matrix.tolist(),
        "reliability": reliability_content(method.reliability),
        "certainty": certainty,
    }


def reliability_content(of: Reliability) -> dict[str, Any]:
    """Bins of confidence, as plain lists."""
    return {"n": of.n.tolist(), "confidence": of.confidence.tolist(), "hit_rate": of.hit_rate.tolist()}


def threshold_curve(compared: Compared) -> dict[str, Any] | None:
    """How the connected-component count fares at each threshold, where maps were read."""
    table, truth = cc_table(compared), true_counts(compared)
    if table is None:
        return None
    at = [confusion(column, truth, max_count=MAX_COUNT) for column in table.T]
    return {
        "threshold": list(THRESHOLDS),
        "cc_accuracy": [float(c.accuracy) for c in at],
        "cc_f1": [float(c.f1) for c in at],
    }


def notes_on(compared: Compared, methods: dict[str, Predictions]) -> list[str]:
    """What a reader must know, in plain sentences."""
    notes = []
    if len(compared.results.failed):
        notes.append(f"Not part of this, because they could not be counted: {len(compared.results.failed)} scan(s).")
    if compared.n_without_truth:
        notes.append(f"Not part of this, because they have no truth: {compared.n_without_truth} scan(s).")
    candidates = np.concatenate([p for scan in compared.scans for p in scan.existence])
    sure = float(np.mean((candidates < _NEAR_CERTAIN) | (candidates > 1 - _NEAR_CERTAIN))) if len(candidates) else 0.0
    if sure > _POLARISED_SHARE:
        notes.append(
            f"The maps are polarised: {sure:.0%} of the candidates have a probability within {_NEAR_CERTAIN:g} of 0 or "
            "1. The distributions are narrower than the errors; lesioncount calibrate can widen them."
        )
    without_mass = float(methods["raw"].means["zero_mass"].mean())
    if without_mass > 0:
        notes.append(
            f"In {without_mass:.1%} of the scans the true count has probability 0: there are more lesions than "
            f"candidates, or fewer than candidates with probability 1. The negative log-likelihood counts them with a "
            f"floor of {NLL_FLOOR:g}. A calibration allows for missed lesions, and leaves nothing certain."
        )
    held = [
        scan.counted.guaranteed[0] <= truth.count <= scan.counted.guaranteed[1]
        for scan, truth in zip(compared.scans, compared.truths, strict=True)
        if scan.counted.guaranteed is not None
    ]
    if held:
        notes.append(
            f"The guaranteed 90 % intervals hold the truth in {sum(held)} of {len(held)} scans ({np.mean(held):.0%})."
        )
    if cc_table(compared) is None:
        why = (
            "Ensembles are compared by their counts only" if compared.results.has_members else "The maps were not read"
        )
        notes.append(f"{why}: lesions are not compared, and the threshold of CC is not tuned.")
    n_groups = len(set(compared.groups))
    if n_groups < 2 * N_FOLDS:
        notes.append(f"Intervals are rough: they come from {n_groups} scan(s), or groups of scans, only.")
    if n_groups < N_FOLDS and cc_table(compared) is not None:
        notes.append("The threshold of CC is not tuned: there are fewer groups than folds.")
    return notes


def scan_rows(compared: Compared, methods: dict[str, Predictions]) -> list[dict[str, Any]]:
    """A row per scan, of the calibrated count where there is one."""
    best = methods.get("calibrated", methods["raw"])
    entropy = best.entropy if best.entropy is not None else np.zeros(len(best.truth))
    return [
        {
            "scan": scan.name,
            "group": compared.groups[i],
            "truth": int(best.truth[i]),
            "predicted": int(best.predicted[i]),
            "expected": float(best.expected[i]),
            "interval90_low": int(best.low[i]),
            "interval90_high": int(best.high[i]),
            "p_truth": float(best.p_truth[i]),
            "rps": float(best.means["rps"][i]),
            "entropy": float(entropy[i]),
            "cc": scan.counted.candidates.cc_count,
        }
        for i, scan in enumerate(compared.scans)
    ]

"""Candidates against true lesions, over a cohort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.runs.comparison import Compared
from lesioncount.runs.evaluation.content import reliability_content
from lesioncount.trust.scores.bootstrap import interval_of, resampled_weights
from lesioncount.trust.scores.classification import ratio
from lesioncount.trust.scores.estimate import Estimate
from lesioncount.trust.scores.lesions import OVERLAP_RULE
from lesioncount.trust.scores.reliability import reliability


def lesion_level(compared: Compared, seed: int) -> dict[str, Any] | None:
    """Sensitivity, false positives and reliability of candidates, where every scan was matched."""
    matches = [truth.match for truth in compared.truths if truth.match is not None]
    if len(matches) < len(compared.truths):
        return None
    existence = [scan.existence[0] for scan in compared.scans]
    strong = [p > 0.5 for p in existence]
    n = np.array([match.n_lesions for match in matches], dtype=np.float64)
    columns = {
        "sensitivity": (np.array([m.n_lesions - m.n_missed for m in matches]), n),
        "false_positives_per_scan": (np.array([(~m.touches).sum() for m in matches]), np.ones(len(n))),
        "sensitivity_above_half": (np.array([m.n_found_by(s) for m, s in zip(matches, strong, strict=True)]), n),
        "false_positives_per_scan_above_half": (
            np.array([(~m.touches & s).sum() for m, s in zip(matches, strong, strict=True)]),
            np.ones(len(n)),
        ),
    }
    all_touches = np.concatenate([match.touches for match in matches])
    return {
        "rule": OVERLAP_RULE,
        "n_lesions": int(n.sum()),
        "n_candidates": len(all_touches),
        "n_hit": int(all_touches.sum()),
        "n_missed": sum(match.n_missed for match in matches),
        "n_split": sum(match.n_split for match in matches),
        "n_merged": sum(match.n_merged for match in matches),
        **{name: _ratio_score(*parts, compared.groups, seed).to_dict() for name, parts in columns.items()},
        "reliability": reliability_content(reliability(np.concatenate(existence), all_touches)),
    }


def _ratio_score(part: NDArray[Any], whole: NDArray[Any], groups: Sequence[str], seed: int) -> Estimate:
    drawn = [ratio(weights @ part, weights @ whole) for weights in resampled_weights(groups, seed=seed)]
    return Estimate(float(ratio(part.sum(), whole.sum())), *interval_of(np.concatenate(drawn)))

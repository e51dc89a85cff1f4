"""All scores of methods on a cohort, each with its interval."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from lesioncount.trust.scores.bootstrap import N_RESAMPLES, interval_of, resampled_weights
from lesioncount.trust.scores.estimate import Estimate
from lesioncount.trust.scores.predictions import Predictions

__all__ = ["Predictions", "score_all"]


def score_all(
    methods: dict[str, Predictions],
    /,
    *,
    groups: Sequence[Hashable],
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> tuple[dict[str, dict[str, Estimate]], dict[tuple[str, str], dict[str, Estimate]]]:
    """Scores of each method, and paired differences between each two, from the same resamples of groups."""
    once = np.ones((1, len(groups)))
    estimates = {name: method.scores(once) for name, method in methods.items()}
    drawn: dict[str, dict[str, list[NDArray[np.float64]]]] = {name: {} for name in methods}
    for weights in resampled_weights(groups, n_resamples=n_resamples, seed=seed):
        for name, method in methods.items():
            for score, values in method.scores(weights).items():
                drawn[name].setdefault(score, []).append(values)
    samples = {name: {s: np.concatenate(parts) for s, parts in of.items()} for name, of in drawn.items()}
    scores = {
        name: {s: Estimate(float(value[0]), *interval_of(samples[name][s])) for s, value in of.items()}
        for name, of in estimates.items()
    }
    differences = {
        (a, b): {
            s: Estimate(float((value - estimates[b][s])[0]), *interval_of(samples[a][s] - samples[b][s]))
            for s, value in estimates[a].items()
        }
        for a in methods
        for b in methods
        if a != b
    }
    return scores, differences

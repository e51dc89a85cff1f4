"""How predicted counts agree with true ones, and what guaranteed intervals hold, by thirds of the scans."""

from __future__ import annotations

import numpy as np

from lesioncount.assess.beside_truth import Compared
from lesioncount.trust.scores.agreement import Agreement, BlandAltman, Tercile, terciles
from lesioncount.trust.scores.predictions import Predictions


def agreement_of(compared: Compared, predictions: Predictions, *, seed: int) -> Agreement:
    """The median beside the truth, and scores by thirds of the truth."""
    truth, groups = predictions.truth, compared.groups
    means = predictions.means
    values = [means[name] for name in ("mae", "bias", "coverage90", "width90")]
    return Agreement(
        BlandAltman.of(predictions.median, truth, groups, seed=seed), terciles(truth, values, groups, seed=seed)
    )


def guaranteed_of(compared: Compared, predictions: Predictions, *, seed: int) -> tuple[Tercile, ...]:
    """How often guaranteed intervals hold the truth and how wide they are, by thirds of the predicted median."""
    intervals = [scan.counted.guaranteed for scan in compared.scans]
    has_one = np.array([interval is not None for interval in intervals], dtype=bool)
    if not has_one.any():
        return ()
    low, high = np.array([interval for interval in intervals if interval is not None]).T
    truth = predictions.truth[has_one]
    inside = (low <= truth) & (truth <= high)
    values = [predictions.means["mae"][has_one], predictions.means["bias"][has_one], inside, high - low]
    groups = [group for group, is_there in zip(compared.groups, has_one, strict=True) if is_there]
    return terciles(predictions.median[has_one], values, groups, seed=seed)

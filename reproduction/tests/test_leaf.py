"""Real network outputs: 50 photographs of leaves to fit a calibration on, 50 to judge it by."""

import numpy as np
import pytest

import lesioncount as lc
from lesioncount.trust.fitting import CalibrationFit, KnownTruth
from lesioncount.trust.scores import Predictions, score_all


@pytest.fixture
def leaves(shared_data):
    """Existence probabilities and true counts of each part."""
    with np.load(
        shared_data / "coffee_leaf_lesions" / "unet_probs" / "coffee_unet_probs.npz", allow_pickle=False
    ) as file:
        return {
            part: (
                [lc.count_lesions(p).existence for p in file[f"{part}_prob"]],
                [lc.connected_component_count(mask.astype(float)) for mask in file[f"{part}_lesion"]],
            )
            for part in ("val", "test")
        }


@pytest.mark.filterwarnings("ignore::lesioncount.errors.MapWarning")  # some leaves have no lesion
def test_calibration_from_counts_makes_unseen_leaves_better(leaves):
    fit = CalibrationFit.fit(KnownTruth.of(*leaves["val"]))
    existence, counts = leaves["test"]
    methods = {
        "raw": Predictions.of_distributions([lc.PoissonBinomial(p) for p in existence], counts),
        "fitted": Predictions.of_distributions([fit.calibration.distribution(p) for p in existence], counts),
    }
    scores, differences = score_all(methods, groups=range(50))
    change = differences["fitted", "raw"]
    assert change["rps"].high < 0
    assert change["ece"].high < 0
    assert change["nll"].high < 0
    assert scores["raw"]["zero_mass"].value > 0.2
    assert scores["fitted"]["zero_mass"].value == 0

"""Calibration on maps of real networks: five folds, each corrected by a fit of the other four."""

import numpy as np
import pytest
from trust.fitting.real_maps import real_maps

import lesioncount as lc
from lesioncount.trust.fitting import fit_calibration
from lesioncount.trust.scores import Predictions


@pytest.mark.filterwarnings("ignore::lesioncount.errors.MapWarning")  # some leaves have no lesion
@pytest.mark.parametrize(
    ("name", "highest_rps", "coverage"),
    [
        ("leaves", 1.15, (0.87, 0.95)),  # 1.10 and 0.94; as counted 1.34 and 0.73
        ("nuclei", 9.8, (0.86, 0.93)),  # 8.6 and 0.895; as counted 17.1 and 0.22
    ],
)
def test_held_out_counts_are_better_and_intervals_cover(name, highest_rps, coverage, shared_data):
    truth, folds = real_maps(shared_data, name)
    calibrated = [None] * len(truth)
    for fold in np.unique(folds):
        inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        distributions = truth[inside].distributions(fit_calibration(truth[outside]))
        for row, distribution in zip(inside, distributions, strict=True):
            calibrated[row] = distribution
    before = Predictions.of_distributions(truth.distributions(lc.Calibration()), truth.counts)
    after = Predictions.of_distributions(calibrated, truth.counts)
    assert after.rps.mean() <= highest_rps < before.rps.mean()
    assert coverage[0] <= after.means["coverage90"].mean() <= coverage[1]

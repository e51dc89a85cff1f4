"""Ways to count from kept numbers: thresholds chosen on validation, dropout, and the positive weight."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from experiments.made_up import some_maps, stats_of  # noqa: E402 - after the checks

import lesioncount as lc  # noqa: E402
from lesioncount_reproduction.experiments.arms import LOSS  # noqa: E402
from lesioncount_reproduction.experiments.look import LOOKS, SHORT  # noqa: E402
from lesioncount_reproduction.experiments.presets import recipe_of  # noqa: E402
from lesioncount_reproduction.experiments.stats import THRESHOLDS  # noqa: E402
from lesioncount_reproduction.experiments.study import Study  # noqa: E402
from lesioncount_reproduction.experiments.ways_to_count import (  # noqa: E402
    NAMES,
    components_at,
    fitted,
    ours_at,
    sampled,
    tuned_threshold,
    undone,
)

STUDY = Study("synthetic", "smoke", recipe_of("smoke", "synthetic"), (0,), Path())


@pytest.fixture
def stats():
    maps, masks = some_maps(20, seed=3)
    truth = [lc.connected_component_count(map_, threshold=0.7) for map_ in maps]
    return stats_of(maps, masks, counts=truth)


def test_the_threshold_of_components_is_the_one_that_was_right_most_often(stats):
    hits = [components_at(STUDY, stats, at).hits.mean() for at in THRESHOLDS]
    assert max(hits) == 1
    assert min(hits) < 1
    best = [at for at, share in zip(THRESHOLDS, hits, strict=True) if share == 1]
    assert tuned_threshold(stats, STUDY.classes) == best[len(best) // 2]  # of equals the middle one


def test_ours_counts_the_candidates_of_a_threshold(stats):
    for at in (0.1, 0.6):
        found = ours_at(STUDY, stats, at)
        for row, peaks in enumerate(stats.existence(at)):
            np.testing.assert_allclose(found.bins[row], lc.PoissonBinomial(peaks).binned(4))


def test_samples_of_dropout_are_shares_of_counts():
    counts = np.array([[0, 0, 0, 1], [7, 4, 5, 2], [1, 1, 1, 1]])
    found = sampled(counts, np.array([0, 9, 2]), STUDY.classes)
    np.testing.assert_allclose(found.bins, [[0.75, 0.25, 0, 0, 0], [0, 0, 0.25, 0, 0.75], [0, 1, 0, 0, 0]])
    assert found.hits.tolist() == [True, True, False]
    assert found.entropy[2] == 0


def test_too_few_validation_scans_leave_counts_as_they_are():
    maps, masks = some_maps(2, seed=3)
    assert fitted(stats_of(maps, masks, counts=[1, 2])) == lc.Calibration()


def test_the_weight_that_is_undone_is_that_of_the_loss():
    assert LOSS.positive_weight == 3.0
    assert undone() == lc.Calibration.for_positive_weight(3.0)


def test_every_method_has_a_name_and_a_look():
    assert set(LOOKS) == set(SHORT) == set(NAMES) - {"segmentation"}

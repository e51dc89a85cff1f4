"""What learns from known counts never sees the patient that it counts."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("sklearn", reason="needs the extra [reproduce]")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from experiments.made_up import some_maps, stats_of  # noqa: E402 - after the checks

import lesioncount as lc  # noqa: E402
from lesioncount_reproduction.experiments.classes import CountClasses  # noqa: E402
from lesioncount_reproduction.experiments.out_of_fold import (  # noqa: E402
    THRESHOLDS,
    KnownScans,
    components_tuned,
    counted_as_they_are,
    counted_by_forest,
    counted_by_head,
    counted_calibrated,
    forest_weights,
)

CLASSES = CountClasses((0, 1, 2, 3, 4))


@pytest.fixture(scope="module")
def maps():
    return some_maps(90, seed=3)


@pytest.fixture(scope="module")
def known(maps):
    """Two scans of each patient, whose true counts are the components above 0.7."""
    truth = [lc.connected_component_count(map_, threshold=0.7) for map_ in maps[0]]
    return KnownScans(stats_of(*maps, counts=truth, patients=[f"p{i // 2}" for i in range(90)]))


def test_no_patient_is_learned_from_and_counted(known):
    counted = np.concatenate([part for _, part in known.parts])
    assert sorted(counted) == list(range(90))
    for rest, part in known.parts:
        patients = [{known.stats.patients[i] for i in rows} for rows in (rest, part)]
        assert not set.intersection(*patients)
        assert len(rest) + len(part) == 90


def test_components_follow_from_peaks_and_saddles(known, maps):
    for row, map_ in enumerate(maps[0]):
        expected = [lc.connected_component_count(map_, threshold=t) for t in THRESHOLDS]
        assert known.components[row].tolist() == expected


def test_features_hold_the_volumes(known, maps):
    volumes = known.features[:, len(THRESHOLDS) :]
    for row, map_ in enumerate(maps[0]):
        np.testing.assert_allclose(volumes[row, :3], [(map_ >= t).sum() for t in (0.1, 0.5, 0.9)], atol=2)
        assert volumes[row, 3] == pytest.approx(map_.sum(), abs=map_.size / 200)


def test_the_threshold_is_tuned_to_the_mean_error(known):
    np.testing.assert_array_equal(components_tuned(known), known.counts)  # the truth is a threshold


def test_candidates_as_they_are_need_no_counts(known, maps):
    for candidates, protocol in ((known.regions(), "paper"), (known.peaks(), "peaks")):
        for found, map_ in zip(counted_as_they_are(candidates), maps[0], strict=True):
            assert found.mean() == pytest.approx(lc.count_lesions(map_, protocol=protocol).distribution.mean())


def test_a_fit_brings_counts_closer_to_the_truth(known):
    noise = np.random.default_rng(1).integers(-2, 3, len(known.counts))  # a truth that is a threshold has no slope
    known = KnownScans(type(known.stats)(**{**vars(known.stats), "counts": np.maximum(known.counts + noise, 0)}))
    before, after = counted_as_they_are(known.peaks()), counted_calibrated(known, known.peaks())
    errors = [np.mean([abs(one.mean() - n) for one, n in zip(of, known.counts, strict=True)]) for of in (before, after)]
    assert errors[1] < errors[0]


def test_too_few_scans_for_a_fit_leave_candidates_as_they_are(maps):
    few = KnownScans(stats_of(maps[0][:6], maps[1][:6], counts=[0, 1, 2, 0, 1, 2]))
    found = counted_calibrated(few, few.regions())
    assert [one.mean() for one in found] == [one.mean() for one in counted_as_they_are(few.regions())]


def test_the_weights_of_a_forest_add_up_to_its_prediction():
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(0)
    features, wanted = rng.random((80, 3)), rng.random((10, 3))
    counts = (features[:, 0] * 9).astype(np.int64)
    weights = forest_weights(features, counts, wanted)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    forest = RandomForestRegressor(300, min_samples_leaf=3, random_state=0, bootstrap=True).fit(features, counts)
    # Each tree of scikit-learn's is grown from a resample; here all scans of a leaf count.
    assert np.abs(weights @ counts - forest.predict(wanted)).max() < 0.6


def test_a_forest_counts_scans_like_those_that_it_knows(known):
    found = counted_by_forest(known)
    assert np.mean([abs(one.median() - n) for one, n in zip(found, known.counts, strict=True)]) < known.counts.std()
    assert all(one.pmf().sum() == pytest.approx(1) for one in found)


def test_a_head_spreads_its_last_class_as_others_are_spread(known):
    counts = known.counts.copy()
    counts[:] = np.arange(90) % 9
    log_probs = np.log(np.tile([0.1, 0.2, 0.1, 0.1, 0.5], (90, 1)))
    stats = known.stats
    made = KnownScans(type(stats)(**{**vars(stats), "counts": counts, "log_probs": log_probs}))
    for found in counted_by_head(made, CLASSES):
        pmf = found.pmf()
        np.testing.assert_allclose(pmf[:4], [0.1, 0.2, 0.1, 0.1])
        assert pmf[4:].sum() == pytest.approx(0.5)
        assert (pmf[4:9] > 0).all()


def test_a_class_that_nobody_else_is_in_is_its_first_count(known):
    log_probs = np.log(np.tile([0.1, 0.1, 0.1, 0.1, 0.6], (90, 1)))
    stats = known.stats
    made = KnownScans(type(stats)(**{**vars(stats), "counts": np.zeros(90, dtype=np.int64), "log_probs": log_probs}))
    np.testing.assert_allclose(counted_by_head(made, CLASSES)[0].pmf(), [0.1, 0.1, 0.1, 0.1, 0.6])

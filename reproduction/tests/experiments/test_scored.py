"""Scores of counts, maps and attacks, beside loops that anybody can follow."""

import numpy as np
import pytest
from experiments.made_up import some_maps, stats_of

from lesioncount.trust.scores import Predictions, resampled_weights
from lesioncount.trust.scores.selective import certainty_curve
from lesioncount_reproduction.experiments.scored import Certainty, Counted, Segmented, Withstood, best_voxel_threshold


def weights_of(n, n_rows=6):
    """As they are, and resampled."""
    drawn = next(resampled_weights(range(n), n_resamples=n_rows, seed=4))
    return np.concatenate([np.ones((1, n)), drawn])


def quarter_accuracy(entropy, hits, weights, *, most):
    """Take scans one after the other until a quarter is full; of a level that fits in part, its mean accuracy."""
    order = sorted(set(entropy), reverse=most)
    wanted = max(0.25 * sum(weights), 1)
    left, right = wanted, 0.0
    for level in order:
        n = sum(w for w, e in zip(weights, entropy, strict=True) if e == level)
        hit = sum(w for w, e, h in zip(weights, entropy, hits, strict=True) if e == level and h)
        if n == 0:
            continue
        taken = min(n, left)
        right += hit * taken / n
        left -= taken
        if left <= 0:
            break
    return right / wanted


def counted_with_ties(n=37, seed=0):
    """Distributions of few kinds, so that many scans are equally certain."""
    rng = np.random.default_rng(seed)
    kinds = rng.dirichlet(np.full(5, 0.5), 5)
    kinds[0] = np.eye(5)[1]
    bins = kinds[rng.integers(0, 5, n)]
    return Counted(Predictions.of_bins(bins, rng.integers(0, 6, n)), [f"p{i}" for i in range(n)])


@pytest.mark.parametrize("seed", range(4))
def test_accuracy_on_the_most_certain_and_uncertain_quarter(seed):
    counted = counted_with_ties(seed=seed)
    weights = weights_of(37)
    found = counted.scores(weights)
    entropy, hits = counted.predictions.entropy.tolist(), counted.predictions.hits.tolist()
    for name, most in (("certain_accuracy", False), ("uncertain_accuracy", True)):
        expected = [quarter_accuracy(entropy, hits, row, most=most) for row in weights]
        np.testing.assert_allclose(found[name], expected)
    np.testing.assert_allclose(found["no_entropy"], [row @ (np.array(entropy) == 0) / row.sum() for row in weights])


def test_the_order_of_scans_does_not_matter():
    counted = counted_with_ties()
    order = np.random.default_rng(1).permutation(37)
    bins, truth = counted.predictions.bins[order], counted.predictions.truth[order]
    other = Counted(Predictions.of_bins(bins, truth), list(counted.groups))
    for name, values in counted.scores(np.ones((1, 37))).items():
        np.testing.assert_allclose(other.scores(np.ones((1, 37)))[name], values, err_msg=name)


def test_a_method_without_distributions_has_no_certain_scans():
    counted = Counted(Predictions.of_counts([0, 1], [0, 2]), ["a", "b"])
    assert "certain_accuracy" not in counted.scores(np.ones((1, 2)))


@pytest.mark.parametrize("most_uncertain", [False, True])
def test_curves_are_those_of_the_scores_and_end_where_all_scans_are_taken(most_uncertain):
    counted = counted_with_ties()
    found = Certainty(counted, most_uncertain).scores(np.ones((1, 37)))
    entropy = np.asarray(counted.predictions.entropy)
    shares, accuracy = certainty_curve(-entropy if most_uncertain else entropy, counted.predictions.hits)
    np.testing.assert_allclose([found[f"{share:g}"][0] for share in shares], accuracy)
    assert found["1"][0] == pytest.approx(counted.predictions.hits.mean())
    quarter = counted.scores(np.ones((1, 37)))["uncertain_accuracy" if most_uncertain else "certain_accuracy"]
    assert found["0.25"][0] == pytest.approx(quarter[0])


@pytest.fixture
def maps():
    return some_maps(7, seed=2)


def voxel_f1(maps, inside, thresholds):
    bins = np.minimum((maps * 100).astype(int), 99)
    above = bins >= np.round(np.asarray(thresholds) * 100).astype(int)[:, None, None, None]
    return 2 * (above & inside).sum() / (above.sum() + inside.sum())


def voxel_ece(maps, inside, bins=10):
    p, hit = maps.astype(np.float64).ravel(), inside.ravel()
    total = 0.0
    for i in range(bins):
        chosen = (p > i / bins) & (p <= (i + 1) / bins) if i else p <= 1 / bins
        if chosen.any():
            total += chosen.sum() / p.size * abs(hit[chosen].mean() - p[chosen].mean())
    return total


def voxel_mce(maps, inside, bins=10):
    p, hit = maps.astype(np.float64).ravel(), inside.ravel()
    where = np.clip(np.ceil(p * bins).astype(int) - 1, 0, bins - 1)
    return max(abs(hit[where == i].mean() - p[where == i].mean()) for i in np.unique(where))


def test_scores_of_maps_are_those_of_their_voxels(maps):
    stats, inside = stats_of(*maps), maps[1] > 0
    thresholds = np.array([0.5, 0.5, 0.3, 0.3, 0.05, 0.05, 0.0])
    weights = weights_of(7)
    found = Segmented(stats, thresholds).scores(weights)
    for row, drawn in enumerate(weights.astype(int)):
        scans = np.repeat(np.arange(7), drawn)
        some, mask = maps[0][scans], inside[scans]
        assert found["voxel_f1"][row] == pytest.approx(voxel_f1(some, mask, thresholds[scans]))
        assert found["voxel_ece"][row] == pytest.approx(voxel_ece(some, mask))
        assert found["voxel_mce"][row] == pytest.approx(voxel_mce(some, mask))


def test_false_positives_are_candidates_that_touch_no_lesion():
    maps = np.full((2, 1, 9), 0.01, np.float32)
    masks = np.zeros((2, 1, 9), np.uint8)
    maps[0, 0, [0, 2, 4, 6]] = 0.9, 0.3, 0.6, 0.2  # a hit, and three others of which one is strong
    masks[0, 0, 0] = 1
    maps[1, 0, 3] = 0.4
    found = Segmented(stats_of(maps, masks), np.full(2, 0.5)).scores(np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0]]))
    assert found["false_positives"].tolist() == [2, 3, 1]
    assert found["false_positives_above_half"].tolist() == [0.5, 1, 0]


def test_the_best_threshold_of_voxels_is_found_on_validation(maps):
    stats, inside = stats_of(*maps), maps[1] > 0
    f1 = [voxel_f1(maps[0], inside, np.full(7, at / 100)) for at in range(100)]
    assert best_voxel_threshold(stats) == np.argmax(f1) / 100
    at_best = Segmented(stats, np.full(7, best_voxel_threshold(stats))).scores(np.ones((1, 7)))
    assert at_best["voxel_f1"][0] == pytest.approx(max(f1))


def test_rates_of_attacks():
    """Five scans: one is counted wrong and not attacked, of the other four two are fooled and one attack is blind."""
    withstood = Withstood(
        np.array([True, True, True, True, False]),
        np.array([True, True, False, False, False]),
        np.array([False, False, True, False, False]),
        list("abcde"),
    )
    found = withstood.scores(np.array([[1, 1, 1, 1, 1], [0, 0, 0, 0, 5], [3, 0, 1, 0, 1]], dtype=float))
    assert found["accuracy_before"].tolist() == [0.8, 0, 0.8]
    assert found["accuracy_after"].tolist() == [0.4, 0, 0.2]
    assert found["accuracy_drop"].tolist() == [0.4, 0, 0.6]
    np.testing.assert_array_equal(found["success_rate"], [0.5, np.nan, 0.75])
    np.testing.assert_array_equal(found["blind"], [0.25, np.nan, 0.25])
    np.testing.assert_allclose(found["accuracy_before"] - found["accuracy_drop"], found["accuracy_after"])

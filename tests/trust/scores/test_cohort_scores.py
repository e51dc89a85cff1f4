"""Scores of cohorts: intervals, pairs, uncertainty and lesions."""

import time

import numpy as np
import pytest
from trust.fitting.simulated import cohort

import lesioncount as lc
from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.errors import ScoreError
from lesioncount.trust.scores import (
    Predictions,
    auroc,
    certainty_curve,
    confusion,
    match_lesions,
    resampled_weights,
    score_all,
)


def predictions(n=200, seed=0, bins=None):
    truth = cohort(n, seed=seed)
    return Predictions.of_distributions(truth.distributions(lc.Calibration()), truth.counts, bins=bins)


def test_estimates_are_those_of_the_plain_functions():
    method = predictions(bins=4)
    scores, _ = score_all({"ours": method}, groups=range(200), n_resamples=10)
    matrix = confusion(method.predicted, method.truth)
    assert scores["ours"]["accuracy"].value == pytest.approx(matrix.accuracy)
    assert scores["ours"]["f1"].value == pytest.approx(matrix.f1)
    assert scores["ours"]["precision"].value == pytest.approx(matrix.precision)
    assert scores["ours"]["ece"].value == pytest.approx(method.reliability.ece)
    assert scores["ours"]["mce"].value == pytest.approx(method.reliability.mce)
    assert scores["ours"]["bias"].value == pytest.approx((method.expected - method.truth).mean())


class Table(CountDistribution):
    """A distribution from its probabilities, for counts that a map would rarely give."""

    def __init__(self, *p):
        self.p = np.array(p)

    @property
    def _pmf(self):
        return self.p

    def support(self):
        return 0, len(self.p) - 1

    def mean(self):
        return float(self.p @ np.arange(len(self.p)))

    def var(self):
        return float(self.p @ (np.arange(len(self.p)) - self.mean()) ** 2)

    def logpmf(self, k):
        with np.errstate(divide="ignore"):
            return np.log(self.p[k])


def test_the_count_that_is_shown_is_the_count_that_is_judged():
    """The most probable count is 3, although 4 or more is more probable: 3 is predicted, with its own probability."""
    spread = Table(0.02, 0.03, 0.05, 0.3, 0.2, 0.2, 0.2)
    method = Predictions.of_distributions([spread] * 2, [3, 5], bins=4)
    assert method.predicted.tolist() == [3, 3]
    assert method.hits.tolist() == [True, False]
    assert method.confidence.tolist() == pytest.approx([0.3, 0.3])
    assert method.confusion.matrix[3, 3] == method.confusion.matrix[4, 3] == 1
    assert method.reliability.hit_rate[2] == 0.5
    scores, _ = score_all({"ours": method}, groups=range(2), n_resamples=10)
    assert scores["ours"]["accuracy"].value == 0.5
    assert scores["ours"]["ece"].value == pytest.approx(0.2)


def test_classes_of_the_paper_can_be_predicted_instead():
    spread = Table(0.02, 0.03, 0.05, 0.3, 0.2, 0.2, 0.2)
    method = Predictions.of_distributions([spread] * 2, [3, 5], bins=4, by_class=True)
    assert method.predicted.tolist() == [4, 4]
    assert method.hits.tolist() == [False, True]
    assert method.confidence.tolist() == pytest.approx([0.6, 0.6])


def test_without_bins_each_count_is_what_it_is():
    """Nine lesions are not five: what bins would call right is wrong by four."""
    sure = Table(*[0.0] * 9, 1.0)
    whole, binned = (Predictions.of_distributions([sure], [5], bins=bins) for bins in (None, 4))
    once = np.ones((1, 1))
    assert whole.scores(once)["rps"] == whole.scores(once)["mae"] == whole.scores(once)["bias"] == 4
    assert whole.scores(once)["accuracy"] == 0
    assert binned.scores(once)["rps"] == 0
    assert binned.scores(once)["accuracy"] == 1
    assert binned.rps == 4  # what scans are ranked by
    assert "f1" not in whole.scores(once)
    with pytest.raises(ScoreError, match="with bins"):
        _ = whole.confusion
    with pytest.raises(ScoreError, match="Expected bins"):
        Predictions.of_distributions([sure], [5], by_class=True)
    with pytest.raises(ScoreError, match="from 1 to 50, such as 4, but got 51"):
        Predictions.of_counts([1], [1], bins=51)


def test_near_misses_are_counted():
    method = Predictions.of_counts([0, 1, 21, 89, 110, 111], [0, 0, 20, 100, 100, 100])
    found = method.scores(np.ones((1, 6)))
    assert found["within_1"] == pytest.approx(3 / 6)
    assert found["within_10_percent"] == pytest.approx(3 / 6)  # of a truth of 0, only 0 is near
    assert found["relative_bias"] == pytest.approx((1 + 1 - 11 + 10 + 11) / 320)


def test_calibration_error_of_single_counts_needs_counts_that_can_be_hit():
    rng = np.random.default_rng(0)
    few, many = ([rng.random(n) for _ in range(50)] for n in (4, 300))
    for existence, is_sharp in ((few, True), (many, False)):
        counts = [int((rng.random(len(p)) < p).sum()) for p in existence]
        method = Predictions.of_distributions([lc.PoissonBinomial(p) for p in existence], counts)
        found = method.scores(np.ones((1, 50)))
        assert method.is_sharp == is_sharp
        assert np.isfinite(found["ece"]) == np.isfinite(found["auroc"]) == is_sharp
        assert np.isfinite(found["rps"])


def test_resamples_score_what_was_drawn():
    """Weights are repetitions: a resample scores as the cohort in which scans are repeated so often."""
    truth = cohort(40)
    distributions = truth.distributions(lc.Calibration())
    weights = next(resampled_weights(range(40), n_resamples=3, seed=7))
    assert weights.sum(axis=1).tolist() == [40] * 3
    by_weight = Predictions.of_distributions(distributions, truth.counts, bins=4).scores(weights)
    for row, drawn in enumerate(weights.astype(int)):
        rows = np.repeat(np.arange(40), drawn)
        repeated = Predictions.of_distributions([distributions[i] for i in rows], truth.counts[rows], bins=4)
        for name, values in repeated.scores(np.ones((1, 40))).items():
            assert by_weight[name][row] == pytest.approx(values[0]), name


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    """Accuracy of many cohorts of one kind: 95 % of the intervals hold the accuracy of a very large one."""
    large = predictions(20_000, seed=99).hits.mean()
    held = 0
    for seed in range(100):
        scores, _ = score_all({"ours": predictions(80, seed=seed)}, groups=range(80), n_resamples=300, seed=seed)
        held += scores["ours"]["accuracy"].low <= large <= scores["ours"]["accuracy"].high
    assert 87 <= held <= 100


def test_scans_of_a_patient_are_drawn_together_and_widen_the_interval():
    patients = np.repeat(np.arange(30), 5)
    weights = np.concatenate(list(resampled_weights(patients, n_resamples=50)))
    assert (weights.reshape(50, 30, 5) == weights.reshape(50, 30, 5)[:, :, :1]).all()
    right = np.repeat(np.random.default_rng(0).random(30) < 0.7, 5).astype(int)  # all scans of a patient fare alike
    method = Predictions.of_counts(right, np.ones(150, dtype=int))
    (together, _), (apart, _) = (score_all({"m": method}, groups=g) for g in (patients, range(150)))

    def width(scores):
        return scores["m"]["accuracy"].high - scores["m"]["accuracy"].low

    assert width(together) > 1.7 * width(apart)


def test_differences_are_paired():
    method = predictions()
    _, differences = score_all({"a": method, "b": method}, groups=range(200))
    assert differences["a", "b"]["rps"].low == differences["a", "b"]["rps"].high == 0


def test_point_counts_score_their_error():
    method = Predictions.of_counts([0, 2, 9], [0, 1, 5])
    scores, _ = score_all({"cc": method}, groups=range(3))
    found = {name: score.value for name, score in scores["cc"].items()}
    assert found["rps"] == found["mae"] == pytest.approx(5 / 3)
    assert found["zero_mass"] == pytest.approx(2 / 3)
    assert np.isnan(found["auroc"])
    binned, _ = score_all({"cc": Predictions.of_counts([0, 2, 9], [0, 1, 5], bins=4)}, groups=range(3))
    assert binned["cc"]["rps"].value == pytest.approx(1 / 3)  # 9 and 5 are both 4 or more


def test_bins_score_as_the_distributions_they_come_from():
    """As long as no count is above the last bin: from there on, bins know no more than that."""
    rng = np.random.default_rng(3)
    existence = [rng.random(rng.integers(0, 5)) for _ in range(300)]
    counts = [int((rng.random(len(p)) < p).sum()) for p in existence]
    counts[:5] = [4, 3, 4, 0, 2]  # some are held impossible
    whole = Predictions.of_distributions([lc.PoissonBinomial(p) for p in existence], counts, bins=4)
    binned = Predictions.of_bins(whole.bins, counts)
    assert (whole.low < whole.high).any()
    assert whole.impossible.any()
    names = ("bins", "predicted", "median", "expected", "intervals", "below", "p_truth", "impossible", "rps", "entropy")
    for name in names:
        np.testing.assert_allclose(getattr(binned, name), getattr(whole, name), atol=1e-12, err_msg=name)
    weights = next(resampled_weights(range(300), n_resamples=4))
    expected = whole.scores(weights)
    for name, values in binned.scores(weights).items():
        np.testing.assert_allclose(values, expected[name], atol=1e-9, err_msg=name)


def test_true_counts_above_the_last_bin_are_in_it():
    method = Predictions.of_bins([[0, 0, 0, 0.2, 0.8], [1, 0, 0, 0, 0]], [9, 4])
    assert method.truth.tolist() == [4, 4]
    assert method.p_truth.tolist() == [0.8, 0]
    assert method.impossible.tolist() == [False, True]
    assert (method.low.tolist(), method.high.tolist()) == ([3, 0], [4, 0])
    with pytest.raises(ScoreError, match="add up to 1"):
        Predictions.of_bins([[0.5, 0, 0, 0, 0]], [0])


def test_ten_thousand_scans_take_seconds():
    method = predictions(10_000)
    begin = time.perf_counter()
    score_all({"a": method, "b": method}, groups=range(10_000))
    assert time.perf_counter() - begin < 60  # seconds on a busy machine; minutes would be another matter


def test_auroc_is_that_of_scikit_learn():
    sklearn = pytest.importorskip("sklearn.metrics", reason="needs scikit-learn")
    rng = np.random.default_rng(0)
    uncertainty = rng.integers(0, 6, 300) / 6  # many ties
    wrong = rng.random(300) < 0.2 + 0.5 * uncertainty
    assert auroc(uncertainty, wrong) == pytest.approx(sklearn.roc_auc_score(wrong, uncertainty))
    weights = rng.integers(0, 3, (4, 300)).astype(float)
    expected = [sklearn.roc_auc_score(wrong, uncertainty, sample_weight=row) for row in weights]
    np.testing.assert_allclose(auroc(uncertainty, wrong, weights=weights), expected)


def test_auroc_of_nothing_to_tell_apart():
    assert np.isnan(auroc([0.1, 0.2], [True, True]))
    assert np.isnan(auroc([], []))
    with pytest.raises(ScoreError, match="an uncertainty for each scan"):
        auroc([0.1], [True, False])


def test_certain_scans_come_first():
    shares, accuracy = certainty_curve([0.0, 0.1, 0.2, 0.3], [True, True, False, False], shares=[0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(accuracy, [1, 1, 2 / 3, 0.5])
    assert len(shares) == 4
    _, ties = certainty_curve([0.0, 0.0], [True, False], shares=[0.5])
    assert ties[0] == 0.5  # whichever of the two comes first in the list
    assert np.isnan(certainty_curve([], [])[1]).all()


def labels(text):
    return np.array([[int(letter) for letter in text]])


@pytest.mark.parametrize(
    ("candidates", "lesions", "owns", "missed", "split", "merged", "without_own"),
    [
        ("110220", "110220", [True, True], 0, 0, 0, 0),
        ("110022", "222200", [True, False], 1, 0, 0, 1),  # lesion 1 is not there; candidate 2 is a false positive
        ("110220", "111110", [True, False], 0, 1, 0, 0),  # split: the first of equal overlaps owns it
        ("111110", "110220", [True], 0, 0, 1, 1),  # merged: one lesion has no candidate of its own
        ("000000", "110000", [], 1, 0, 0, 1),
        ("110000", "000000", [False], 0, 0, 0, 0),
    ],
)
def test_matches(candidates, lesions, owns, missed, split, merged, without_own):
    a, b = labels(candidates), labels(lesions)
    match = match_lesions(a, b, n_candidates=int(a.max()), n_lesions=int(b.max()))
    assert match.owns.tolist() == owns
    assert (match.n_missed, match.n_split, match.n_merged) == (missed, split, merged)
    assert match.n_without_own == without_own
    assert match.n_own + match.n_shared + match.n_missed == match.n_lesions == int(b.max())


def test_larger_overlaps_own_first():
    match = match_lesions(labels("1122200"), labels("0111110"), n_candidates=2, n_lesions=1)
    assert match.owns.tolist() == [False, True]
    assert match.touches.tolist() == [True, True]


def test_a_lesion_is_found_by_whichever_candidate_touches_it():
    match = match_lesions(labels("1111102"), labels("1102203"), n_candidates=2, n_lesions=3)
    assert match.n_found_by(np.array([True, True])) == 3
    assert match.n_found_by(np.array([True, False])) == 2  # two lesions merged under one candidate are both found


def test_merged_lesions_are_one_detection():
    match = match_lesions(labels("1111102"), labels("1102203"), n_candidates=2, n_lesions=3)
    assert (match.n_own, match.n_shared, match.n_missed) == (2, 1, 0)
    assert match.n_owned_by(np.array([True, False])) == 1


def test_a_weaker_owner_gives_way_to_the_candidates_that_are_chosen():
    match = match_lesions(labels("1112200"), labels("1111100"), n_candidates=2, n_lesions=1)
    assert match.owns.tolist() == [True, False]
    assert match.n_owned_by(np.array([False, True])) == 1
    assert match.n_owned_by(np.array([False, False])) == 0


def test_improbable_is_not_impossible():
    method = Predictions.of_distributions([lc.PoissonBinomial([0.001] * 200)] * 2, [200, 201])
    assert method.means["zero_mass"].tolist() == [0, 1]


def test_label_maps_of_other_shapes_are_refused():
    with pytest.raises(ScoreError, match="one shape"):
        match_lesions(labels("11"), labels("111"), n_candidates=1, n_lesions=1)

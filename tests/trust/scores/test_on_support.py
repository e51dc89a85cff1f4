"""What many scans say together is what each distribution says alone, and scores are those of their formulas."""

import numpy as np
import pytest

import lesioncount as lc
from lesioncount.trust.scores import Predictions, resampled_weights
from lesioncount.trust.scores.on_support import LEVELS, _blocks


def some_distributions(n=120, seed=0):
    """Of all kinds and sizes: certain, empty, wide, mixed, with a table that ends before the support does."""
    rng = np.random.default_rng(seed)
    found = [lc.PoissonBinomial([]), lc.PoissonBinomial([1.0] * 7), lc.PoissonBinomial([1.0, 0.0, 0.5])]
    for _ in range(n):
        p = rng.random(rng.integers(0, 60)) ** rng.choice([0.2, 1, 5])
        raw = lc.PoissonBinomial(p)
        missed = lc.Calibration(0.7, -0.2, float(rng.uniform(0.01, 20))).distribution(p)
        found += [raw, missed, lc.MixtureOfCounts([raw, missed])]
    return found


def some_truths(distributions, seed=1):
    rng = np.random.default_rng(seed)
    drawn = np.array([d.rvs(random_state=rng) for d in distributions])
    odd = rng.random(len(drawn)) < 0.2
    return np.where(odd, rng.integers(0, 200, len(drawn)), drawn)


@pytest.fixture(scope="module")
def cohort():
    distributions = some_distributions()
    truth = some_truths(distributions)
    return distributions, truth, Predictions.of_distributions(distributions, truth)


def test_each_scan_is_as_its_distribution_says(cohort):
    distributions, truth, found = cohort
    for i, (d, c) in enumerate(zip(distributions, truth.tolist(), strict=True)):
        assert (found.predicted[i], found.median[i]) == (d.mode(), d.median())
        assert found.expected[i] == d.mean()
        assert [tuple(ends) for ends in found.intervals[i]] == [d.interval(level) for level in LEVELS]
        assert found.p_truth[i] == pytest.approx(d.pmf(c), rel=1e-9)
        assert found.below[i] == pytest.approx(d.cdf(c - 1), abs=1e-12)
        assert found.confidence[i] == d.pmf(d.mode())
        assert found.impossible[i] == np.isneginf(d.logpmf(c))
        assert found.entropy[i] == pytest.approx(d.entropy(), abs=1e-9)


def test_rps_is_the_sum_over_all_counts(cohort):
    distributions, truth, found = cohort
    for d, c, rps in zip(distributions, truth, found.rps, strict=True):
        k = np.arange(1000)
        assert rps == pytest.approx(((d.cdf(k) - (c <= k)) ** 2).sum(), abs=1e-9)


def test_rps_is_the_error_less_half_of_the_spread(cohort):
    """E|X - c| - E|X - X'| / 2, with X and X' two draws of the distribution: no distribution function is in it."""
    distributions, truth, found = cohort
    for d, c, rps in zip(distributions[:60], truth, found.rps, strict=False):
        p = d.pmf()
        k = np.arange(len(p))
        error, spread = p @ np.abs(k - c), p @ np.abs(k[:, None] - k) @ p
        assert rps == pytest.approx(error - spread / 2, abs=1e-8)


def test_log_score_has_a_floor_and_says_how_often(cohort):
    distributions, truth, found = cohort
    p = np.array([d.pmf(int(c)) for d, c in zip(distributions, truth, strict=True)])
    once = np.ones((1, len(truth)))
    assert found.scores(once)["nll"] == pytest.approx(-np.log(np.maximum(p, 1e-6)).mean())
    assert found.scores(once)["nll_floored"] == pytest.approx((p <= 1e-6).mean())
    assert 0 < found.scores(once)["zero_mass"] < found.scores(once)["nll_floored"]


def test_median_errs_least(cohort):
    distributions, truth, found = cohort
    drawn = np.array([d.rvs(2000, random_state=0) for d in distributions])
    errors = [np.abs(drawn - of[:, None]).mean() for of in (found.median, found.predicted, found.expected)]
    assert errors[0] <= min(errors[1:]) + 1e-3
    assert found.means["mae"].tolist() == np.abs(found.median - truth).tolist()


def test_honest_intervals_hold_what_they_promise():
    """Of wide distributions, whole numbers hardly matter: coverage is the level and a little."""
    rng = np.random.default_rng(2)
    existence = [rng.random(400) for _ in range(1500)]
    counts = [int((rng.random(400) < p).sum()) for p in existence]
    found = Predictions.of_distributions([lc.PoissonBinomial(p) for p in existence], counts).scores(np.ones((1, 1500)))
    for level in LEVELS:
        name = f"{100 * level:.0f}"
        assert level - 0.03 < found[f"coverage{name}"][0] < level + 0.07
    assert found["width50"] < found["width80"] < found["width90"]


def test_weights_are_repetitions_without_bins_too(cohort):
    distributions, truth, found = cohort
    weights = next(resampled_weights(range(len(truth)), n_resamples=2, seed=3))
    by_weight = found.scores(weights)
    for row, drawn in enumerate(weights.astype(int)):
        rows = np.repeat(np.arange(len(truth)), drawn)
        again = Predictions.of_distributions([distributions[i] for i in rows], truth[rows])
        for name, values in again.scores(np.ones((1, len(rows)))).items():
            if name not in ("ece", "mce", "auroc"):  # whether these make sense is asked of the cohort
                assert by_weight[name][row] == pytest.approx(values[0]), name


def test_blocks_hold_every_scan_once_and_little_padding():
    rng = np.random.default_rng(0)
    lengths = [*rng.integers(1, 3000, 2000).tolist(), 3_000_000]
    blocks = list(_blocks(lengths))
    assert sorted(np.concatenate(blocks).tolist()) == list(range(2001))
    assert len(blocks) > 2
    sizes = [len(rows) * max(lengths[i] for i in rows) for rows in blocks]
    assert max(sizes[:-1]) <= 1 << 20
    assert len(blocks[-1]) == 1  # longer than a block by itself


def test_no_scans_have_no_scores():
    found = Predictions.of_distributions([], []).scores(np.ones((1, 0)))
    assert all(np.isnan(values).all() for values in found.values())

"""Agreement of counts: concordance, Bland and Altman's limits, and thirds of the scans."""

import math

import numpy as np
import pytest
from msgspec import ValidationError, convert, to_builtins

from lesioncount.errors import ScoreError
from lesioncount.trust.scores import Agreement, BlandAltman, Estimate, Predictions, concordance, score_all
from lesioncount.trust.scores.agreement import terciles
from lesioncount.trust.scores.bootstrap import resampled_ratios


def lin(x, y):
    """By the formula, with plain numpy."""
    return 2 * np.cov(x, y, ddof=0)[0, 1] / (np.var(x) + np.var(y) + (np.mean(x) - np.mean(y)) ** 2)


def test_concordance_is_lins():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 400, 60)
    for predicted in (truth + rng.normal(0, 20, 60), truth / 3, rng.permutation(truth), truth + 1e6):
        assert concordance(predicted, truth) == pytest.approx(lin(predicted, truth), abs=1e-9)
    assert concordance(truth, truth) == 1
    assert lin([1, 2, 3], [3, 6, 9]) == pytest.approx(4 / (2 / 3 + 6 + 16))


def test_concordance_of_repeated_scans_is_that_of_weights():
    rng = np.random.default_rng(1)
    x, y, weights = rng.integers(0, 9, 20), rng.integers(0, 9, 20), rng.integers(0, 4, (3, 20))
    expected = [lin(np.repeat(x, w), np.repeat(y, w)) for w in weights]
    np.testing.assert_allclose(concordance(x, y, weights=weights), expected)


def test_concordance_without_spread_is_not_defined():
    assert math.isnan(concordance([2, 2], [2, 2]))
    assert math.isnan(concordance([], []))
    assert concordance([0, 0], [1, 3]) == 0
    with pytest.raises(ScoreError, match="a predicted count for each true one"):
        concordance([1], [1, 2])


def test_concordance_has_an_interval():
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 300, 80)
    scores, _ = score_all({"cc": Predictions.of_counts(truth // 2, truth)}, groups=range(80))
    found = scores["cc"]["concordance"]
    assert found.value == pytest.approx(lin(truth // 2, truth))
    assert found.low < found.value < found.high


def test_limits_hold_most_differences_and_the_mean_has_an_interval():
    rng = np.random.default_rng(3)
    truth = rng.integers(2, 9, 400)
    predicted = truth + rng.normal(1, 2, 400)
    found = BlandAltman.of(predicted, truth, range(400))
    assert not found.is_log
    assert found.mean.value == pytest.approx((predicted - truth).mean())
    assert found.mean.low < 1 < found.mean.high
    assert found.high - found.low == pytest.approx(2 * 1.96 * np.std(predicted - truth, ddof=1))
    assert 0.92 < np.mean((found.low < predicted - truth) & (predicted - truth < found.high)) < 0.98


def test_counts_over_decades_are_compared_as_ratios():
    truth = np.array([9, 19, 99, 399])
    found = BlandAltman.of((truth + 1) / 2 - 1, truth, range(4))
    assert found.is_log
    assert np.exp(found.mean.value) == pytest.approx(0.5)
    assert found.low == pytest.approx(found.high)
    assert not BlandAltman.of(truth[:1] * 1.0, np.array([9]), range(1)).is_log
    assert BlandAltman.of(np.array([3.0, 4.0]), np.array([0, 9]), range(2)).is_log  # ten is ten times one


def test_one_scan_has_no_limits():
    assert math.isnan(BlandAltman.of(np.array([3.0]), np.array([4]), ["a"]).low)


def test_thirds_hold_all_scans_and_keep_equal_counts_together():
    rng = np.random.default_rng(4)
    by = rng.integers(0, 8, 100)
    error = rng.random(100)
    found = terciles(by, [error, -error, error > 0.5, 2 * error], range(100))
    assert sum(third.n for third in found) == 100
    assert [third.low for third in found[1:]] > [third.high for third in found[:-1]]
    for third in found:
        chosen = (third.low <= by) & (by <= third.high)
        assert chosen.sum() == third.n
        assert third.error.value == pytest.approx(error[chosen].mean())
        assert third.bias.value == pytest.approx(-error[chosen].mean())
        assert third.coverage.value == pytest.approx((error[chosen] > 0.5).mean())
        assert third.width.low < third.width.value < third.width.high
    assert len(terciles(np.zeros(5), [np.zeros(5)] * 4, range(5))) == 1
    assert terciles(np.zeros(0), [np.zeros(0)] * 4, []) == ()


def test_ratios_over_some_scans_are_resampled_with_all():
    rng = np.random.default_rng(5)
    values, some = rng.random(50), np.arange(50) < 20
    ours, everyone = resampled_ratios(
        np.stack([values * some, values], axis=1), np.stack([some, np.ones(50)], axis=1).astype(float), range(50)
    )
    assert ours.value == pytest.approx(values[:20].mean())
    assert everyone.value == pytest.approx(values.mean())
    assert ours.high - ours.low > everyone.high - everyone.low


def test_agreement_survives_its_file():
    truth = np.array([0, 1, 5, 60])
    values = [np.arange(4.0)] * 4
    found = Agreement(BlandAltman.of(truth * 2.0, truth, range(4)), terciles(truth, values, range(4)))
    again = convert(to_builtins(found), Agreement)
    assert again == found
    content = to_builtins(found)["bland_altman"] | {"low": None}
    assert math.isnan(convert(content, BlandAltman).low)
    with pytest.raises(ValidationError, match="is_log"):
        convert(content | {"is_log": 1, "mean": to_builtins(Estimate())}, BlandAltman)
    with pytest.raises(ValidationError, match="at most 1e"):
        convert(content | {"high": 1e300}, BlandAltman)

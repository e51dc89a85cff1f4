"""Calibration of counts of any size: the transform is even if, and only if, distributions are honest."""

import numpy as np
import pytest
from msgspec import ValidationError, convert, to_builtins

import lesioncount as lc
from lesioncount.errors import ScoreError
from lesioncount.trust.scores import CoverageCurve, PitHistogram, Predictions, randomised_pit
from lesioncount.trust.scores.pit import binomial_interval


def simulated(candidates, *, said=None, n=4000, seed=0):
    """The transform of scans whose candidates exist with honest probabilities, and are said to with others."""
    rng = np.random.default_rng(seed)
    existence = [rng.random(candidates) for _ in range(n)]
    counts = [int((rng.random(candidates) < p).sum()) for p in existence]
    distributions = [lc.PoissonBinomial(p if said is None else said.existence(p)) for p in existence]
    found = Predictions.of_distributions(distributions, counts)
    return randomised_pit(found.below, found.p_truth, seed=seed)


@pytest.mark.parametrize("candidates", [1, 3, 40])
def test_honest_distributions_are_even_however_small_counts_are(candidates):
    pit = simulated(candidates)
    stats = pytest.importorskip("scipy.stats", reason="needs scipy")
    assert stats.kstest(pit, "uniform").pvalue > 0.01
    assert PitHistogram.of(pit).n_outside <= 2
    curve = CoverageCurve.of(pit)
    assert curve.low[9] <= curve.actual[9] <= curve.high[9]
    np.testing.assert_allclose(curve.actual, curve.nominal, atol=0.03)


@pytest.mark.parametrize(
    ("said", "highest"),
    [(lc.Calibration(4.0), {0, 9}), (lc.Calibration(0.2), {3, 4, 5, 6}), (lc.Calibration(offset=1.0), {0}),
     (lc.Calibration(offset=-1.0), {9})],
)  # fmt: skip
def test_shape_tells_what_is_wrong(said, highest):
    """Too sure: both ends; not sure enough: the middle; too high: the left; too low: the right."""
    found = PitHistogram.of(simulated(40, said=said))
    assert set(np.argsort(found.n)[-len(highest) :]) == highest
    assert found.n_outside >= 3
    assert sum(found.n) == 4000


def test_narrow_distributions_cover_too_little():
    curve = CoverageCurve.of(simulated(40, said=lc.Calibration(4.0)))
    assert all(actual < low for actual, low in zip(curve.actual, curve.low, strict=True))


def test_transform_lies_between_the_steps_and_has_a_seed():
    below, step = np.array([0.0, 0.3, 1.0]), np.array([0.2, 0.0, 0.0])
    first, again, other = (randomised_pit(below, step, seed=seed) for seed in (0, 0, 1))
    assert first.tolist() == again.tolist() != other.tolist()
    assert 0 <= first[0] <= 0.2
    assert first[1:].tolist() == [0.3, 1.0]
    assert PitHistogram.of(first).n[9] == 1  # 1 is in the last bin
    with pytest.raises(ScoreError, match="of each scan"):
        randomised_pit([0.1], [0.1, 0.2])


@pytest.mark.parametrize("n", [1, 7, 30, 1000, 20_000])
@pytest.mark.parametrize("p", [0.05, 0.1, 0.5, 0.95])
def test_bands_are_binomial(n, p):
    stats = pytest.importorskip("scipy.stats", reason="needs scipy")
    assert binomial_interval(n, p) == tuple(stats.binom(n, p).interval(0.95))


def test_both_survive_their_files_and_odd_ones_are_refused():
    pit = simulated(5, n=50)
    for found in (PitHistogram.of(pit), CoverageCurve.of(pit)):
        assert convert(to_builtins(found), type(found)) == found
    for wrong, message in (([1.5], "`int`, got `float`"), ([-1], "`int` >= 0"), ([], "numbers of scans")):
        with pytest.raises(ValidationError, match=message):
            convert({"n": wrong, "low": 0, "high": 1}, PitHistogram)
    with pytest.raises(ValidationError, match="same length"):
        convert({"nominal": [0.5], "actual": [], "low": [], "high": []}, CoverageCurve)
    with pytest.raises(ValidationError, match=r"<= 1.0 - at `\$\.actual"):
        convert({"nominal": [0.5], "actual": [2], "low": [0], "high": [1]}, CoverageCurve)

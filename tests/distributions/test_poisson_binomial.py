import math
import pickle

import mpmath
import numpy as np
import pytest
from oracles import plain
from scipy import stats

from lesioncount import PoissonBinomial
from lesioncount.errors import DistributionError

CASES = {
    "uniform": lambda rng, n: rng.random(n),
    "rare": lambda rng, n: rng.random(n) * 1e-3,
    "sure": lambda rng, n: 1 - rng.random(n) * 1e-6,
    "both": lambda rng, n: np.where(rng.random(n) < 0.5, rng.random(n) * 1e-6, 1 - rng.random(n) * 1e-6),
    "equal": lambda rng, n: np.full(n, rng.random()),
    "extreme": lambda rng, n: np.where(rng.random(n) < 0.5, 10.0 ** -rng.uniform(0, 300, n), rng.random(n)),
}


def relative_errors(probabilities):
    """Of all values above 1e-290, against 60 digits."""
    with mpmath.workdps(60):
        exact = plain.poisson_binomial([mpmath.mpf(float(p)) for p in probabilities])
        ours = PoissonBinomial(probabilities).pmf()
        return [float(abs(mpmath.mpf(float(a)) / e - 1)) for a, e in zip(ours, exact, strict=True) if e > 1e-290]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 17, 100, 400])
def test_pmf_is_exact_tails_included(case, n, rng):
    assert max(relative_errors(CASES[case](rng, n))) <= 1e-12


@pytest.mark.parametrize("case", ["uniform", "rare", "both"])
@pytest.mark.parametrize("n", [5000, pytest.param(30000, marks=pytest.mark.slow)])
def test_pmf_of_many_candidates_is_exact(case, n, rng):
    p = np.sort(CASES[case](rng, n))
    exact = np.zeros(n + 1, np.longdouble)  # 80 bits: 64 of them digits, and exponents far below 1e-4000
    exact[0] = 1
    for i, x in enumerate(p.astype(np.longdouble)):
        exact[1 : i + 2] = exact[1 : i + 2] * (1 - x) + exact[: i + 1] * x
        exact[0] *= 1 - x
    ours = PoissonBinomial(p).pmf()
    seen = exact > 1e-290
    assert np.max(np.abs(ours[seen] / exact[seen] - 1)) <= 1e-12


def test_hundred_thousand_candidates_match_their_moments(rng):
    count = PoissonBinomial(rng.random(100_000))
    pmf, k = count.pmf(), np.arange(100_001)
    assert math.fsum(pmf) == pytest.approx(1, abs=1e-12)
    assert math.fsum(pmf * k) == pytest.approx(count.mean(), rel=1e-12)
    assert math.fsum(pmf * (k - count.mean()) ** 2) == pytest.approx(count.var(), rel=1e-9)
    assert (
        pmf[int(count.mean() + 30 * count.std())] > 0
    )  # a Fourier transform has lost this tail at 8 standard deviations


@pytest.mark.parametrize(("n", "p"), [(100_000, 0.2), (100_000, 1e-5), (30_000, 0.3), (13_000, 0.1)])
def test_rounding_of_equal_probabilities_does_not_add_up(n, p):
    pmf = PoissonBinomial(np.full(n, p)).pmf()
    mean, sd = n * p, math.sqrt(n * p * (1 - p))
    with mpmath.workdps(40):
        for k in {max(0, int(mean + z * sd)) for z in (-30, -20, -10, -3, 0, 3, 10, 20, 30)}:
            exact = mpmath.binomial(n, k) * mpmath.mpf(p) ** k * (1 - mpmath.mpf(p)) ** (n - k)
            if exact > 1e-290:
                assert abs(mpmath.mpf(float(pmf[k])) / exact - 1) <= 1e-12


def test_quantiles_near_one_come_from_the_other_tail():
    count = PoissonBinomial(np.full(100_000, 0.3))
    assert count.ppf(1 - 2**-40) == count.isf(2**-40) < 31_100


def test_no_candidates_count_zero():
    count = PoissonBinomial([])
    assert count.pmf().tolist() == [1.0]
    assert (count.mode(), count.mean(), count.std(), count.entropy(), count.interval(0.9)) == (0, 0, 0, 0, (0, 0))
    assert count.binned(4).tolist() == [1, 0, 0, 0, 0]
    assert count.logpmf(0) == 0
    assert count.logpmf(1) == -math.inf


def test_certain_candidates_are_exact():
    count = PoissonBinomial([0.0, 1.0, 1.0, 0.0])
    assert count.pmf().tolist() == [0, 0, 1, 0, 0]
    assert count.support() == (2, 2)
    assert count.entropy() == 0
    assert count.interval(0.99) == (2, 2)


@pytest.mark.parametrize("n", [1, 5, 50])
def test_methods_agree_with_scipy(n, rng):
    p = rng.random(n)
    ours, theirs = PoissonBinomial(p), stats.poisson_binom(p)
    k = np.arange(-2, n + 3)
    np.testing.assert_allclose(ours.pmf(k), theirs.pmf(k), atol=1e-13)
    np.testing.assert_allclose(ours.cdf(k), theirs.cdf(k), atol=1e-13)
    np.testing.assert_allclose(ours.sf(k), theirs.sf(k), atol=1e-13)
    np.testing.assert_allclose(ours.cdf(k + 0.5), theirs.cdf(k + 0.5), atol=1e-13)
    q = [0, 0.01, 0.3, 0.5, 0.99, 1]
    np.testing.assert_array_equal(ours.ppf(q), theirs.ppf(q))
    np.testing.assert_array_equal(ours.isf(q), theirs.isf(q))
    assert ours.mean() == pytest.approx(theirs.mean())
    assert ours.var() == pytest.approx(theirs.var())
    assert ours.std() == pytest.approx(theirs.std())
    assert ours.median() == theirs.median()
    assert ours.entropy() == pytest.approx(stats.entropy(ours.pmf()))
    assert ours.interval(0.9) == tuple(theirs.interval(0.9))


def test_scalars_in_scalars_out_arrays_in_arrays_out():
    count = PoissonBinomial([0.25, 0.5])
    assert isinstance(count.pmf(1), float)
    assert isinstance(count.ppf(0.5), int)
    assert isinstance(count.rvs(random_state=1), int)
    assert count.pmf([[0, 1]]).shape == (1, 2)
    assert count.rvs((3, 4), random_state=1).shape == (3, 4)
    assert count.pmf(0.5) == 0
    assert count.cdf(-0.5) == 0
    assert count.logpmf(0.5) == -math.inf


def test_logarithms_of_counts_too_improbable_for_a_number(rng):
    p = np.concatenate([10.0 ** -rng.uniform(1, 12, 150), 1 - 10.0 ** -rng.uniform(1, 12, 150)])
    with mpmath.workdps(60):
        exact = plain.poisson_binomial([mpmath.mpf(float(x)) for x in p])
        logs = np.array([float(mpmath.log(e)) for e in exact])
        below = np.array([float(mpmath.log(s)) for s in np.cumsum(exact)])
        above = np.array([float(mpmath.log(s)) for s in np.cumsum(exact[::-1])[::-1]])
    count = PoissonBinomial(p)
    assert logs.min() < -1000  # far below the smallest double
    np.testing.assert_allclose(count.logpmf(), logs, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(count.logpmf(np.arange(301)), logs, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(count.logcdf(np.arange(301)), below, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(count.logsf(np.arange(-1, 300)), above, rtol=1e-11, atol=1e-12)
    assert count.logsf(300) == -math.inf
    assert count.logcdf(-1) == -math.inf


@pytest.mark.parametrize("p", [[1e-310, 0.5], [5e-324] * 3, [1 - 2**-53] * 40, [1e-200] * 30 + [1 - 1e-16] * 30])
def test_log_of_every_possible_count_is_finite(p):
    count = PoissonBinomial(p)
    low, high = count.support()
    assert np.isfinite(count.logpmf(np.arange(low, high + 1))).all()
    assert np.isfinite(count.logpmf()[low : high + 1]).all()
    assert count.logpmf(high + 1) == -math.inf


def test_log_is_finite_for_a_hundred_thousand_candidates(rng):
    count = PoissonBinomial(rng.random(100_000))
    assert count.logpmf(0) == pytest.approx(math.fsum(np.log1p(-count.probabilities)))
    assert np.isfinite(count.logpmf(99_999))


def test_samples_follow_the_distribution():
    count = PoissonBinomial([0.1, 0.5, 0.9, 0.3])
    drawn = np.bincount(count.rvs(100_000, random_state=7), minlength=5) / 100_000
    np.testing.assert_allclose(drawn, count.pmf(), atol=5 * math.sqrt(0.25 / 100_000))
    np.testing.assert_array_equal(count.rvs(10, random_state=3), count.rvs(10, random_state=np.random.default_rng(3)))


def test_pickle_and_equality():
    count = PoissonBinomial([0.2, 0.7])
    count.pmf()
    again = pickle.loads(pickle.dumps(count))  # noqa: S301 - our own object
    assert again == count
    assert hash(again) == hash(count)
    assert count != PoissonBinomial([0.2, 0.6])
    assert count != 3
    np.testing.assert_array_equal(again.pmf(), count.pmf())


def test_distributions_add_and_nothing_else_does():
    both = PoissonBinomial([0.5]) + PoissonBinomial([0.25, 1.0])
    assert both == PoissonBinomial([0.25, 0.5, 1.0])
    with pytest.raises(TypeError):
        PoissonBinomial([0.5]) + 1
    assert sum([PoissonBinomial([0.5]), PoissonBinomial([0.25])]) == PoissonBinomial([0.25, 0.5])
    assert hash(PoissonBinomial([-0.0])) == hash(PoissonBinomial([0.0]))


def test_it_says_what_it_is():
    assert repr(PoissonBinomial([0.5, 0.5])) == "PoissonBinomial(2 probabilities, mean 1, sd 0.7071)"
    assert len(PoissonBinomial([0.5, 0.5])) == 2


def test_probabilities_are_copied_and_read_only():
    p = np.array([0.5, 0.25])
    count = PoissonBinomial(p)
    p[0] = 0.9
    assert count.mean() == 0.75
    for array in (count.probabilities, count.pmf()):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_rounding_beyond_one_is_taken_as_one():
    assert PoissonBinomial(np.float32([1.0000001, 0.5])).support() == (1, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PoissonBinomial([0.5, 1.5]), r"in \[0, 1\], but they span \[0.5, 1.5\]"),
        (lambda: PoissonBinomial([-0.5]), r"in \[0, 1\]"),
        (lambda: PoissonBinomial([math.nan]), r"in \[0, 1\]"),
        (lambda: PoissonBinomial([[0.5]]), "one dimension"),
        (lambda: PoissonBinomial(["many"]), "sequence of numbers"),
        (lambda: PoissonBinomial([0.5]).interval(90), "For 90 % pass 0.9"),
        (lambda: PoissonBinomial([0.5]).ppf(1.5), r"in \[0, 1\]"),
        (lambda: PoissonBinomial([0.5]).binned(-1), "max_count"),
        (lambda: PoissonBinomial([0.5]).binned(1.5), "max_count"),
        (lambda: PoissonBinomial([0.5]).binned(math.nan), "max_count"),
        (lambda: PoissonBinomial([0.5]).binned("4"), "max_count"),
        (lambda: PoissonBinomial([0.5]).interval([0.5, 0.9]), "confidence"),
        (lambda: PoissonBinomial([0.5]).pmf(math.nan), "NaN"),
    ],
)
def test_nonsense_is_refused(call, message):
    with pytest.raises(DistributionError, match=message):
        call()

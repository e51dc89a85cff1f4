"""What another reader would count, from candidates and other readers."""

import numpy as np
import pytest

from lesioncount.distributions.tabulated import TabulatedCount
from lesioncount.errors import CalibrationError
from lesioncount.trust.fitting.reader_pool import PoolNumbers, ReaderPool


def _simulated(n, rng):
    """Counts that are known to a Poisson width, and four readers who see nearly the same."""
    from scipy.stats import poisson

    means = rng.gamma(1.0, 3.0, n)
    seen = rng.poisson(means)
    counts = [TabulatedCount(poisson.pmf(np.arange(60), mean) / poisson.cdf(59, mean)) for mean in means]
    readings = [[max(0, int(one + step)) for step in rng.integers(-1, 2, 4)] for one in seen]
    return counts, readings


def _rps(count, truth):
    pmf = count.pmf()
    k = np.arange(max(len(pmf), truth + 1))
    return float(((np.cumsum(np.pad(pmf, (0, len(k) - len(pmf)))) - (k >= truth)) ** 2).sum())


def test_the_pool_is_its_equation():
    pool = ReaderPool((PoolNumbers(0.7, 1.6, 0.5), PoolNumbers(0.6, 2.0, 0.4)))
    p = np.array([0.4, 0.3, 0.2, 0.1])
    logs = np.log(np.concatenate([p, np.full(20, 1e-12)]))
    for reads, (alpha, s0, s1) in (([2], (0.7, 1.6, 0.5)), ([1, 4], (0.6, 2.0, 0.4))):
        found = pool.distribution(TabulatedCount(p), reads).pmf()
        k = np.arange(len(found))
        log_p = alpha * logs[: len(k)] - sum(abs(k - r) / (s0 + s1 * np.sqrt(r)) for r in reads)
        assert found == pytest.approx(np.exp(log_p) / np.exp(log_p).sum())


def test_without_reads_the_count_stays_as_it_is():
    count = TabulatedCount(np.array([0.5, 0.5]))
    assert ReaderPool((PoolNumbers(0.7, 1.6, 0.5),)).distribution(count, []) is count


def test_order_of_readers_does_not_matter_and_more_reads_than_fitted_are_taken():
    count = TabulatedCount(np.array([0.25, 0.5, 0.25]))
    pool = ReaderPool((PoolNumbers(0.7, 1.6, 0.5),))
    one, other = (pool.distribution(count, reads).pmf() for reads in ([0, 2, 5], [5, 0, 2]))
    assert one == pytest.approx(other)
    assert pool.distribution(count, [2]).pmf() == pytest.approx(pool.distribution(count, [2, 2, 2]).pmf())


def test_reads_make_the_count_of_another_reader_better_known():
    rng = np.random.default_rng(1)
    pool = ReaderPool.fit(*_simulated(150, rng))
    assert len(pool.by_reads) == 3
    assert pool.n_scans == 150
    counts, readings = _simulated(150, rng)
    scores = [
        np.mean([_rps(pool.distribution(c, of[1 : 1 + m]), of[0]) for c, of in zip(counts, readings, strict=True)])
        for m in range(3)
    ]
    assert scores[0] > 1.5 * scores[1] > 1.5 * scores[2]


def test_too_few_readers_give_no_pool():
    counts, readings = _simulated(30, np.random.default_rng(2))
    assert ReaderPool.fit(counts, [of[:1] for of in readings]) is None
    assert len(ReaderPool.fit(counts, [of[:2] for of in readings]).by_reads) == 1


def test_numbers_are_kept_and_checked():
    pool = ReaderPool((PoolNumbers(0.7, 1.6, 0.5),), 40)
    assert ReaderPool.from_dict(pool.to_dict()) == pool
    with pytest.raises(CalibrationError, match="pool of readers"):
        ReaderPool.from_dict({"by_reads": [{"alpha": 0.5, "s0": 0.0, "s1": 1.0}]})

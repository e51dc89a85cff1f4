"""What must not change the count, and what a distribution must satisfy."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import NAMES, maps

import lesioncount as lc
from lesioncount.sweep.slabs import REGION, RUN, SweepPlan
from lesioncount.sweep.voxels import encoding_of

pytestmark = pytest.mark.filterwarnings("ignore::lesioncount.errors.MapWarning")

probability_lists = st.lists(
    st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 1e-300, 1 - 2**-53])), min_size=0, max_size=40
)


def signature(probabilities, protocol):
    """All that is left of the candidates when positions are forgotten."""
    candidates = lc.find_candidates(probabilities, protocol=protocol)
    return sorted(zip(candidates.n_voxels.tolist(), candidates.peak_probability.tolist(), strict=True))


@settings(max_examples=100)
@given(maps(), st.sampled_from(["faces", "edges", "corners"]), st.data())
def test_flips_and_transposes_do_not_change_the_candidates(probabilities, connectivity, data):
    protocol = lc.CountingProtocol(connectivity=connectivity)
    expected = signature(probabilities, protocol)
    axes = data.draw(st.permutations(range(probabilities.ndim)))
    assert signature(probabilities.transpose(axes), protocol) == expected
    assert signature(np.flip(probabilities, axes[0]), protocol) == expected


@settings(max_examples=100)
@given(maps(), st.sampled_from(["faces", "edges", "corners"]))
def test_memory_order_changes_nothing_at_all(probabilities, connectivity):
    protocol = lc.CountingProtocol(connectivity=connectivity)
    c_order = lc.find_candidates(np.ascontiguousarray(probabilities), protocol=protocol)
    f_order = lc.find_candidates(np.asfortranarray(probabilities), protocol=protocol)
    for name in c_order.columns():
        np.testing.assert_array_equal(c_order.columns()[name], f_order.columns()[name], err_msg=name)
    np.testing.assert_array_equal(c_order.label_map(), f_order.label_map())


@settings(max_examples=100)
@given(maps(ndims=(3,)), st.sampled_from([1, 2, 3]), st.integers(1, 8), st.integers(1, 8))
def test_slab_addition_is_associative(probabilities, neighbours, first, second):
    n = probabilities.shape[0]
    first, second = sorted((first % n, second % n))
    encoding = encoding_of(probabilities.dtype, None, 0.0, False)
    plan = SweepPlan((0, 1, 2), probabilities.shape, encoding, lc.CountingProtocol(connectivity=NAMES[neighbours]))
    pieces = [(b, e) for b, e in ((0, first), (first, second), (second, n)) if b < e]
    slabs = [plan.sweep(probabilities[b:e], None, b) for b, e in pieces]
    whole = plan.sweep(probabilities, None, 0)
    if len(slabs) == 3:
        a, b, c = slabs
        sums = [(a + b) + c, a + (b + c)]
    else:
        sums = [slabs[0] + slabs[1]] if len(slabs) == 2 else slabs
    regions, runs = whole.finish()
    for total in sums:
        total_regions, total_runs = total.finish()
        np.testing.assert_array_equal(np.frombuffer(total_regions, REGION), np.frombuffer(regions, REGION))
        np.testing.assert_array_equal(np.frombuffer(total_runs, RUN), np.frombuffer(runs, RUN))


@given(probability_lists)
def test_mean_is_the_sum_of_probabilities_and_mass_is_one(probabilities):
    count = lc.PoissonBinomial(probabilities)
    pmf = count.pmf()
    assert len(pmf) == len(probabilities) + 1
    assert math.fsum(pmf) == pytest.approx(1, abs=1e-13)
    assert math.fsum(pmf * np.arange(len(pmf))) == pytest.approx(count.mean(), abs=1e-11)
    assert count.mean() == pytest.approx(math.fsum(probabilities), abs=1e-12)
    assert count.var() == pytest.approx(float(np.sum(pmf * (np.arange(len(pmf)) - count.mean()) ** 2)), abs=1e-9)


@given(probability_lists, st.randoms())
def test_order_of_candidates_does_not_matter_to_the_last_bit(probabilities, random):
    shuffled = list(probabilities)
    random.shuffle(shuffled)
    np.testing.assert_array_equal(lc.PoissonBinomial(shuffled).pmf(), lc.PoissonBinomial(probabilities).pmf())
    assert lc.PoissonBinomial(shuffled) == lc.PoissonBinomial(probabilities)


@given(probability_lists, probability_lists)
def test_sum_of_two_counts_is_the_convolution(a, b):
    both = lc.PoissonBinomial(a) + lc.PoissonBinomial(b)
    expected = np.convolve(lc.PoissonBinomial(a).pmf(), lc.PoissonBinomial(b).pmf())
    np.testing.assert_allclose(both.pmf(), expected, rtol=1e-11, atol=1e-300)


@given(probability_lists, st.integers(0, 8))
def test_bins_are_those_of_the_whole_distribution(probabilities, max_count):
    count = lc.PoissonBinomial(probabilities)
    bins = count.binned(max_count)
    expected = [count.pmf(k) for k in range(max_count)] + [count.sf(max_count - 1)]
    np.testing.assert_allclose(bins, expected, rtol=1e-11, atol=1e-300)


@given(probability_lists, st.floats(0, 1))
@example([7.785826179816239e-256], 1.0)
def test_quantiles_invert_the_distribution_function(probabilities, q):
    count = lc.PoissonBinomial(probabilities)
    k = count.ppf(q)
    assert count.cdf(k) >= q * (1 - 1e-15)
    assert k <= 0 or q == 1 or count.cdf(k - 1) < q  # the last count may be too improbable to show in the sum
    low, high = count.interval(q)
    assert count.support()[0] <= low <= high <= count.support()[1]
    assert count.cdf(high) - count.cdf(low - 1) >= q - 1e-12

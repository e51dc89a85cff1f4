"""Peaks equal merge trees by the book, cripser, and the connected components at every threshold."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import merge_tree, plain
from strategies import NAMES, cuts, maps

import lesioncount as lc
from lesioncount.sweep import peaks as peaks_module
from lesioncount.sweep.peaks import split_into_peaks
from lesioncount.sweep.slabs import SweepPlan
from lesioncount.sweep.voxels import encoding_of

pytestmark = pytest.mark.filterwarnings("ignore::lesioncount.errors.MapWarning")

connectivities = st.sampled_from([1, 2, 3])
small_maps = maps(max_side=6, long_sides=(17, 66))


def peaks_of(probabilities, neighbours=2, **options):
    fields = {name: options.pop(name) for name in ("threshold", "min_voxels", "min_persistence") if name in options}
    protocol = lc.CountingProtocol(connectivity=NAMES[neighbours], candidates="peaks", **fields)
    return lc.find_candidates(probabilities, protocol=protocol, **options)


def assert_equal_to_oracle(candidates, probabilities, neighbours, mask=None, threshold=0.1):
    rows = merge_tree.peaks(probabilities, threshold, min(neighbours, probabilities.ndim), mask)
    labels = np.zeros(probabilities.shape, int)
    none = (-1,) * probabilities.ndim
    assert len(candidates) == len(rows)
    for row, (peak, saddle, voxels) in enumerate(rows):
        assert tuple(candidates.peak_index[row]) == peak
        assert tuple(candidates.saddle_index[row]) == (saddle or none)
        assert candidates.peak_probability[row] == probabilities[peak]
        assert candidates.saddle_probability[row] == (probabilities[saddle] if saddle else 0)
        assert candidates.saddle_position[row] == (np.ravel_multi_index(saddle, labels.shape) if saddle else -1)
        assert candidates.n_voxels[row] == len(voxels)
        np.testing.assert_allclose(candidates.centroid[row], np.mean(voxels, axis=0), rtol=1e-12)
        box = [*np.min(voxels, axis=0), *np.max(voxels, axis=0) + 1]
        np.testing.assert_array_equal(candidates.bbox[row], box)
        labels[tuple(np.transpose(voxels))] = row + 1
    np.testing.assert_array_equal(candidates.label_map(), labels)


def assert_same(one, other):
    for name, column in one.columns().items():
        np.testing.assert_array_equal(column, other.columns()[name], err_msg=name)
    np.testing.assert_array_equal(one.label_map(), other.label_map())
    assert one.n_dropped == other.n_dropped


@settings(max_examples=150)
@given(small_maps, connectivities, st.sampled_from([1, 2]))
def test_peaks_saddles_and_regions_are_those_of_the_merge_tree(probabilities, neighbours, threads):
    assert_equal_to_oracle(peaks_of(probabilities, neighbours, threads=threads), probabilities, neighbours)


@pytest.mark.parametrize(("shape", "share"), [((14, 50, 60), 0.15), ((200, 200), 0.3)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_regions_too_large_to_be_looked_at_as_a_whole(rng, shape, share, order):
    probabilities = np.where(rng.random(shape) < share, np.ceil(rng.random(shape) * 50) / 50, 0.05)
    probabilities = np.asarray(probabilities, order=order)
    probabilities[:, 25] = probabilities[(shape[0] // 2, slice(None), 30)[: len(shape)]] = 0.15  # a cross joins many
    regions = lc.find_candidates(probabilities)
    sides = regions.bbox[:, len(shape) :] - regions.bbox[:, : len(shape)]
    assert np.prod(sides + 2, axis=1).max() > 1 << 15
    found = peaks_of(probabilities)
    assert_equal_to_oracle(found, probabilities, 2)


@settings(max_examples=100)
@given(small_maps, connectivities, st.integers(0, 2**32 - 1))
def test_masks_cut_the_tree(probabilities, neighbours, seed):
    mask = np.random.default_rng(seed).random(probabilities.shape) < 0.7
    assert_equal_to_oracle(peaks_of(probabilities, neighbours, mask=mask), probabilities, neighbours, mask)


@settings(max_examples=100)
@given(small_maps, connectivities, st.integers(1, 4), st.integers(0, 2), st.integers(0, 2**32 - 1), st.data())
def test_streams_of_any_slabs_give_the_same_peaks(probabilities, neighbours, pieces, axis, seed, data):
    axis %= probabilities.ndim
    enough, min_voxels = data.draw(st.sampled_from([2, 9])), data.draw(st.sampled_from([1, 3]))
    expected = peaks_of(probabilities, neighbours, min_voxels=min_voxels)
    plane = tuple(np.delete(probabilities.shape, axis))
    kept, peaks_module._ENOUGH_VOXELS = peaks_module._ENOUGH_VOXELS, enough  # few: complete regions are split early
    try:
        counter = lc.StreamingCounter(plane, probabilities.dtype, expected.protocol, axis=axis, keep_runs=True)
        for begin, end in pairwise(cuts(probabilities.shape[axis], np.random.default_rng(seed), pieces)):
            counter.push(probabilities[(slice(None),) * axis + (slice(begin, end),)])
            counter.result()  # more may follow
    finally:
        peaks_module._ENOUGH_VOXELS = kept
    assert_same(counter.result().candidates, expected)


@settings(max_examples=75)
@given(maps(ndims=(3,), max_side=6, long_sides=(17,)), connectivities, st.integers(1, 8), st.integers(1, 8))
def test_slabs_that_keep_their_voxels_add_in_any_order(probabilities, neighbours, first, second):
    n = probabilities.shape[0]
    first, second = sorted((first % n, second % n))
    protocol = lc.CountingProtocol(connectivity=NAMES[neighbours], candidates="peaks")
    plan = SweepPlan((0, 1, 2), probabilities.shape, encoding_of(probabilities.dtype, None, 0.0, False), protocol)
    a, b, c = (
        plan.sweep(probabilities[begin:end], None, begin) if begin < end else None
        for begin, end in ((0, first), (first, second), (second, n))
    )
    slabs = [slab for slab in (a, b, c) if slab is not None]
    sums = [(a + b) + c, a + (b + c)] if len(slabs) == 3 else [slabs[0] + slabs[1] if len(slabs) == 2 else slabs[0]]
    whole = split_into_peaks(plan.sweep(probabilities, None, 0), plan)
    for total in sums:
        found = split_into_peaks(total, plan)
        np.testing.assert_array_equal(found.table, whole.table)
        np.testing.assert_array_equal(found.runs, whole.runs)


@settings(max_examples=100)
@given(maps(max_side=6, dtypes=(np.float32, np.float64), long_sides=(17,)), st.sampled_from([0.05, 0.1, 0.5]))
def test_peaks_of_logits(probabilities, threshold):
    clipped = np.clip(probabilities.astype(np.float64), 0.02, 0.98)
    logits = np.log(clipped / (1 - clipped)).astype(probabilities.dtype)
    cut = probabilities.dtype.type(np.log(threshold / (1 - threshold)))
    found = peaks_of(logits, logits=True, threshold=threshold)
    rows = merge_tree.peaks(logits, cut, 2)
    assert [tuple(index) for index in found.peak_index.tolist()] == [peak for peak, _, _ in rows]
    saddles = [0.0 if saddle is None else 1 / (1 + np.exp(-np.float64(logits[saddle]))) for _, saddle, _ in rows]
    np.testing.assert_allclose(found.saddle_probability, saddles, rtol=1e-14)


@settings(max_examples=100)
@given(maps(max_side=6, dtypes=(np.float64,), long_sides=(17,)), st.sampled_from(["u1", "u2", "i4", "i8", ">u2"]))
def test_peaks_of_stored_integers(probabilities, dtype):
    largest = min(np.iinfo(dtype).max, 10**6)
    stored = np.round(probabilities * largest).astype(dtype)
    assert_equal_to_oracle(peaks_of(stored, scale=1 / largest), np.minimum(stored * (1 / largest), 1.0), 2)


def random_map(rng):
    """Small, of two or three axes, smooth or rough, with ties or without."""
    shape = rng.integers(1, 9, 2) if rng.random() < 0.5 else rng.integers(1, 6, 3)
    values = rng.random(shape)
    if rng.random() < 0.5:
        values = np.ceil(values * 6) / 8
    return np.where(rng.random(shape) < rng.choice([0, 0.3, 0.6]), 0.05, values)


def test_every_threshold_counts_the_peaks_that_are_above_it_and_have_not_joined(rng):
    for _ in range(1500):
        probabilities, neighbours = random_map(rng), int(rng.integers(1, 4))
        found = peaks_of(probabilities, neighbours, threads=int(rng.integers(1, 3)))
        for level, n in zip(
            *merge_tree.component_counts(probabilities, 0.1, min(neighbours, probabilities.ndim)), strict=True
        ):
            # With a step at the level as calibration, f(b) - f(d) is 1 for those, and the count that of components.
            assert np.count_nonzero((found.peak_probability > level) & (found.saddle_probability <= level)) == n


def test_expected_count_is_the_mean_of_the_component_count_over_all_thresholds(rng):
    for _ in range(1000):
        probabilities, neighbours = random_map(rng), int(rng.integers(1, 4))
        result = lc.LesionCount.of(peaks_of(probabilities, neighbours))
        found = result.candidates
        mean = sum(map(Fraction, found.peak_probability)) - sum(map(Fraction, found.saddle_probability))
        levels, counts = merge_tree.component_counts(probabilities, 0.1, min(neighbours, probabilities.ndim))
        steps = zip(pairwise(map(Fraction, levels)), counts, strict=False)
        assert mean == Fraction(0.1) * counts[0] + sum((above - below) * n for (below, above), n in steps)
        assert result.distribution.mean() == pytest.approx(float(mean), abs=1e-12)
        np.testing.assert_array_equal(result.existence, found.peak_probability - found.saddle_probability)


@pytest.mark.parametrize(("neighbours", "filtration"), [(1, "V"), (3, "T")])
def test_pairs_are_those_of_cripser(rng, neighbours, filtration):
    cripser = pytest.importorskip("cripser")
    for _ in range(700):
        probabilities = random_map(rng)
        as_3d = np.atleast_3d(-probabilities)  # of pictures one pixel wide, cripser joins nothing
        pairs = cripser.compute_ph(as_3d, maxdim=0, filtration=filtration)[:, 1:3]
        pairs = -pairs[-pairs[:, 0] > 0.1]
        expected = sorted((b, d if d > 0.1 else 0.0) for b, d in pairs.tolist())
        found = peaks_of(probabilities, neighbours)
        assert sorted(zip(found.peak_probability, found.saddle_probability, strict=True)) == expected


def persistences(candidates, threshold=0.1):
    """Above the threshold, from the largest on."""
    return np.sort(candidates.peak_probability - np.maximum(candidates.saddle_probability, threshold))[::-1]


def test_small_changes_of_the_map_change_persistences_by_twice_as_much_at_most(rng):
    for _ in range(500):
        probabilities, change = random_map(rng), float(rng.choice([0.001, 0.01, 0.1]))
        changed = np.clip(probabilities + rng.uniform(-change, change, probabilities.shape), 0, 1)
        before, after = peaks_of(probabilities), peaks_of(changed)
        n = max(len(before), len(after))
        one, other = (np.pad(persistences(found), (0, n - len(found))) for found in (before, after))
        assert np.abs(one - other).max(initial=0) <= 2 * change + 1e-12
        means = [lc.existence_probabilities(found).sum() for found in (before, after)]
        regions = [np.count_nonzero(found.saddle_probability == 0) for found in (before, after)]
        assert abs(means[0] - means[1]) <= 2 * change * n + 0.1 * abs(regions[0] - regions[1]) + 1e-9


def assert_labels_are_connected_and_hold_their_peaks(candidates, neighbours):
    labels, ndim = candidates.label_map(), len(candidates.shape)
    assert sorted(np.unique(labels[labels > 0])) == list(range(1, len(candidates) + 1))
    for row, peak in enumerate(candidates.peak_index.tolist()):
        assert labels[tuple(peak)] == row + 1
        assert plain.label((labels == row + 1).astype(float), 0.5, min(neighbours, ndim))[1] == 1
    np.testing.assert_array_equal(np.bincount(labels.ravel(), minlength=len(candidates) + 1)[1:], candidates.n_voxels)


@settings(max_examples=100)
@given(small_maps, connectivities, st.sampled_from([0.0, 0.05, 0.2]), st.sampled_from([1, 2, 4, 9]))
def test_labels_are_connected_and_share_out_the_regions(probabilities, neighbours, min_persistence, min_voxels):
    sizes = {"min_persistence": min_persistence, "min_voxels": min_voxels}
    found = peaks_of(probabilities, neighbours, **sizes)
    assert_labels_are_connected_and_hold_their_peaks(found, neighbours)
    protocol = lc.CountingProtocol(connectivity=NAMES[neighbours], min_voxels=min_voxels)
    regions = lc.find_candidates(probabilities, protocol=protocol)
    np.testing.assert_array_equal(found.label_map() > 0, regions.label_map() > 0)
    assert found.n_dropped == regions.n_dropped
    assert np.all(found.n_voxels >= min_voxels)
    persistence = found.peak_probability - found.saddle_probability
    assert np.all(persistence[found.saddle_probability > 0] >= min_persistence)
    # Each region keeps its highest peak, which has no saddle.
    highest = np.sort(found.peak_probability[found.saddle_probability == 0])
    np.testing.assert_array_equal(highest, np.sort(regions.peak_probability))


@settings(max_examples=75)
@given(small_maps, connectivities, st.sampled_from([0.05, 0.2]))
def test_ripples_are_left_out_and_nothing_else(probabilities, neighbours, least):
    everything, few = peaks_of(probabilities, neighbours), peaks_of(probabilities, neighbours, min_persistence=least)
    stays = (everything.saddle_probability == 0) | (
        everything.peak_probability - everything.saddle_probability >= least
    )
    for name in ("peak_index", "saddle_index"):
        expected = sorted(map(tuple, getattr(everything, name)[stays].tolist()))
        assert sorted(map(tuple, getattr(few, name).tolist())) == expected


@settings(max_examples=75)
@given(small_maps, connectivities, st.sampled_from([1, 3]))
def test_memory_order_changes_nothing_at_all(probabilities, neighbours, min_voxels):
    c_order, f_order = np.ascontiguousarray(probabilities), np.asfortranarray(probabilities)
    expected = peaks_of(c_order, neighbours, min_voxels=min_voxels)
    assert_same(peaks_of(f_order, neighbours, min_voxels=min_voxels), expected)
    assert_same(peaks_of(probabilities, neighbours, min_voxels=min_voxels, threads=2), expected)

"""The compiled sweep equals scipy.ndimage, voxel by voxel and column by column."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import plain
from strategies import NAMES, cuts, maps

import lesioncount as lc

pytestmark = pytest.mark.filterwarnings("ignore::lesioncount.errors.MapWarning")  # some random maps are hard maps


def assert_equal_to_oracle(candidates, probabilities, threshold, neighbours, mask=None):
    labels, n = plain.label(probabilities, threshold, neighbours, mask)
    assert len(candidates) == n
    np.testing.assert_array_equal(candidates.label_map(), labels)
    if n:
        for name, column in plain.table(probabilities, labels, n).items():
            if name == "centroid":
                np.testing.assert_allclose(candidates.centroid, column, rtol=1e-12)
            else:
                np.testing.assert_array_equal(getattr(candidates, name), column, err_msg=name)


@settings(max_examples=300)
@given(maps(), st.sampled_from([1, 2, 3]), st.sampled_from([1, 2, 3]))
def test_candidates_equal_labelled_regions(probabilities, neighbours, threads):
    protocol = lc.CountingProtocol(connectivity=NAMES[neighbours])
    candidates = lc.find_candidates(probabilities, protocol=protocol, threads=threads)
    assert_equal_to_oracle(candidates, probabilities, 0.1, min(neighbours, probabilities.ndim))


@settings(max_examples=200)
@given(maps(), st.sampled_from([1, 2, 3]), st.integers(0, 2**32 - 1))
def test_masked_candidates_equal_labelled_regions(probabilities, neighbours, seed):
    mask = np.random.default_rng(seed).random(probabilities.shape) < 0.6
    protocol = lc.CountingProtocol(connectivity=NAMES[neighbours])
    candidates = lc.find_candidates(probabilities, protocol=protocol, mask=mask)
    assert_equal_to_oracle(candidates, probabilities, 0.1, min(neighbours, probabilities.ndim), mask)


@settings(max_examples=300)
@given(maps(), st.sampled_from([1, 2, 3]), st.integers(1, 3), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_streamed_pieces_equal_labelled_regions(probabilities, neighbours, pieces, axis, seed):
    axis = axis % probabilities.ndim
    protocol = lc.CountingProtocol(connectivity=NAMES[neighbours])
    plane = tuple(np.delete(probabilities.shape, axis))
    counter = lc.StreamingCounter(plane, probabilities.dtype, protocol, axis=axis, keep_runs=True)
    edges = cuts(probabilities.shape[axis], np.random.default_rng(seed), pieces)
    for begin, end in pairwise(edges):
        counter.push(probabilities[(slice(None),) * axis + (slice(begin, end),)])
    assert_equal_to_oracle(counter.result().candidates, probabilities, 0.1, min(neighbours, probabilities.ndim))


@settings(max_examples=200)
@given(maps(dtypes=(np.float32,)), st.sampled_from([0.0, 0.05, 0.25, 0.5, 0.9]))
def test_any_threshold(probabilities, threshold):
    candidates = lc.find_candidates(probabilities, protocol=lc.CountingProtocol(threshold=threshold))
    assert_equal_to_oracle(candidates, probabilities, threshold, 2)


@settings(max_examples=200)
@given(maps(dtypes=(np.float32, np.float64, np.float16)), st.sampled_from([0.05, 0.1, 0.5, 0.8]))
def test_logits_count_as_their_sigmoid(probabilities, threshold):
    clipped = np.clip(probabilities.astype(np.float64), 0.02, 0.98)
    logits = np.log(clipped / (1 - clipped)).astype(probabilities.dtype)
    candidates = lc.find_candidates(logits, logits=True, protocol=lc.CountingProtocol(threshold=threshold))
    cut = probabilities.dtype.type(np.log(threshold / (1 - threshold)))
    labels, n = plain.label(logits, cut, 2)
    np.testing.assert_array_equal(candidates.label_map(), labels)
    sigmoid = 1 / (1 + np.exp(-logits.astype(np.float64)))
    if n:
        expected = plain.table(logits, labels, n)
        np.testing.assert_array_equal(candidates.peak_index, expected["peak_index"])
        peaks = [sigmoid[labels == k].max() for k in range(1, n + 1)]
        np.testing.assert_allclose(candidates.peak_probability, peaks, rtol=1e-14)


@settings(max_examples=200)
@given(maps(dtypes=(np.float64,)), st.sampled_from(["u1", "u2", "i2", "i4", "u4", "i8", ">u2", ">i2", ">f4", ">f8"]))
def test_stored_integers_and_other_byte_orders(probabilities, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        stored, scale = probabilities.astype(dtype), None
        meant = stored.astype(np.float64)
        threshold = float(dtype.newbyteorder("=").type(0.1))
    else:
        largest = min(np.iinfo(dtype).max, 10**6)
        stored, scale = np.round(probabilities * largest).astype(dtype), 1 / largest
        meant, threshold = stored * scale, 0.1
    candidates = lc.find_candidates(stored, scale=scale)
    assert_equal_to_oracle(candidates, np.minimum(meant, 1.0), threshold, 2)

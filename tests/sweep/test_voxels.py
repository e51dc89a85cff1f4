"""Keys grow with the probability, and say exactly what comparing probabilities would say."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lesioncount.candidates import find_candidates
from lesioncount.errors import BinaryMapWarning
from lesioncount.sweep.voxels import encoding_of

BASE, LOW, HIGH, _, _, ZERO, HALF, ONE = range(8)


def keys_of_integers(stored, base):
    """As LC_PLAIN in blocks.h: counted from the smallest valid value, in unsigned arithmetic of the same width."""
    unsigned = stored.view(f"u{stored.itemsize}")
    return (unsigned - unsigned.dtype.type(base)).astype(object)


@settings(max_examples=100)
@given(st.sampled_from(["u1", "i1", "u2", "i2"]), st.floats(1e-5, 2), st.floats(-0.9, 0.9), st.floats(1e-4, 0.999))
def test_integer_keys_decide_as_their_probabilities_do(dtype, scale, offset, threshold):
    limits = np.iinfo(dtype)
    stored = np.arange(limits.min, limits.max + 1).astype(dtype)
    encoding = encoding_of(np.dtype(dtype), scale, offset, False)
    assume(encoding.conversion is None)
    keys = encoding.kernel_keys(threshold)
    probability = stored.astype(np.float64) * scale + offset
    key = keys_of_integers(stored, keys[BASE])
    valid = (probability >= -1e-5) & (probability <= 1 + 1e-5)
    np.testing.assert_array_equal((key > keys[LOW]) & (key <= keys[HIGH]), valid & (probability > threshold))
    np.testing.assert_array_equal(key > keys[HIGH], ~valid)
    clear = valid & ((probability <= 0) | (probability > 1e-5))  # in between lies what may be rounding
    clear &= key < 2 ** (8 * stored.itemsize) - 1  # the last key stands for all above it
    assert max(keys) < 2 ** (8 * stored.itemsize)  # or the kernel, which has no more bits, would take it for another
    for end, limit in ((HALF, 0.5), (ONE, 1.0)):
        between = (key > keys[ZERO]) & (key < keys[end])
        np.testing.assert_array_equal(between[clear], (probability > 0)[clear] & (probability < limit)[clear])
    decoded = encoding.probability(key[valid].astype(np.uint64))
    np.testing.assert_allclose(decoded, np.minimum(probability[valid], 1), atol=1e-12)


def test_bytes_that_end_just_below_one_are_not_binary():
    stored = np.arange(256, dtype=np.uint8).reshape(16, 16)
    assert find_candidates(stored, scale=1 / 256, warn=False).warning is None
    assert isinstance(find_candidates(stored // 255 * 255, scale=1 / 256, warn=False).warning, BinaryMapWarning)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("scale", [None, 0.01, 1 / 255, 1e-6])
def test_float_keys_turn_back_into_probabilities(dtype, scale, rng):
    encoding = encoding_of(np.dtype(dtype), scale, 0.0, False)
    stored = np.minimum(rng.random(1000) / (scale or 1), float(np.finfo(dtype).max)).astype(dtype)
    keys = stored.view(f"u{stored.itemsize}").astype(np.uint64)
    np.testing.assert_allclose(
        encoding.probability(keys), np.minimum(stored.astype(float) * (scale or 1), 1), rtol=1e-12
    )
    infinite = np.array(np.inf, dtype).view(f"u{stored.itemsize}")
    assert infinite > encoding.kernel_keys(0.01)[HIGH]


def test_integers_with_an_intercept_are_read_as_they_are():
    full_range = encoding_of(np.dtype("i2"), 1 / 65535, 0.5, False)  # -32768 … 32767 stand for 0 … 1
    assert full_range.conversion is None
    keys = full_range.kernel_keys(0.1)
    assert keys[BASE] == 0x8000
    assert keys[LOW] == 6554  # (-32768 + 6554) / 65535 + 0.5 is just below 0.1


def test_other_encodings_are_converted():
    for dtype, scale, offset in (
        (">f4", None, 0.0),
        ("i8", 0.01, 0.0),
        ("u1", -0.01, 1.0),
        ("u1", 0.01, 0.5),
        ("g", None, 0.0),
    ):
        encoding = encoding_of(np.dtype(dtype), scale, offset, False)
        stored = (
            np.array([0, 1, 20]).astype(dtype) if np.dtype(dtype).kind in "iu" else np.array([0, 0.25, 1]).astype(dtype)
        )
        converted = encoding.convert(stored)
        assert converted.dtype.isnative
        assert encoding.converted().conversion is None
        np.testing.assert_allclose(converted.astype(float), stored.astype(float) * (scale or 1) + offset)

"""How a stored voxel encodes a probability: dtype, scale, logits → integers that grow with the probability.

The compiled sweep reads every map as unsigned integers, *keys*. The bits of floats that are not negative grow with the
value; integers are counted from the smallest valid one; logits are turned round. One comparison of keys then answers
"above the threshold?", and all that is not a probability (NaN, 1.5, -3) has a key above that of 1. No map is converted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapError, VoxelTypeError

# Softmax and sigmoid in single precision may end a few units in the last place outside [0, 1]; that much is taken as 0
# or 1. In half precision the next number after 1 is 1.001, so that there one unit in the last place is allowed.
ROUNDING = 1e-5

# An empty interval of keys: integers and logits have no values that rounding could push outside.
_NONE_BENIGN = (1, 0)


@dataclass(frozen=True)
class VoxelEncoding:
    """probability = stored · scale + offset, or the sigmoid of what is stored."""

    dtype: np.dtype[Any]
    scale: float = 1.0
    offset: float = 0.0
    logits: bool = False

    @cached_property
    def conversion(self) -> np.dtype[Any] | None:
        """The dtype that voxels must be converted to before the sweep, or None when it reads them as they are."""
        simple = self.dtype.isnative and self.scale > 0
        if self.dtype.kind == "b" and (self.scale, self.offset) == (1, 0):
            return None
        if self.dtype.kind == "f" and self.dtype.itemsize in (2, 4, 8) and simple and self.offset == 0:
            return None
        if self.dtype.kind in "iu" and self.dtype.itemsize < 8 and simple:
            first, _ = _integer_range(self)
            if abs(first * self.scale + self.offset) <= ROUNDING:  # there must be a key for a probability of 0
                return None
        if self.dtype.kind == "f" and self.dtype.itemsize <= 8 and self.scale == 1 and self.offset == 0:
            return self.dtype.newbyteorder("=")
        return np.dtype(np.float64)

    def converted(self) -> VoxelEncoding:
        """The encoding of what `convert` makes."""
        return self if self.conversion is None else VoxelEncoding(self.conversion, logits=self.logits)

    def convert(self, voxels: NDArray[Any]) -> NDArray[Any]:
        """A copy that the sweep can read."""
        converted: NDArray[Any] = voxels.astype(self.conversion or self.dtype)  # aligned, in any case
        if self.conversion is not None and (self.scale, self.offset) != (1, 0):
            converted = converted * self.scale + self.offset
        return converted

    def kernel_keys(self, threshold: float) -> tuple[int, ...]:
        """What the sweep must know of the keys, in the order of ``lc_keys`` in ``_kernels/blocks.h``."""
        return _kernel_keys(self, threshold)

    def probability(self, keys: NDArray[np.uint64]) -> NDArray[np.float64]:
        """The probabilities that keys stand for."""
        bits = self.dtype.itemsize * 8
        unsigned = np.dtype(f"u{self.dtype.itemsize}")
        if self.dtype.kind == "f" and not self.logits:
            stored: NDArray[Any] = keys.astype(unsigned).view(self.dtype)
        elif self.logits:
            ordered = keys.astype(unsigned) + unsigned.type(_smallest_key_of_logits(self.dtype))
            sign = unsigned.type(1 << (bits - 1))
            stored = np.where(ordered >= sign, ordered ^ sign, ~ordered).view(self.dtype)
            return sigmoid(stored.astype(np.float64))
        else:
            base, _ = _integer_range(self)
            stored = keys.astype(np.int64) + base
        return np.minimum(stored.astype(np.float64) * self.scale + self.offset, 1.0)


def encoding_of(dtype: np.dtype[Any], scale: float | None, offset: float, logits: bool) -> VoxelEncoding:
    """The encoding of an array, checked."""
    if dtype.kind not in "biuf":
        if "float" in dtype.name:  # bfloat16 and others of a few bits, which numpy has only by other packages
            raise VoxelTypeError(
                f"Expected a map of real numbers that numpy knows, but its dtype is {dtype}. Pass "
                "probabilities.astype(numpy.float32)."
            )
        raise VoxelTypeError(
            f"Expected a map of real numbers, but its dtype is {dtype}. Probabilities may be float16, float32 or "
            "float64, integers with scale=, or bool."
        )
    if scale is not None and not _is_scale(scale):
        raise MapError(f"Expected scale to be a finite number other than 0, but got {scale!r}.")
    if not isinstance(logits, bool | np.bool_):
        raise MapError(f"Expected logits to be True or False, but got {type(logits).__name__}.")
    if not _is_finite(offset):
        raise MapError(f"Expected offset to be a finite number, but got {offset!r}.")
    if logits and dtype.kind != "f":
        raise VoxelTypeError(f"Expected logits to be floating point, but their dtype is {dtype}.")
    if logits and scale is not None:
        raise MapError("logits=True and scale= exclude each other: a logit has no scale. Multiply the logits first.")
    return VoxelEncoding(dtype, 1.0 if scale is None else float(scale), float(offset), bool(logits))


def _is_scale(value: object) -> bool:
    return _is_finite(value) and value != 0


def _is_finite(value: object) -> bool:
    try:
        return isinstance(value, Real) and math.isfinite(value)
    except OverflowError:  # integers of 400 digits
        return False


@lru_cache(maxsize=256)
def _kernel_keys(encoding: VoxelEncoding, threshold: float) -> tuple[int, ...]:
    if encoding.logits:
        return _keys_of_logits(encoding.dtype, threshold)
    if encoding.dtype.kind == "f":
        return _keys_of_floats(encoding.dtype, encoding.scale, threshold)
    return _keys_of_integers(encoding, threshold)


def _keys_of_floats(dtype: np.dtype[Any], scale: float, threshold: float) -> tuple[int, ...]:
    limits = np.finfo(dtype)
    tolerance = max(ROUNDING, float(limits.eps))

    def key(probability: float) -> int:
        return _bits(dtype.type(max(float(limits.min), min(probability / scale, float(limits.max)))))

    low = key(threshold)
    if scale != 1:  # the division may have rounded the other way than the multiplication would
        low += _value(dtype, low + 1) * scale <= threshold
        low -= _value(dtype, low) * scale > threshold
    # A threshold that rounds to 1 must still let 1 through.
    low = max(0, min(low, key(1.0) - 1))  # of a scale beyond all bounds, even 1 is a 0
    return (0, low, key(1 + tolerance), key(-0.0), key(-tolerance), 0, key(0.5), key(1.0))


def _keys_of_logits(dtype: np.dtype[Any], threshold: float) -> tuple[int, ...]:
    base = _smallest_key_of_logits(dtype)
    largest = _ordered(np.finfo(dtype).max) - base
    low = _ordered(dtype.type(math.log(threshold / (1 - threshold)))) - base if threshold > 0 else 0
    return (base, low, largest, *_NONE_BENIGN, 0, _ordered(dtype.type(0)) - base, largest)


def _keys_of_integers(encoding: VoxelEncoding, threshold: float) -> tuple[int, ...]:
    base, last = _integer_range(encoding)

    def last_at_most(probability: float) -> int:
        """The largest key whose probability is not above this one."""
        stored = math.floor(max(base - 1, min((probability - encoding.offset) / encoding.scale, last)))
        while stored >= base and stored * encoding.scale + encoding.offset > probability:
            stored -= 1
        while stored < last and (stored + 1) * encoding.scale + encoding.offset <= probability:
            stored += 1
        return max(0, min(stored, last) - base)

    n_keys = 1 << 8 * encoding.dtype.itemsize

    def first_at_least(probability: float) -> int:
        # Bytes of 1/256 have none at 1. The kernel has keys of the same width: beyond the last one it would see 0.
        return min(last_at_most(math.nextafter(probability, -1)) + 1, n_keys - 1)

    wrapped = base % n_keys
    return (
        wrapped, last_at_most(threshold), last_at_most(1 + ROUNDING), *_NONE_BENIGN, last_at_most(0.0),
        first_at_least(0.5), first_at_least(1.0),
    )  # fmt: skip


@lru_cache(maxsize=64)
def _integer_range(encoding: VoxelEncoding) -> tuple[int, int]:
    """The stored integer of key 0, whose probability is the first that is not negative, and the largest there is."""
    if encoding.dtype.kind == "b":
        return 0, 1
    limits = np.iinfo(encoding.dtype)
    first = max(int(limits.min), min((-ROUNDING - encoding.offset) / encoding.scale, int(limits.max)))
    return math.ceil(first), int(limits.max)


def _value(dtype: np.dtype[Any], bits: int) -> float:
    return float(np.array(bits, dtype=f"u{dtype.itemsize}").view(dtype))


def _bits(value: np.floating[Any]) -> int:
    return int(np.asarray(value).view(f"u{value.dtype.itemsize}"))


def _ordered(value: np.floating[Any]) -> int:
    """The bits of a float, turned so that they grow with the value through negative numbers too."""
    bits, sign = _bits(value), 1 << (8 * value.dtype.itemsize - 1)
    return bits | sign if bits < sign else bits ^ (2 * sign - 1)


def _smallest_key_of_logits(dtype: np.dtype[Any]) -> int:
    return _ordered(np.finfo(dtype).min)


def is_inside(mask: NDArray[Any], *, within: float = 0.0) -> NDArray[np.bool_]:
    """Where a mask is set: what is neither 0, up to ``within``, nor NaN is inside. The one reading of masks."""
    if mask.dtype.kind == "b":
        return mask
    inside: NDArray[np.bool_] = mask != 0 if within == 0 else np.abs(mask) > within  # NaN is above nothing
    return inside if within or mask.dtype.kind != "f" else inside & ~np.isnan(mask)


def sigmoid(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probabilities of logits."""
    # Written for both signs, so that exp never overflows and small probabilities keep their digits.
    small = np.exp(-np.abs(logits))
    return np.where(logits >= 0, 1.0, small) / (1.0 + small)

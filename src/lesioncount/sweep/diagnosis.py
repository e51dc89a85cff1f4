"""A map that failed → an error that says what was expected, what came, and what to do."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import NonFiniteError, ProbabilityRangeError
from lesioncount.sweep.voxels import VoxelEncoding

# Splines overshoot by less than this; logits go further.
_OVERSHOOT = 0.5

# Integers up to here are rather labels than percent.
_MANY_LABELS = 20

# Probabilities are stored as percent, or as large as the integer allows.
_USUAL_SCALES = {100: "0.01", 255: "1/255", 32767: "1/32767", 65535: "1/65535"}


def explain_bad_voxels(
    voxels: NDArray[Any], mask: NDArray[np.bool_] | None, encoding: VoxelEncoding, start: tuple[int, ...]
) -> NoReturn:
    """Raise the error that describes the voxels of a map which are not probabilities.

    Parameters
    ----------
    start : tuple of int
        The index of the first of ``voxels`` in the whole map.
    """
    n_bad, low, high = 0, np.inf, -np.inf
    first: tuple[int, ...] | None = None
    for plane in range(voxels.shape[0]):  # plane by plane: a map may be larger than memory
        finite = np.isfinite(voxels[plane])
        inside = np.ones_like(finite) if mask is None else mask[plane]
        bad = inside & ~finite
        if first is None and bad.any():
            first = (plane, *map(int, np.unravel_index(int(np.argmax(bad)), bad.shape)))
        n_bad += int(np.count_nonzero(bad))
        values = voxels[plane][inside & finite]
        if values.size:
            low, high = min(low, float(values.min())), max(high, float(values.max()))
    if first is not None:
        where = tuple(i + offset for i, offset in zip(first, start, strict=True))
        instead = "a large negative number such as -30" if encoding.logits else "0"
        raise NonFiniteError(
            f"Expected finite voxels, but {n_bad} {'is' if n_bad == 1 else 'are'} NaN or infinite, the first at index "
            f"{where}. Set them to {instead}, or leave them out with mask= (CLI: --mask)."
        )
    low, high = sorted(value * encoding.scale + encoding.offset for value in (low, high))
    raise ProbabilityRangeError(
        f"Expected probabilities in [0, 1], but values span [{low:.6g}, {high:.6g}]. {_advice(low, high, encoding)}"
    )


def _advice(low: float, high: float, encoding: VoxelEncoding) -> str:
    is_float = encoding.dtype.kind == "f"
    if (encoding.scale, encoding.offset) != (1, 0):
        return f"They were computed with scale={encoding.scale:g}: is it the right one?"
    if is_float and low >= -_OVERSHOOT and high <= 1 + _OVERSHOOT:
        return "If they overshoot because the map was interpolated, clip them first: numpy.clip(probabilities, 0, 1)."
    if low < 0:
        return "If these are logits, pass logits=True (CLI: --logits)." if is_float else "Is this a probability map?"
    if not is_float and high <= _MANY_LABELS:
        return "If this is a map of labels, count one of them: labels == 1. It has no probabilities in it."
    for one, scale in _USUAL_SCALES.items():
        if high <= one:
            return f"If {one} stands for a probability of 1, pass scale={scale} (CLI: --scale {scale})."
    return "Pass the scale= that takes them to [0, 1] (CLI: --scale)."

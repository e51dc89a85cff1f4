"""A map that failed → an error that says what was expected, what came, and what to do."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import NonFiniteError, ProbabilityRangeError
from lesioncount.voxels import VoxelEncoding


def explain_bad_voxels(
    voxels: NDArray[Any],
    mask: NDArray[np.bool_] | None,
    encoding: VoxelEncoding,
    original: VoxelEncoding,
    start: tuple[int, ...],
) -> NoReturn:
    """Raise the error that describes the voxels of a map which are not probabilities.

    Parameters
    ----------
    encoding, original : VoxelEncoding
        Of ``voxels``, and of the map as the caller gave it.
    start : tuple of int
        The index of the first of ``voxels`` in the whole map.
    """
    n_bad, first, low, high = 0, None, np.inf, -np.inf
    for plane in range(voxels.shape[0]):  # plane by plane: a map may be larger than memory
        inside = True if mask is None else mask[plane]
        finite = np.isfinite(voxels[plane]) | ~np.asarray(inside)
        bad = int(finite.size - np.count_nonzero(finite))
        if bad and first is None:
            first = (plane, *np.unravel_index(int(np.argmin(finite)), finite.shape))
        n_bad += bad
        low = min(low, float(np.min(voxels[plane], initial=np.inf, where=inside & finite)))
        high = max(high, float(np.max(voxels[plane], initial=-np.inf, where=inside & finite)))
    if first is not None:
        where = tuple(int(i + offset) for i, offset in zip(first, start))
        raise NonFiniteError(
            f"Expected finite voxels, but {n_bad} {'is' if n_bad == 1 else 'are'} NaN or infinite, the first at index {where}. "
            "Set them to 0, or leave them out with mask= (CLI: --mask)."
        )
    low, high = (value * encoding.scale + encoding.offset for value in (low, high))
    raise ProbabilityRangeError(
        f"Expected probabilities in [0, 1], but values span [{low:.6g}, {high:.6g}]. {_advice(low, high, original)}"
    )


def _advice(low: float, high: float, encoding: VoxelEncoding) -> str:
    if (encoding.scale, encoding.offset) != (1, 0):
        return f"They were computed with scale={encoding.scale:g}: is it the right one?"
    if encoding.dtype.kind == "f" and low >= -0.5 and high <= 1.5:
        return "If they overshoot because the map was interpolated, clip them first: numpy.clip(probabilities, 0, 1)."
    if encoding.dtype.kind == "f" and low < 0:
        return "If these are logits, pass logits=True (CLI: --logits)."
    if low < 0:
        return "Negative integers cannot be probabilities."
    if high <= 100:
        return "If these are percent, pass scale=0.01 (CLI: --scale 0.01)."
    if high <= 255:
        return "If 255 stands for 1, pass scale=1/255 (CLI: --scale 1/255)."
    if high <= 65535:
        return "If 65535 stands for 1, pass scale=1/65535 (CLI: --scale 1/65535)."
    return "Pass the scale that maps them to [0, 1] (CLI: --scale)."

"""One row of the candidates of a map."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Candidate:
    """One candidate: what ``candidates[i]`` gives, and iteration over `Candidates`.

    Attributes
    ----------
    label : int
        Its number in the label map, from 1.
    existence : float
        The probability that it is a lesion: the height of its peak, less that of its saddle.
    peak_probability, saddle_probability : float
        Of the highest voxel, and of the one at which a peak joins a higher one; 0 where it does not.
    peak_index : tuple of int
        Where the highest voxel is.
    saddle_index : tuple of int, or None
        Where the saddle is; None where there is none.
    n_voxels : int
    volume_mm3, equivalent_diameter_mm : float
        NaN when the voxel size is unknown.
    centroid : tuple of float
        Mean index of the voxels.
    bbox : tuple of int
        First index along each axis, then last index plus one.

    Examples
    --------
    >>> from lesioncount import find_candidates
    >>> first = find_candidates([[0.5, 0.75, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.25]])[0]
    >>> first.existence, first.n_voxels, first.peak_index, first.slices
    (0.75, 2, (0, 1), (slice(0, 1, None), slice(0, 2, None)))
    """

    label: int
    existence: float
    peak_probability: float
    saddle_probability: float
    peak_index: tuple[int, ...]
    saddle_index: tuple[int, ...] | None
    n_voxels: int
    volume_mm3: float
    equivalent_diameter_mm: float
    centroid: tuple[float, ...]
    bbox: tuple[int, ...]

    @property
    def slices(self) -> tuple[slice, ...]:
        """The bounding box as an index: ``probabilities[candidate.slices]``."""
        n = len(self.bbox) // 2
        return tuple(slice(first, end) for first, end in zip(self.bbox[:n], self.bbox[n:], strict=True))

    def to_dict(self) -> dict[str, Any]:
        """As plain values, which JSON has all of: None for a size that is unknown."""
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in asdict(self).items()
        }

"""What everyone does today: binarise the map, count the connected components."""

from __future__ import annotations

import warnings

from numpy.typing import ArrayLike

from lesioncount.candidates import find_candidates
from lesioncount.errors import MapWarning
from lesioncount.protocol import CountingProtocol


def connected_component_count(
    probabilities: ArrayLike,
    /,
    *,
    threshold: float = 0.5,
    connectivity: int | str = "edges",
    min_voxels: int = 1,
    min_volume_mm3: float = 0.0,
    min_diameter_mm: float = 0.0,
    mask: ArrayLike | None = None,
    spacing_mm: ArrayLike | None = None,
    scale: float | None = None,
    logits: bool = False,
    threads: int = 1,
) -> int:
    """The number of connected components above a threshold: the baseline of the paper.

    One number, which depends on the threshold and does not say how sure it is. The parameters are those of
    `CountingProtocol` and `count_lesions`.

    Examples
    --------
    >>> probabilities = [[0.9, 0.0, 0.55], [0.0, 0.0, 0.0], [0.3, 0.0, 0.0]]
    >>> [connected_component_count(probabilities, threshold=t) for t in (0.2, 0.5, 0.6)]
    [3, 2, 1]
    """
    protocol = CountingProtocol(threshold, connectivity, min_voxels, min_volume_mm3, min_diameter_mm)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MapWarning)  # counting the components of a binary map is what this is for
        return len(
            find_candidates(
                probabilities, protocol=protocol, mask=mask, spacing_mm=spacing_mm, scale=scale, logits=logits, threads=threads
            )
        )

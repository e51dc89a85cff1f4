"""What everyone does today: binarise the map, count the connected components."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from lesioncount.candidates import find_candidates
from lesioncount.checks import defined
from lesioncount.protocol import ComponentFields, CountingProtocol


def connected_component_count(
    probabilities: ArrayLike,
    /,
    *,
    threshold: float = 0.5,
    protocol: CountingProtocol | str | None = None,
    mask: ArrayLike | None = None,
    spacing_mm: ArrayLike | None = None,
    scale: float | None = None,
    logits: bool = False,
    threads: int = 1,
    **definition: Unpack[ComponentFields],
) -> int:
    """The number of connected components above a threshold: the baseline of the paper.

    One number, which depends on the threshold and does not say how sure it is.

    Parameters
    ----------
    threshold : float, default 0.5
        Takes the place of the protocol's.
    protocol : CountingProtocol, optional
        Connectivity and smallest size. Default: those of the paper.
    probabilities, mask, spacing_mm, scale, logits, threads
        As in `count_lesions`.
    **definition
        Fields of `CountingProtocol`, such as ``connectivity=26``, in place of those of the protocol.

    Examples
    --------
    >>> probabilities = [[0.9, 0.0, 0.55], [0.0, 0.0, 0.0], [0.3, 0.0, 0.0]]
    >>> [connected_component_count(probabilities, threshold=t) for t in (0.2, 0.5, 0.6)]
    [3, 2, 1]
    """
    candidates = find_candidates(
        probabilities,
        protocol=defined(protocol, definition, connected_component_count).components_above(threshold),
        mask=mask,
        spacing_mm=spacing_mm,
        scale=scale,
        logits=logits,
        threads=threads,
        warn=False,  # counting the components of a binary map is what this is for
    )
    return len(candidates)

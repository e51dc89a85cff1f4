"""A lesion now, and something there at the other time → the probability that it is new, or gone."""

from __future__ import annotations

from typing import Any

import numpy as np

# How far the doubt about a place is the same at both times: 1, because networks doubt the same places again.
# docs/over_time.md has the measurements.
DEFAULT_COUPLING = 1.0


def only_now(peaks: Any, saddles: Any, others: Any, coupling: float) -> Any:
    """The probability that each candidate is a lesion, and that nothing was there at the other time.

    Parameters
    ----------
    peaks, saddles : array_like of float
        Heights of candidates; 0 for those without a saddle. The difference is the probability that it is a lesion.
    others : array_like of float
        The probability that something was there at the other time.
    coupling : float
        From 0, the two are independent, to 1, the doubt is the same.

    Notes
    -----
    With b, d and u for the three, a lesion that is there now with e = b - d was not there at the other time with::

        e (1 - u)                if the two are independent
        max(0, b - max(d, u))    if the doubt is the same: one number in [0, 1], drawn once, decides about both

    The second is the persistence of a peak, with the other time in the place of a saddle: what a lower threshold would
    find at both times is one lesion. Between them, the coupling is the share of places that are of the second kind.

    Examples
    --------
    A lesion that both maps are sure of, one that is new, and one that both maps doubt:

    >>> only_now(np.array([0.95, 0.9, 0.5]), 0.0, np.array([0.95, 0.02, 0.5]), 1.0)
    array([0.  , 0.88, 0.  ])
    >>> only_now(np.array([0.95, 0.9, 0.5]), 0.0, np.array([0.95, 0.02, 0.5]), 0.0)
    array([0.0475, 0.882 , 0.25  ])
    """
    independent = (peaks - saddles) * (1 - others)
    if coupling == 0:
        return independent
    same_doubt = np.maximum(peaks - np.maximum(saddles, others), 0.0)
    return same_doubt if coupling == 1 else independent + coupling * (same_doubt - independent)

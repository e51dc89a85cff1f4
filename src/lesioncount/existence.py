"""Step 2: candidates → existence probabilities, one for each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lesioncount.candidates import Candidates


def existence_probabilities(candidates: Candidates, /) -> NDArray[np.float64]:
    """The probability that each candidate is a lesion: that of its most probable voxel, less that of its saddle.

    Parameters
    ----------
    candidates : Candidates

    Returns
    -------
    ndarray of float64, shape (len(candidates),)
        In the order of the candidates.

    Notes
    -----
    Section 3.1.2 of the paper. If a voxel belongs to a lesion, its candidate holds one, so that by Bayes' theorem
    p(V_i = 1) = p(V_i = 1 | R_k = 1) p(R_k = 1). The first factor is close to 1 for the voxel at the heart of the
    candidate, if there is a lesion at all, which leaves::

        p(R_k = 1) = max over i in R_k of p(V_i = 1)

    Of peaks (``candidates="peaks"``), this is the height b of the peak. At the saddle, of height d, it touches a higher
    one. If the bridge there belongs to the lesion of the peak, there is one, so that p(bridge | peak) = d / b, and the
    peak is a lesion of its own with the probability b (1 - d / b) = b - d, its persistence.

    Examples
    --------
    >>> from lesioncount import find_candidates
    >>> existence_probabilities(find_candidates([[0.5, 0.75, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.25]]))
    array([0.75, 0.25])
    """
    if not candidates.protocol.has_peaks:
        return candidates.peak_probability
    return candidates.peak_probability - candidates.saddle_probability

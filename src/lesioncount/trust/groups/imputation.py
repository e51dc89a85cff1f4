"""Distributions of counts → several complete data sets, for any analysis of plain counts (Rubin 1987)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ScoreError
from lesioncount.trust.groups.totals import ByMember

N_IMPUTATIONS = 20


def drawn_counts(
    counts: Sequence[ByMember], /, *, n_imputations: int = N_IMPUTATIONS, seed: int = 0
) -> NDArray[np.int64]:
    """Counts that may be the true ones: several complete data sets, shape (n_imputations, scans).

    Parameters
    ----------
    counts : sequence of (sequence of CountDistribution)
        Of each scan, its count by each member of an ensemble; one where there is one map.
    n_imputations : int, default 20
        Two or more: how far they differ is how much doubt there is.
    seed : int, default 0

    Notes
    -----
    Each data set is drawn by itself. In one data set, all counts are by the same member of an ensemble: what members
    disagree about is wrong in all scans at once.

    Examples
    --------
    >>> from lesioncount import PoissonBinomial
    >>> drawn_counts([[PoissonBinomial([1.0, 0.5])], [PoissonBinomial([1.0])]], n_imputations=3)
    array([[2, 1],
           [1, 1],
           [1, 1]])
    """
    if n_imputations < 2:
        raise ScoreError(f"Expected at least 2 imputations, but got {n_imputations}: one does not show any doubt.")
    rng = np.random.default_rng(seed)
    n_members = max((len(by_member) for by_member in counts), default=1)
    member = rng.integers(n_members, size=n_imputations)
    drawn = np.empty((n_imputations, len(counts)), dtype=np.int64)
    for scan, by_member in enumerate(counts):
        every = np.array([one.rvs(n_imputations, random_state=rng) for one in by_member])
        drawn[:, scan] = every[member, np.arange(n_imputations)]
    return drawn

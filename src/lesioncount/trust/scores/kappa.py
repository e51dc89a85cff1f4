"""Two people who say yes or no to the same things: how often they agree, and how much of that is not by chance."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.trust.scores.bootstrap import interval_of, resampled_weights
from lesioncount.trust.scores.classification import ratio
from lesioncount.trust.scores.estimate import Estimate


def kappa(tables: ArrayLike, /) -> NDArray[np.float64]:
    """Cohen's kappa: 1 where two readers always agree, 0 where they agree as often as by chance.

    Parameters
    ----------
    tables : array_like, shape (..., 2, 2)
        How often the first said no or yes (rows), and the second (columns).

    Returns
    -------
    array of float, shape (...)
        NaN where both always say the same one answer: by chance they would, too.

    Notes
    -----
    Cohen, Educational and Psychological Measurement 20 (1960) 37. With shares p_ij, and r_i and c_j of each alone::

        κ = (p_o - p_e) / (1 - p_e),   p_o = Σ p_ii,   p_e = Σ r_i c_i

    Examples
    --------
    >>> float(kappa([[20, 5], [10, 15]]).round(4))
    0.4
    """
    counts = np.asarray(tables, dtype=np.float64)
    n = counts.sum(axis=(-2, -1))
    observed = ratio(np.trace(counts, axis1=-2, axis2=-1), n)
    by_chance = ratio((counts.sum(axis=-1) * counts.sum(axis=-2)).sum(axis=-1), n**2)
    return np.asarray(ratio(observed - by_chance, 1 - by_chance))


def agreement_on_yes(tables: ArrayLike, /) -> NDArray[np.float64]:
    """How often one says yes when the other does: unlike kappa, it does not depend on how many are easy to deny.

    Notes
    -----
    2 n_yes,yes / (2 n_yes,yes + n_yes,no + n_no,yes): Dice's coefficient of what the two accept.
    """
    counts = np.asarray(tables, dtype=np.float64)
    both, apart = 2 * counts[..., 1, 1], counts[..., 0, 1] + counts[..., 1, 0]
    return np.asarray(ratio(both, both + apart))


def agreement_of_answers(
    tables: ArrayLike, groups: Sequence[Hashable], /, *, seed: int = 0
) -> tuple[Estimate, Estimate, Estimate]:
    """Share of equal answers, `kappa` and `agreement_on_yes`, with intervals over scans, or over groups of them.

    Parameters
    ----------
    tables : array_like, shape (n, 2, 2)
        One for each scan.
    groups : sequence of hashable
        The patient of each.
    seed : int, default 0
        Of the resamples.
    """
    each = np.asarray(tables, dtype=np.float64)
    drawn = [np.einsum("sn,nij->sij", weights, each) for weights in resampled_weights(groups, seed=seed)]
    resamples, whole = np.concatenate(drawn), each.sum(axis=0)
    measures = (_share_of_equal, kappa, agreement_on_yes)
    share, beyond_chance, on_yes = (
        Estimate(float(measure(whole)), *interval_of(np.asarray(measure(resamples)))) for measure in measures
    )
    return share, beyond_chance, on_yes


def _share_of_equal(tables: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(ratio(np.trace(tables, axis1=-2, axis2=-1), tables.sum(axis=(-2, -1))))

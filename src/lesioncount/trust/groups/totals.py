"""Counts of single scans → the total of a group: what is in doubt about these very scans, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.mixture import MixtureOfCounts
from lesioncount.distributions.sum_of_counts import SumOfCounts

# The count of a scan by each member of an ensemble; by one map, there is one.
ByMember = Sequence[CountDistribution]


def total_count(counts: Sequence[ByMember], /) -> CountDistribution:
    """The number of lesions in some scans together.

    Parameters
    ----------
    counts : sequence of (sequence of CountDistribution)
        Of each scan, its count by each member of an ensemble; one where there is one map.

    Notes
    -----
    By one map, counts of different scans are independent, and their total is a sum. Members of an ensemble err in the
    same way in all scans: each has a total of its own, and the total is the mixture of those.

    Examples
    --------
    >>> from lesioncount import PoissonBinomial
    >>> total_count([[PoissonBinomial([0.5])], [PoissonBinomial([0.5, 1.0])]]).pmf()
    array([0.  , 0.25, 0.5 , 0.25])
    """
    totals = [SumOfCounts(of_member) for of_member in zip(*counts, strict=True)]
    return totals[0] if len(totals) == 1 else MixtureOfCounts(totals)

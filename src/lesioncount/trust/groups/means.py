"""Counts of a group → its total, and its mean with an interval of both sources of variance."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.mixture import MixtureOfCounts
from lesioncount.distributions.sum_of_counts import SumOfCounts
from lesioncount.errors import ScoreError
from lesioncount.trust.groups.student import student_reach
from lesioncount.trust.scores.bootstrap import CONFIDENCE
from lesioncount.trust.scores.estimate import Estimate

# An interval from a thousandth of the mean to a thousand times the mean says nothing, and is not given.
_SAYS_NOTHING = math.log(1000)


@dataclass(frozen=True)
class GroupMean:
    """The mean of a group, and where its variance comes from.

    Attributes
    ----------
    estimate : Estimate
        The mean with its 95 % interval; without one where there is one patient, or nothing to count.
    between_variance : float
        Variance of the mean because patients differ; NaN for one patient.
    doubt_variance : float
        Variance of the mean because counts are in doubt.
    """

    estimate: Estimate
    between_variance: float
    doubt_variance: float

    @property
    def doubt_share(self) -> float:
        """How much of the variance is doubt about counts, from 0 to 1; NaN where the variance is not known, or 0."""
        whole = self.between_variance + self.doubt_variance
        return self.doubt_variance / whole if whole > 0 else math.nan


@dataclass(frozen=True, eq=False)
class CountMoments:
    """Means and variances of the counts of some scans, each of shape (members, scans)."""

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]

    @classmethod
    def of(cls, counts: Sequence[ByMember], /) -> CountMoments:
        """Of scans with the count of each by each member of an ensemble, or by one map."""
        by_member = list(zip(*counts, strict=True))
        mean = [[one.mean() for one in scans] for scans in by_member]
        return cls(np.array(mean), np.array([[one.var() for one in scans] for scans in by_member]))

    @property
    def total_variance(self) -> float:
        """Of the total: what members doubt scan by scan, and what they disagree about in all scans at once."""
        return float(self.variance.sum(axis=1).mean() + self.mean.sum(axis=1).var())


def group_mean(
    counts: Sequence[ByMember], patients: Sequence[Hashable], units: ArrayLike | None = None, /
) -> GroupMean:
    """The mean number of lesions in a group.

    Parameters
    ----------
    counts : sequence of (sequence of CountDistribution)
        Of each scan, its count by each member of an ensemble; one where there is one map.
    patients : sequence
        Whose scan each is. Scans of one patient resemble each other, so patients are what is sampled.
    units : array_like of float, optional
        What the mean is per: of each scan, 1 (the default: a mean per scan), or the years that it is the follow-up of,
        or 1 for the first scan of a patient and 0 for the others (a mean per patient).

    Notes
    -----
    With expected counts summed to E_i and units to u_i for each of n patients, and V the variance of the total::

        mean      r = Σ E_i / Σ u_i
        between   n / (n - 1) · Σ (E_i - r · u_i)² / (Σ u_i)²      patients differ
        doubt     V / (Σ u_i)²                                     counts are uncertain
        interval  exp(log r ± t · √(between + doubt) / r)          t of Student, n - 1 degrees of freedom

    By the law of total variance, the sum is the variance that the mean of the *true* counts has, if distributions are
    honest. So the interval is as wide as if each scan had been counted without doubt, or wider: it does not take the
    smoothness of expected counts for a sign that patients are alike. What all scans share is in it as far as members of
    an ensemble disagree. The logarithm keeps it above 0, and right for the skewed counts that lesions have.

    Examples
    --------
    >>> from lesioncount import PoissonBinomial
    >>> scans = [[PoissonBinomial([0.9, 0.5])], [PoissonBinomial([0.8])], [PoissonBinomial([1.0] * 4)]]
    >>> mean = group_mean(scans, ["anna", "ben", "carl"])
    >>> round(mean.estimate.value, 3), round(mean.doubt_share, 3)
    (2.067, 0.054)
    """
    per = np.ones(len(counts)) if units is None else np.asarray(units, dtype=np.float64)
    if len(counts) == 0 or len(patients) != len(counts) or per.shape != (len(counts),) or not per.sum() > 0:
        raise ScoreError("Expected a patient and a unit of at least 0 for each of one or more scans.")
    moments = CountMoments.of(counts)
    whose = patient_codes(patients)
    expected, whole = np.bincount(whose, moments.mean.mean(axis=0)), np.bincount(whose, per)
    rate, n = float(expected.sum() / whole.sum()), len(whole)
    off = float(np.sum((expected - rate * whole) ** 2)) / float(whole.sum()) ** 2
    between = off * n / (n - 1) if n > 1 else math.nan
    doubt = moments.total_variance / float(whole.sum()) ** 2
    return GroupMean(_with_interval(rate, between + doubt, n - 1), between, doubt)


def share_with_any(counts: Sequence[ByMember], patients: Sequence[Hashable], /) -> Estimate:
    """The share of patients with at least one lesion in any of their scans, with its 95 % interval.

    Parameters
    ----------
    counts, patients
        As of `group_mean`.

    Notes
    -----
    Patient i has a lesion with q_i = 1 - Π P(C = 0) over the scans, on average over members of an ensemble. The share
    is q = Σ q_i / n. A true answer is yes or no, so that doubt and how patients differ add up to its variance q (1 - q)
    whatever q_i are; members that disagree about all patients at once add the variance of their shares, v. The interval
    is Wilson's, with n lowered to q (1 - q) / (q (1 - q) / n + v). One patient has none.

    Examples
    --------
    >>> from lesioncount import PoissonBinomial
    >>> scans = [[PoissonBinomial([0.9, 0.5])], [PoissonBinomial([0.8])], [PoissonBinomial([])]]
    >>> round(share_with_any(scans, ["anna", "ben", "carl"]).value, 3)
    0.583
    """
    whose, n = patient_codes(patients), len(set(patients))
    by_member = []
    for scans in zip(*counts, strict=True):
        none = np.ones(n)
        np.multiply.at(none, whose, [float(one.pmf(0)) for one in scans])
        by_member.append(1 - none.mean())
    share = float(np.mean(by_member))
    if n == 1:
        return Estimate(share)
    own = share * (1 - share)
    n_like = own / (own / n + float(np.var(by_member))) if own > 0 else n
    z2 = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) ** 2 / n_like
    middle, reach = (share + z2 / 2) / (1 + z2), math.sqrt(z2 * own + z2**2 / 4) / (1 + z2)
    return Estimate(share, max(middle - reach, 0.0), min(middle + reach, 1.0))


def _with_interval(mean: float, variance: float, df: int) -> Estimate:
    """On the scale of logarithms; without an interval where there is none that says anything."""
    if math.isnan(variance) or mean <= 0:
        return Estimate(mean)
    reach = student_reach(1 - CONFIDENCE, df) * math.sqrt(variance) / mean
    if reach > _SAYS_NOTHING:
        return Estimate(mean)
    return Estimate(mean, mean * math.exp(-reach), mean * math.exp(reach))


def patient_codes(patients: Sequence[Hashable], /) -> NDArray[np.intp]:
    """Whose scan each is, as a number from 0."""
    codes = {patient: code for code, patient in enumerate(dict.fromkeys(patients))}
    return np.array([codes[patient] for patient in patients], dtype=np.intp)


def once_per_patient(patients: Sequence[Hashable], /) -> NDArray[np.float64]:
    """The units of a mean per patient: 1 for the first scan of each, 0 for the others."""
    units = np.zeros(len(patients))
    units[np.unique(patient_codes(patients), return_index=True)[1]] = 1.0
    return units


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

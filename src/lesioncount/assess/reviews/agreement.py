"""Two readers of the same scans → how far they agree, about each candidate and about the count."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from lesioncount.assess.reviews.reviews import ReviewedScan, Reviews
from lesioncount.trust.reviewed_count import UNDECIDED
from lesioncount.trust.scores.agreement import agreement_of_answers, concordance
from lesioncount.trust.scores.bootstrap import estimates_of
from lesioncount.trust.scores.classification import ratio
from lesioncount.trust.scores.estimate import Estimate


class ReaderAgreement(Struct, frozen=True):
    """How far two readers agree: a row of ``reader_agreement.tsv``.

    Attributes
    ----------
    reader_1, reader_2 : str
    n_scans : int
        In which both have decided on at least one candidate.
    n_candidates : int
        That both have decided, neither of them being unsure.
    same, kappa, on_yes : Estimate
        About these: share of equal answers; Cohen's kappa; how often one accepts what the other accepts.
    n_complete : int
        Scans that both have reviewed completely.
    count_difference, count_concordance : Estimate
        Of their counts: mean of the second minus the first, and Lin's concordance.
    """

    reader_1: str
    reader_2: str
    n_scans: int
    n_candidates: int
    same: Estimate
    kappa: Estimate
    on_yes: Estimate
    n_complete: int
    count_difference: Estimate
    count_concordance: Estimate

    @classmethod
    def of(cls, first: Reviews, second: Reviews, *, seed: int = 0) -> ReaderAgreement:
        """Of two readers of one run."""
        others = {scan.record.name: scan for scan in second.begun()}
        both = [(scan, others[scan.record.name]) for scan in first.begun() if scan.record.name in others]
        tables = _tables(both)
        has_answers = tables.sum(axis=(1, 2)) > 0
        patients = [_patient(one) for one, _ in both]
        groups = [patient for patient, is_in in zip(patients, has_answers, strict=True) if is_in]
        complete = [(one, other) for one, other in both if one.is_complete and other.is_complete]
        counts = np.array([(one.n_lesions, other.n_lesions) for one, other in complete], dtype=np.float64)
        return cls(
            first.reader,
            second.reader,
            len(groups),
            int(tables.sum()),
            *(agreement_of_answers(tables[has_answers], groups, seed=seed) if groups else (Estimate(),) * 3),
            len(complete),
            *_of_counts(counts.reshape(-1, 2), [_patient(one) for one, _ in complete], seed),
        )


def agreements(reviews: Sequence[Reviews], *, seed: int = 0) -> list[ReaderAgreement]:
    """Of each pair of readers."""
    return [ReaderAgreement.of(first, second, seed=seed) for first, second in combinations(reviews, 2)]


def _tables(scans: Sequence[tuple[ReviewedScan, ReviewedScan]]) -> NDArray[np.float64]:
    """How two readers answered about the candidates that both have decided: a table of no and yes for each scan."""
    tables = np.zeros((len(scans), 2, 2))
    for table, (one, other) in zip(tables, scans, strict=True):
        for a, b in zip(one.decided, other.decided, strict=True):
            if UNDECIDED not in (a, b):
                table[int(a > 0), int(b > 0)] += 1
    return tables


def _of_counts(counts: NDArray[np.float64], groups: Sequence[str], seed: int) -> tuple[Estimate, Estimate]:
    if len(counts) == 0:
        return Estimate(), Estimate()
    first, second = counts.T

    def measures(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        mean = ratio(weights @ (second - first), weights.sum(axis=-1))
        return np.stack([mean, concordance(first, second, weights=weights)], axis=-1)

    difference, alike = estimates_of(measures(np.ones(len(counts))), measures, groups, seed=seed)
    return difference, alike


def _patient(scan: ReviewedScan) -> str:
    """Scans of one patient are alike, and drawn together."""
    return scan.record.whose.get("participant_id", scan.record.name)

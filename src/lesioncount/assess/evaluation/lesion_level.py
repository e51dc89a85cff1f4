"""Candidates and true lesions of a cohort: which were found, and which candidates are lesions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from lesioncount.assess.beside_truth import Compared
from lesioncount.assess.evaluation.lesion_sizes import LesionSizes, SizeEdges, by_size
from lesioncount.trust.scores.bootstrap import resampled_ratios
from lesioncount.trust.scores.estimate import Estimate
from lesioncount.trust.scores.lesions import OWNERSHIP_RULE, LesionMatch
from lesioncount.trust.scores.reliability import ReliabilityBins, reliability


class LesionLevel(Struct, frozen=True, eq=False, kw_only=True):
    """Candidates beside true lesions.

    Attributes
    ----------
    readers : tuple of str
        Who drew the masks, where several did: each mask is compared with all candidates, and numbers are sums.
    rule : str
        When a candidate is a lesion: for all but false positives, ``n_split`` and ``n_merged``.
    n_lesions, n_candidates : int
    n_hit, n_shared, n_missed : int
        Lesions that have a candidate of their own, which is a candidate that is a lesion; that share one with another
        lesion; that no candidate touches.
    n_split, n_merged : int
        Lesions that several candidates touch, and candidates that touch several lesions.
    sensitivity, shared, missed : Estimate
        The shares of all lesions that ``n_hit``, ``n_shared`` and ``n_missed`` are.
    sensitivity_above_half : Estimate
        Share of lesions with a candidate of their own among those with an existence above 0.5.
    false_positives_per_scan, false_positives_per_scan_above_half : Estimate
        Such candidates that share no voxel with a lesion.
    f1_above_half : Estimate
        Lesion-wise F1 = 2 TP / (candidates + lesions), of candidates with an existence above 0.5; a true positive is a
        candidate that is a lesion by the rule: any overlap, one-to-one.
    by_size : tuple of LesionSizes
        Sensitivity by the size of true lesions, where masks were compared.
    reliability : ReliabilityBins or None
        Existence probabilities, and how often such candidates are lesions.
    """

    readers: tuple[str, ...] = ()
    rule: str = OWNERSHIP_RULE
    n_lesions: int = 0
    n_candidates: int = 0
    n_hit: int = 0
    n_shared: int = 0
    n_missed: int = 0
    n_split: int = 0
    n_merged: int = 0
    sensitivity: Estimate = Estimate()
    shared: Estimate = Estimate()
    missed: Estimate = Estimate()
    false_positives_per_scan: Estimate = Estimate()
    sensitivity_above_half: Estimate = Estimate()
    false_positives_per_scan_above_half: Estimate = Estimate()
    f1_above_half: Estimate = Estimate()
    by_size: tuple[LesionSizes, ...] = ()
    reliability: ReliabilityBins | None = None

    @classmethod
    def of(cls, compared: Compared, size_edges: SizeEdges | None = None, *, seed: int) -> Self | None:
        """From scans and the masks of each; None unless every scan was matched with a mask."""
        if not all(truth.matches for truth in compared.truths):
            return None
        rows = [
            (scan, group, match)
            for scan, truth, group in zip(compared.scans, compared.truths, compared.groups, strict=True)
            for match in truth.matches.values()
        ]
        scans, groups, matches = (list(column) for column in zip(*rows, strict=True))
        existence = [scan.tables[0].existence() for scan in scans]
        owns = np.concatenate([match.owns for match in matches])
        parts = _scan_by_scan(matches, [p > 0.5 for p in existence])
        part, whole = (np.stack(columns, axis=1).astype(np.float64) for columns in zip(*parts.values(), strict=True))
        found = resampled_ratios(part, whole, groups, seed=seed)
        scores: dict[str, Any] = dict(zip(parts, found, strict=True))
        return cls(
            readers=_readers(compared),
            n_lesions=sum(match.n_lesions for match in matches),
            n_candidates=len(owns),
            n_hit=int(owns.sum()),
            n_shared=sum(match.n_shared for match in matches),
            n_missed=sum(match.n_missed for match in matches),
            n_split=sum(match.n_split for match in matches),
            n_merged=sum(match.n_merged for match in matches),
            **scores,
            by_size=by_size(scans, matches, groups, size_edges, seed=seed),
            reliability=ReliabilityBins.of(reliability(np.concatenate(existence), owns)),
        )


def _readers(compared: Compared) -> tuple[str, ...]:
    """Who drew the masks, if several did."""
    names = tuple(dict.fromkeys(reader for truth in compared.truths for reader in truth.matches))
    return names if len(names) > 1 else ()


def match_rows(compared: Compared) -> Iterator[dict[str, Any]]:
    """The rows of ``lesion_matches.tsv``: each true lesion, and each candidate on it; none where it is missed."""
    has_readers = bool(_readers(compared))
    for scan, truth in zip(compared.scans, compared.truths, strict=True):
        for reader, match in truth.matches.items():
            whose = {"scan": scan.shown, **({"reader": reader} if has_readers else {})}
            yield from (whose | row for row in _rows_of(match, scan.tables[0].existence()))


def _rows_of(match: LesionMatch, existence: NDArray[np.float64]) -> Iterator[dict[str, Any]]:
    if match.lesion_voxels is None or match.candidate_voxels is None:
        return
    owners = match.owner_of
    for lesion in range(match.n_lesions):
        row = {"lesion": lesion + 1, "lesion_voxels": int(match.lesion_voxels[lesion])}
        touching = match.pairs[match.pairs[:, 1] == lesion, 0].tolist()
        for one in touching:
            yield row | {
                "candidate": one + 1,
                "candidate_voxels": int(match.candidate_voxels[one]),
                "existence": float(existence[one]),
                "is_own": "yes" if owners[lesion] == one else "no",
            }
        if not touching:
            yield row


MATCH_COLUMNS = ("scan", "reader", "lesion", "lesion_voxels", "candidate", "candidate_voxels", "existence", "is_own")


def _scan_by_scan(
    matches: Sequence[LesionMatch], strong: Sequence[NDArray[np.bool_]]
) -> dict[str, tuple[list[int], list[int]]]:
    """Part and whole of each score, scan by scan."""
    lesions, once = [match.n_lesions for match in matches], [1] * len(matches)
    pairs = list(zip(matches, strong, strict=True))
    return {
        "sensitivity": ([match.n_own for match in matches], lesions),
        "shared": ([match.n_shared for match in matches], lesions),
        "missed": ([match.n_missed for match in matches], lesions),
        "false_positives_per_scan": ([int((~match.touches).sum()) for match in matches], once),
        "sensitivity_above_half": ([match.n_owned_by(chosen) for match, chosen in pairs], lesions),
        "false_positives_per_scan_above_half": (
            [int((~match.touches & chosen).sum()) for match, chosen in pairs],
            once,
        ),
        "f1_above_half": (
            [2 * match.n_owned_by(chosen) for match, chosen in pairs],
            [int(chosen.sum()) + match.n_lesions for match, chosen in pairs],
        ),
    }

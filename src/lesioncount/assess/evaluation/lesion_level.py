"""Candidates and true lesions of a cohort: which were found, and which candidates are lesions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.beside_truth import Compared
from lesioncount.folder.plain import estimates_of, typed
from lesioncount.trust.scores.bootstrap import interval_of, resampled_weights
from lesioncount.trust.scores.classification import ratio
from lesioncount.trust.scores.estimate import Estimate
from lesioncount.trust.scores.lesions import OWNERSHIP_RULE, LesionMatch
from lesioncount.trust.scores.reliability import Reliability, reliability

_COUNTS = ("n_lesions", "n_candidates", "n_hit", "n_shared", "n_missed", "n_split", "n_merged")
_SCORES = (
    "sensitivity", "shared", "missed", "false_positives_per_scan", "sensitivity_above_half",
    "false_positives_per_scan_above_half",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class LesionLevel:
    """Candidates beside true lesions.

    Attributes
    ----------
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
    reliability : Reliability or None
        Existence probabilities, and how often such candidates are lesions.
    """

    rule: str
    n_lesions: int
    n_candidates: int
    n_hit: int
    n_shared: int
    n_missed: int
    n_split: int
    n_merged: int
    sensitivity: Estimate
    shared: Estimate
    missed: Estimate
    false_positives_per_scan: Estimate
    sensitivity_above_half: Estimate
    false_positives_per_scan_above_half: Estimate
    reliability: Reliability | None

    @classmethod
    def of(cls, compared: Compared, *, seed: int) -> Self | None:
        """From scans with their truth; None unless every scan was matched with a mask."""
        matches = [truth.match for truth in compared.truths if truth.match is not None]
        if len(matches) < len(compared.truths):
            return None
        existence = [scan.tables[0].existence() for scan in compared.scans]
        owns = np.concatenate([match.owns for match in matches])
        parts = _scan_by_scan(matches, [p > 0.5 for p in existence])
        return cls(
            rule=OWNERSHIP_RULE,
            n_lesions=sum(match.n_lesions for match in matches),
            n_candidates=len(owns),
            n_hit=int(owns.sum()),
            n_shared=sum(match.n_shared for match in matches),
            n_missed=sum(match.n_missed for match in matches),
            n_split=sum(match.n_split for match in matches),
            n_merged=sum(match.n_merged for match in matches),
            **{name: _ratio_score(*of, compared.groups, seed) for name, of in zip(_SCORES, parts, strict=True)},
            reliability=reliability(np.concatenate(existence), owns),
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain values, as ``evaluation.json`` has them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value.to_dict() if isinstance(value, Estimate | Reliability) else value
            for name, value in values.items()
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """From what `to_dict` gave, read back from a file."""
        bins = content.get("reliability")
        values: dict[str, Any] = {name: typed(content[name], int) for name in _COUNTS}
        values |= estimates_of({name: content[name] for name in _SCORES})
        return cls(
            rule=typed(content["rule"], str),
            **values,
            reliability=None if bins is None else Reliability.from_dict(typed(bins, dict[str, Any])),
        )


def _scan_by_scan(
    matches: Sequence[LesionMatch], strong: Sequence[NDArray[np.bool_]]
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Part and whole of each of `_SCORES`, scan by scan."""
    lesions, once = np.array([match.n_lesions for match in matches]), np.ones(len(matches))
    pairs = list(zip(matches, strong, strict=True))
    return [
        (np.array([match.n_own for match in matches]), lesions),
        (np.array([match.n_shared for match in matches]), lesions),
        (np.array([match.n_missed for match in matches]), lesions),
        (np.array([(~match.touches).sum() for match in matches]), once),
        (np.array([match.n_owned_by(chosen) for match, chosen in pairs]), lesions),
        (np.array([(~match.touches & chosen).sum() for match, chosen in pairs]), once),
    ]


def _ratio_score(part: NDArray[Any], whole: NDArray[Any], groups: Sequence[str], seed: int) -> Estimate:
    drawn = [ratio(weights @ part, weights @ whole) for weights in resampled_weights(groups, seed=seed)]
    return Estimate(float(ratio(part.sum(), whole.sum())), *interval_of(np.concatenate(drawn)))

"""Candidates and true lesions in one scan: which belongs to which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ScoreError

# When a candidate *is* a lesion, wherever that is asked: whether it exists, and how many candidates are right.
OWNERSHIP_RULE = (
    "each lesion belongs to at most one candidate and each candidate to at most one lesion, largest overlap first"
)


@dataclass(frozen=True, eq=False)
class LesionMatch:
    """How the candidates of a scan and its true lesions overlap.

    Parameters
    ----------
    n_lesions : int
        True lesions.
    touches : array of bool, shape (n_candidates,)
        Whether each candidate shares a voxel with a true lesion.
    owns : array of bool, shape (n_candidates,)
        Whether it is a lesion, by `OWNERSHIP_RULE`. These are the candidates that a count should count.
    pairs : array of int, shape (n_pairs, 2)
        Candidate and lesion, counted from 0, of each pair that shares a voxel, largest overlap first.
    n_missed : int
        Lesions that no candidate touches.
    n_split : int
        Lesions that several candidates touch.
    n_merged : int
        Candidates that touch several lesions.
    candidate_voxels, lesion_voxels : array of int, or None
        Their sizes, where masks were compared.
    """

    n_lesions: int
    touches: NDArray[np.bool_]
    owns: NDArray[np.bool_]
    pairs: NDArray[np.int64]
    n_missed: int
    n_split: int
    n_merged: int
    candidate_voxels: NDArray[np.int64] | None = None
    lesion_voxels: NDArray[np.int64] | None = None

    @property
    def owner_of(self) -> NDArray[np.int64]:
        """The candidate that each lesion has for itself, -1 if none, by `OWNERSHIP_RULE`."""
        owner, taken = np.full(self.n_lesions, -1), np.zeros(len(self.owns), bool)
        for candidate, lesion in self.pairs.tolist():
            if not taken[candidate] and owner[lesion] < 0:
                owner[lesion], taken[candidate] = candidate, True
        return owner

    def n_found_by(self, chosen: NDArray[np.bool_]) -> int:
        """Lesions that at least one of these candidates touches."""
        return len(np.unique(self.pairs[chosen[self.pairs[:, 0]], 1]))

    def n_owned_by(self, chosen: NDArray[np.bool_]) -> int:
        """Lesions that have a candidate of their own, if there were none but these candidates."""
        pairs = self.pairs[chosen[self.pairs[:, 0]]]
        return int(_owners(pairs, len(self.owns), self.n_lesions).sum())

    @property
    def n_own(self) -> int:
        """Lesions that have a candidate of their own."""
        return int(self.owns.sum())

    @property
    def n_shared(self) -> int:
        """Lesions that share a candidate with another lesion, whose own it is: they are not counted."""
        return self.n_without_own - self.n_missed

    @property
    def n_without_own(self) -> int:
        """Lesions that belong to no candidate: missed ones, and those that share one with another."""
        return self.n_lesions - self.n_own


def match_lesions(
    candidates: NDArray[np.integer], lesions: NDArray[np.integer], /, *, n_candidates: int, n_lesions: int
) -> LesionMatch:
    """Compare two label maps of the same grid, 0 for background and 1, 2, … for regions.

    Examples
    --------
    >>> candidates = np.array([[1, 1, 0, 2, 0, 3]])
    >>> lesions = np.array([[1, 0, 0, 2, 2, 2]])
    >>> match = match_lesions(candidates, lesions, n_candidates=3, n_lesions=2)
    >>> match.owns, match.n_split
    (array([ True,  True, False]), 1)
    >>> match.owner_of, match.lesion_voxels
    (array([0, 1]), array([1, 3]))
    >>> merged = match_lesions(np.array([[1, 1, 1, 1]]), np.array([[1, 1, 0, 2]]), n_candidates=1, n_lesions=2)
    >>> merged.n_own, merged.n_shared, merged.n_missed
    (1, 1, 0)
    """
    if candidates.shape != lesions.shape:
        raise ScoreError(f"Expected label maps of one shape, but they are {candidates.shape} and {lesions.shape}.")
    both = (candidates > 0) & (lesions > 0)
    pairs = candidates[both].astype(np.int64) * (n_lesions + 1) + lesions[both]
    found, size = np.unique(pairs, return_counts=True)
    largest_first = found[np.argsort(-size, kind="stable")]
    by_size = np.stack([largest_first // (n_lesions + 1) - 1, largest_first % (n_lesions + 1) - 1], axis=1)
    per_candidate = np.bincount(by_size[:, 0], minlength=n_candidates)
    per_lesion = np.bincount(by_size[:, 1], minlength=n_lesions)
    return LesionMatch(
        n_lesions,
        per_candidate > 0,
        _owners(by_size, n_candidates, n_lesions),
        by_size,
        int((per_lesion == 0).sum()),
        int((per_lesion > 1).sum()),
        int((per_candidate > 1).sum()),
        np.bincount(candidates.ravel(), minlength=n_candidates + 1)[1:],
        np.bincount(lesions.ravel(), minlength=n_lesions + 1)[1:],
    )


def _owners(pairs: NDArray[np.int64], n_candidates: int, n_lesions: int) -> NDArray[np.bool_]:
    """Which candidates own a lesion, given the pairs that share a voxel, largest overlap first."""
    owns, taken = np.zeros(n_candidates, bool), np.zeros(n_lesions, bool)
    for candidate, lesion in pairs.tolist():
        if not owns[candidate] and not taken[lesion]:
            owns[candidate] = taken[lesion] = True
    return owns
